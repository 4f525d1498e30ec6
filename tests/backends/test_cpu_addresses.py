"""Kernels with barriers that keep addresses, wrap their indices, or end early: loops give what threads give."""

from __future__ import annotations

import re

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, ints, zeros

SOURCE = r"""
struct Ref { int *p; };
struct Box { int v[4]; __device__ int *data() { return v; } };
struct Stack { int buf[4]; int *top; __device__ void init() { top = buf; } };
struct Thing { int a; __device__ int *addr() { return &a; } };
__device__ const int *cursor;
__device__ void advance(const int *&p) { p += 1; }
__device__ int *pick(int *a, int *b, int c) { return c ? a : b; }
__device__ int *addr_of(int &a) { return &a; }

extern "C" __global__ void global_pointer(int *out, const int *in) {
  if (threadIdx.x == 0) cursor = in;
  __syncthreads();
  const int *p = cursor + threadIdx.x;
  out[threadIdx.x] = *p;
  __syncthreads();
  if (threadIdx.x == 0) cursor = in + 100;
  __syncthreads();
  out[threadIdx.x] += 1000 * *p;
}
extern "C" __global__ void ref_to_const_pointer(int *out, const int *in) {
  const int *p = in + threadIdx.x;
  __syncthreads();
  advance(p);
  __syncthreads();
  out[threadIdx.x] = *p;
}
extern "C" __global__ void struct_pointer(int *out, const int *in) {
  Ref r; int x = in[threadIdx.x];
  r.p = &x;
  __syncthreads();
  *r.p += 5;
  out[threadIdx.x] = *r.p;
}
extern "C" __global__ void pointer_array(int *out, const int *in) {
  int a = in[threadIdx.x], b = 7 * a;
  int *both[2] = {&a, &b};
  __syncthreads();
  out[threadIdx.x] = *both[threadIdx.x % 2] + 1;
}
extern "C" __global__ void member_array(int *out, const int *in) {
  Box box; for (int i = 0; i < 4; ++i) box.v[i] = i;
  int *p = box.v;
  __syncthreads();
  p[threadIdx.x % 4] += in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = box.v[0] + 10 * box.v[1] + 100 * box.v[2] + 1000 * box.v[3];
}
extern "C" __global__ void member_data(int *out, const int *in) {
  Box box; for (int i = 0; i < 4; ++i) box.v[i] = i;
  int *p = box.data();
  __syncthreads();
  p[threadIdx.x % 4] += in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = box.v[0] + 10 * box.v[1] + 100 * box.v[2] + 1000 * box.v[3];
}
extern "C" __global__ void own_pointer(int *out, const int *in) {
  Stack s; s.init();
  for (int i = 0; i < 4; ++i) s.buf[i] = 0;
  *s.top++ = in[threadIdx.x];
  __syncthreads();
  *s.top++ = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s.buf[0] + 10000 * s.buf[1] + 7 * int(s.top - s.buf);
}
extern "C" __global__ void pick(int *out, const int *in) {
  int a = in[threadIdx.x], b = 3 * a;
  int *p = pick(&a, &b, threadIdx.x % 2);
  __syncthreads();
  *p += 1;
  __syncthreads();
  out[threadIdx.x] = a + 1000 * b;
}
extern "C" __global__ void addr_of(int *out, const int *in) {
  int a = in[threadIdx.x];
  int *p = addr_of(a);
  __syncthreads();
  *p += 1;
  __syncthreads();
  out[threadIdx.x] = a;
}
extern "C" __global__ void thing(int *out, const int *in) {
  Thing t; t.a = in[threadIdx.x];
  int *p = t.addr();
  __syncthreads();
  *p += 1;
  __syncthreads();
  out[threadIdx.x] = t.a;
}
extern "C" __global__ void shadow_min(int *out, const int *in) {
  int best = in[threadIdx.x];
  __syncthreads();
  auto min = [](int &a, int b) { a = a < b ? a : b; return a; };
  min(best, 20);
  __syncthreads();
  out[threadIdx.x] = best;
}
extern "C" __global__ void zero_division(int *out, const int *in, int n) {
  if (threadIdx.x >= n) return;
  int k = 100 / n;
  __syncthreads();
  out[threadIdx.x] = k + in[threadIdx.x];
}
extern "C" __global__ void shared_pointer(int *out, const int *in) {
  __shared__ int *ps[1024];
  int x = in[threadIdx.x];
  ps[threadIdx.x] = &x;
  __syncthreads();
  *ps[threadIdx.x] += 3;
  __syncthreads();
  out[threadIdx.x] = *ps[threadIdx.x];
}
extern "C" __global__ void stride_wrap(int *out, const int *in) {
  int count = 0;
  for (int i = (threadIdx.x & 3) * 500000000; i < 2000000000; i += 100000000) { count += i / 100000000; }
  __syncthreads();
  out[threadIdx.x] = count;
}
extern "C" __global__ void unsigned_start(int *out, const int *in) {
  int count = 0;
  for (unsigned i = threadIdx.x - 3; i < 500; i += blockDim.x) count += in[i];
  __syncthreads();
  for (unsigned long long i = threadIdx.x - 2; i < 500; i += blockDim.x) count += in[i];
  __syncthreads();
  out[threadIdx.x] = count;
}
extern "C" __global__ void return_loop(int *out, const int *in) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  for (;;) {
    if (threadIdx.x == 0) s += 1;
    __syncthreads();
    if (s > 5) return;
    out[threadIdx.x] += in[s];
    __syncthreads();
  }
}
extern "C" __global__ void guard_wraps(int *out, const int *in) {
  unsigned n = 5; int before = threadIdx.x - 2; long long far = threadIdx.x - 1;
  __syncthreads();
  if (threadIdx.x - 1 < 4) out[threadIdx.x] += 1;
  __syncthreads();
  if (before < n) out[threadIdx.x] += 10;
  __syncthreads();
  out[threadIdx.x] += 100 * int(far % 1000);
}
__device__ const int &same_one(const int &a) { return a; }
extern "C" __global__ void address_of_a_result(int *out, const int *in) {
  int a = in[threadIdx.x];
  const int *p = &same_one(a);
  __syncthreads();
  a += 5;
  __syncthreads();
  out[threadIdx.x] = a + 1000 * *p;
}
extern "C" __global__ void guard_by_a_great_number(int *out, const int *in) {
  __syncthreads();
  if (threadIdx.x + 4294967290u < 20u) out[threadIdx.x] += 1;
  __syncthreads();
}
typedef int *ip;
typedef struct { int *q; int k; } Unnamed;
template <class T, int N> struct Arr { T d[N]; __device__ T &operator[](int i) { return d[i]; } };
__device__ ip typedefed(int *p) { return p; }
extern "C" __global__ void pointer_with_a_name(int *out, const int *in) {
  int x = in[threadIdx.x]; ip p = typedefed(&x);
  __syncthreads();
  *p += 4;
  __syncthreads();
  out[threadIdx.x] = x;
}
extern "C" __global__ void pointer_into_an_object(int *out, const int *in) {
  Arr<int, 4> a; for (int i = 0; i < 4; ++i) a[i] = i; ip p = &a[1];
  __syncthreads();
  *p += 4;
  __syncthreads();
  out[threadIdx.x] = a[1] * in[threadIdx.x];
}
extern "C" __global__ void class_without_a_name(int *out, const int *in) {
  Arr<int, 4> a; for (int i = 0; i < 4; ++i) a[i] = i + in[threadIdx.x]; Unnamed n; n.q = a.d; n.k = 2;
  __syncthreads();
  n.q[n.k] += 4;
  __syncthreads();
  out[threadIdx.x] = a[2];
}
"""
NAMES = re.findall(r"void (\w+)\(int \*out", SOURCE)


@pytest.fixture(scope="module")
def both() -> tuple[Kernels, Kernels]:
    host_compiler()
    entries = {name: "*i32, *i32" + ", i32" * (name == "zero_division") for name in NAMES}
    return Kernels(SOURCE, entries), Kernels(SOURCE, entries, defines={"PODIUM_CPU_FIBERS": ""})


@pytest.mark.parametrize("name", NAMES)
def test_loops_give_what_threads_give(both: tuple[Kernels, Kernels], name: str) -> None:
    """A kernel that is rewritten keeps addresses, wraps indices and returns as its threads do on stacks of their own."""
    data = ints(7 * i % 101 for i in range(1000))
    results = []
    for kernels in both:
        out = zeros("i", 128)
        assert kernels(name, 2, 70, out, data, *[0] * (name == "zero_division")) == SUCCESS
        results.append(out.tolist())
    assert results[0] == results[1]
    assert any(results[0]) or name == "zero_division"
