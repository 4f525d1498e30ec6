"""Conditions on indices in kernels that become loops over their threads: those that hold for the first of a row only."""

from __future__ import annotations

from cpu_kernels import SUCCESS, Kernels, host_compiler, zeros

COUNT = 64

# What kernels count or mark, in terms of t; a number that is negative, or was, is greater than any unsigned one.
CONDITIONS = {
    "threadIdx.x < 10": lambda t: t < 10,
    "threadIdx.x < n - 70": lambda t: True,
    "t < n - 70": lambda t: False,
    "threadIdx.x - 5 < 3": lambda t: 5 <= t < 8,
    "t - 5 < 3": lambda t: t < 8,
    "t - 5 < blockDim.x": lambda t: t >= 5,
    "int(threadIdx.x) - 5 < 3": lambda t: t < 8,
    "threadIdx.x + (n - 70) < 3": lambda t: 6 <= t < 9,
    "left < 20": lambda t: 2 <= t < 22,
    "signed_left < 20": lambda t: t < 22,
    "signed_left < 20u": lambda t: 2 <= t < 22,
    "signed_left < blockDim.x": lambda t: t >= 2,
    "!(left >= 20)": lambda t: 2 <= t < 22,
    "wide_left < 20": lambda t: 2 <= t < 22,
    "20 > t + 1": lambda t: t < 19,
    "t < 30 && n > 3": lambda t: t < 30,
    "t < ~0u": lambda t: True,
    "t < -1": lambda t: False,
}
LOOPS = {
    "int i = t - 5; i < n; i += blockDim.x": lambda t: range(t - 5, 64, 64),
    "int i = threadIdx.x - 5; i < 200u; i += blockDim.x": lambda t: range(t - 5, 200, 64) if t >= 5 else (),
    "unsigned i = threadIdx.x - 5u; i < 200u; i += blockDim.x": lambda t: range(t - 5, 200, 64) if t >= 5 else (),
    "unsigned i = threadIdx.x + (n - 70); i < 200; i += blockDim.x": lambda t: range(t - 6, 200, 64) if t >= 6 else (),
    "size_t i = threadIdx.x; i < 200; i += blockDim.x": lambda t: range(t, 200, 64),
}


def test_indices_may_pass_zero() -> None:
    """A thread takes a branch or a turn of a loop exactly if the condition holds for it, with the types it has."""
    host_compiler()
    source, names = "", []
    for number, condition in enumerate(CONDITIONS):
        names.append(f"branch{number}")
        source += f"""extern "C" __global__ void {names[-1]}(int *out, int n) {{
          __shared__ int s[64];
          const int t = threadIdx.x;
          const unsigned left = threadIdx.x - 2;
          const int signed_left = threadIdx.x - 2;
          const size_t wide_left = threadIdx.x - 2;
          s[t] = 0;
          __syncthreads();
          if ({condition}) s[t] = 1;
          __syncthreads();
          out[t] = s[t];
        }}\n"""
    for number, head in enumerate(LOOPS):
        names.append(f"loop{number}")
        source += f"""extern "C" __global__ void {names[-1]}(int *out, int n) {{
          const int t = threadIdx.x;
          int sum = 0;
          for ({head}) sum += i;
          __syncthreads();
          out[t] = sum;
        }}\n"""
    module = Kernels(source, dict.fromkeys(names, "out: *i32, n: i32"))
    expected = [[int(holds(t)) for t in range(COUNT)] for holds in CONDITIONS.values()]
    expected += [[sum(turns(t)) for t in range(COUNT)] for turns in LOOPS.values()]
    for name, text, values in zip(names, [*CONDITIONS, *LOOPS], expected):
        out = zeros("i", COUNT)
        assert module(name, 1, COUNT, out, COUNT) == SUCCESS
        assert out.tolist() == values, text
