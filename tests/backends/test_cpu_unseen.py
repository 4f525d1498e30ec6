"""What classes and operators do where a kernel does not show it, in kernels that become loops over their threads."""

from __future__ import annotations

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, ints, zeros

from podium.backend import HostCompiler

COUNT = 64
NEXT = "s[(t + 1) % 64]"

# Each source defines other classes and operators, since what one source has is taken into account for all its kernels.
STATES = """
struct Counter { int v; __device__ int operator()() { return ++v; } };
struct Steps { int v; __device__ int operator[](int k) { v += 1; return v + k; } };
__device__ int next(int &v) { return ++v; }
__device__ void bump(int *p) { p[0]++; }
"""
MUTATING = """
struct Sum { int v; };
struct Walk { int v; __device__ int operator*() { return v++; } };
__device__ Sum &operator<<(Sum &sum, int v) { sum.v += v; return sum; }
__device__ int operator-(Sum &sum) { return ++sum.v; }
"""
HOLDERS = """
struct Reference { int &r; __device__ void add(int v) { r += v; } };
struct Both { int &a, &b; __device__ void operator=(int2 v) { a = v.x, b = v.y; } };
"""
INDICES = """
__device__ auto thread = [] { return threadIdx.x; };
struct Context { int t = threadIdx.x; };
__device__ int self(int t = threadIdx.x);
__device__ int self(int t) { return t; }
__device__ int operator""_th(unsigned long long v) { return v + threadIdx.x; }
"""
CONVERSIONS = """
struct Thread { __device__ operator int() const { return threadIdx.x; } };
struct Value { int *p; __device__ operator int() const { return *p; } };
__device__ const Thread the_thread{};
__device__ int operator+(Thread, int v) { return threadIdx.x + v; }
"""
BUILT = """
__device__ int made;
struct Made { __device__ Made() { atomicAdd(&made, 1); } };
typedef Made Alias;
struct Copy { int v; __device__ Copy(const int *p) : v(*p) {} };
"""
WAITING = """
__device__ void wait() { __syncthreads(); }
typedef void (*Function)();
__device__ Function table[1] = {wait};
struct Scope { __device__ ~Scope() { wait(); } };
__device__ int operator+(Scope &, int v) { wait(); return v; }
"""

# source, name, body, what out[t] is; s is shared memory, in[t] is 3 * t, out[t] is -9
CASES = [
    (STATES, "a_call", f"Counter g = {{t}}; s[t] = g(); __syncthreads(); int a = {NEXT}; out[t] = 100 * a + g();", lambda t: 100 * ((t + 1) % 64 + 1) + t + 2),
    (STATES, "an_index", f"Steps g = {{t}}; s[t] = g[5]; __syncthreads(); out[t] = {NEXT} + g[5];", lambda t: (t + 1) % 64 + 6 + t + 7),
    (STATES, "a_reference", f"int g = t; s[t] = next(g); __syncthreads(); out[t] = {NEXT} + next(g);", lambda t: (t + 1) % 64 + 1 + t + 2),
    (STATES, "a_pointer", "int g[2] = {t, 0}; __syncthreads(); bump(g); __syncthreads(); out[t] = g[0];", lambda t: t + 1),
    (STATES, "the_index_itself", f"const uint3 *me = &threadIdx; s[me->x] = t; __syncthreads(); out[me->x] = {NEXT};", lambda t: (t + 1) % 64),
    (MUTATING, "a_shift", f"Sum a = {{0}}; a << in[t]; s[t] = a.v; __syncthreads(); a << {NEXT}; __syncthreads(); out[t] = a.v;", lambda t: 3 * t + 3 * ((t + 1) % 64)),
    (MUTATING, "a_sign", "Sum a = {t}; int b = -a; __syncthreads(); out[t] = a.v * 100 + b;", lambda t: (t + 1) * 101),
    (MUTATING, "a_star", "Walk a = {t}; int b = *a; __syncthreads(); out[t] = *a * 100 + b;", lambda t: (t + 1) * 100 + t),
    (HOLDERS, "a_member", "int a = t; __syncthreads(); { Reference r = {a}; r.r += 5; } __syncthreads(); out[t] = a;", lambda t: t + 5),
    (HOLDERS, "a_temporary", "int a = t; __syncthreads(); Reference{a}.add(5); __syncthreads(); out[t] = a;", lambda t: t + 5),
    (HOLDERS, "a_tie", "int a = 0, b = 0; __syncthreads(); Both{a, b} = make_int2(t, 7); __syncthreads(); out[t] = a + b;", lambda t: t + 7),
    (INDICES, "a_lambda", "s[t] = t; __syncthreads(); out[t] = s[thread()];", lambda t: t),
    (INDICES, "a_default_member", f"Context c; s[c.t] = t; __syncthreads(); Context d; out[d.t] = {NEXT};", lambda t: (t + 1) % 64),
    (INDICES, "a_default_argument", "s[t] = t; __syncthreads(); out[t] = s[self()];", lambda t: t),
    (INDICES, "a_literal", f"int a = 3_th; s[t] = a; __syncthreads(); out[t] = a + {NEXT};", lambda t: t + 3 + (t + 1) % 64 + 3),
    (CONVERSIONS, "a_local", f"Thread me; int a = me; s[t] = a; __syncthreads(); out[t] = a + {NEXT};", lambda t: t + (t + 1) % 64),
    (CONVERSIONS, "a_global", "int a = 0; for (int i = 0; i < the_thread; i++) a++; __syncthreads(); out[t] = a;", lambda t: t),
    (CONVERSIONS, "a_sum", "int a = the_thread + 1; __syncthreads(); out[t] = a;", lambda t: t + 1),
    (CONVERSIONS, "a_memory", "Value v = {out}; const int before = v; __syncthreads(); out[t] = 1; __syncthreads(); out[t] = before;", lambda t: -9),
    (BUILT, "an_object", "if (t == 0) made = 0; __syncthreads(); Made m; __syncthreads(); out[t] = made;", lambda t: 64),
    (BUILT, "an_alias", "if (t == 0) made = 0; __syncthreads(); Alias m; __syncthreads(); out[t] = made;", lambda t: 64),
    (BUILT, "a_copy", "const Copy c(out); __syncthreads(); out[t] = 1; __syncthreads(); out[t] = c.v;", lambda t: -9),
    (WAITING, "a_destructor", f"{{ Scope scope; s[t] = t; }} const int a = {NEXT}; __syncthreads(); out[t] = a;", lambda t: (t + 1) % 64),
    (WAITING, "an_operator", f"Scope scope; s[t] = t; const int a = (scope + 1, {NEXT}); __syncthreads(); out[t] = a;", lambda t: (t + 1) % 64),
    (WAITING, "a_table", f"s[t] = t; table[0](); const int a = {NEXT}; __syncthreads(); out[t] = a;", lambda t: (t + 1) % 64),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


@pytest.mark.parametrize("source", [STATES, MUTATING, HOLDERS, INDICES, CONVERSIONS, BUILT, WAITING])
def test_what_is_not_seen_happens_all_the_same(source: str) -> None:
    """States of objects, references kept in them, indices and barriers behind operators: as with threads."""
    cases = [case[1:] for case in CASES if case[0] is source]
    text = source
    for name, body, _ in cases:
        text += f'extern "C" __global__ void {name}(const int *in, int *out) {{'
        text += f" __shared__ int s[64]; const int t = threadIdx.x; {body} }}\n"
    module = Kernels(text, {name: "in: *ki32, out: *i32" for name, *_ in cases})
    for name, _, expected in cases:
        out = zeros("i", COUNT)
        out[:] = ints([-9] * COUNT)
        assert module(name, 1, COUNT, ints(range(0, 3 * COUNT, 3)), out) == SUCCESS
        assert out.tolist() == [expected(t) for t in range(COUNT)], name


def test_a_default_argument_is_each_threads_own() -> None:
    """A function that a kernel does nothing but call may have one that names the index."""
    source = """
    __device__ void turn(int *out, int me = threadIdx.x) {
      __shared__ int s[64];
      s[me] = me;
      __syncthreads();
      out[me] = s[(me + 1) % 64];
    }
    extern "C" __global__ void turns(int *out) { turn(out); }
    """
    out = zeros("i", COUNT)
    assert Kernels(source, {"turns": "out: *i32"})("turns", 1, COUNT, out) == SUCCESS
    assert out.tolist() == [(t + 1) % 64 for t in range(COUNT)]
