"""Barriers that not all threads come to are errors that name them, and legal ones never are, however a kernel runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cpu_kernels import host_compiler

import podium
from podium.backend import Entry, Options, Program, Signature
from podium.errors import LaunchError

regions = pytest.importorskip("podium_cpu.regions", reason="the CPU backend is not installed")

# Each is launched with 64 threads. Comments such as /*two a*/ mark lines.
DIVERGENT = r"""
#include <cooperative_groups.h>
using namespace cooperative_groups;
__global__ void two(int *out, int n) {
  if (threadIdx.x < n)
    __syncthreads(); /*two a*/
  else
    __syncthreads(); /*two b*/
}
__global__ void on_one_line(int *out, int n) {
  if (threadIdx.x < n) __syncthreads(); else __syncthreads(); /*one*/
}
__global__ void kinds(int *out, int n) {
  if (threadIdx.x < n)
    out[0] = __syncthreads_count(1); /*kinds a*/
  else
    out[1] = __syncthreads_or(1); /*kinds b*/
}
__device__ void meet(int *out) {
  out[threadIdx.x] = 1;
  __syncthreads(); /*meet*/
}
__global__ void in_a_function(int *out, int n) {
  if (threadIdx.x >= n)
    meet(out);
  __syncthreads(); /*behind*/
}
__global__ void one_side(int *out, int n) {
  if (threadIdx.x < n) {
    out[threadIdx.x] = 1;
    __syncthreads(); /*side*/
  } else {
    out[threadIdx.x] = 2;
  }
}
__global__ void returns_behind_it(int *out, int n) {
  if (threadIdx.x < n)
    __syncthreads_and(1); /*returns*/
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = 2;
}
__global__ void leaves_the_loop(int *out, int n) {
  for (int i = 0; i < n + (threadIdx.x < 2); ++i)
    __syncthreads(); /*loop*/
  out[threadIdx.x] = 1;
}
__global__ void breaks(int *out, int n) {
  while (true) {
    if (threadIdx.x >= n) break;
    __syncthreads(); /*breaks*/
    if (n < 100) return;
  }
}
__device__ void only_called(int *out, int n) {
  if (threadIdx.x < 3) return;
  if (threadIdx.x < n)
    __syncthreads(); /*called*/
}
__global__ void calls(int *out, int n) { only_called(out, n); }
__global__ void side_of_a_group(int *out, int n) {
  auto block = this_thread_block();
  if (block.thread_rank() < n)
    sync(block); /*side of a group*/
}
"""

ELSEWHERE = "__global__ void elsewhere(int *out, int n) { if (threadIdx.x < n) __syncthreads(); }"

DIFFERENT = "in block (0,0,0) threads wait for each other at different barriers; "
ERRORS = {
    "two": DIFFERENT + "16 wait at __syncthreads() (@two a), such as thread (0,0,0); "
    "48 wait at __syncthreads() (@two b), such as thread (16,0,0)",
    "on_one_line": DIFFERENT + "16 wait at __syncthreads() (@one), such as thread (0,0,0); "
    "48 wait at __syncthreads() (@one), such as thread (16,0,0)",
    "kinds": DIFFERENT + "16 wait at __syncthreads_count() (@kinds a), such as thread (0,0,0); "
    "48 wait at __syncthreads_or() (@kinds b), such as thread (16,0,0)",
    "in_a_function": DIFFERENT + "16 wait at __syncthreads() (@behind), such as thread (0,0,0); "
    "48 wait at __syncthreads() (@meet), such as thread (16,0,0)",
    "one_side": "in block (0,0,0) 48 of 64 threads do not come to __syncthreads() (@side), such as thread (16,0,0); "
    "16 wait there, such as thread (0,0,0)",
    "returns_behind_it": "in block (0,0,0) 48 of 64 threads do not come to __syncthreads_and() (@returns), such as "
    "thread (16,0,0); 16 wait there, such as thread (0,0,0)",
    "leaves_the_loop": "in block (0,0,0) 62 of 64 threads do not come to __syncthreads() (@loop), such as thread "
    "(2,0,0); 2 wait there, such as thread (0,0,0)",
    "breaks": "in block (0,0,0) 48 of 64 threads do not come to __syncthreads() (@breaks), such as thread (16,0,0); "
    "16 wait there, such as thread (0,0,0)",
    "calls": "in block (0,0,0) 48 of 64 threads do not come to __syncthreads() (@called), such as thread (16,0,0); "
    "13 wait there, such as thread (3,0,0)",
    "side_of_a_group": "in block (0,0,0) 48 of 64 threads do not come to sync() of a thread_block (@side of a group), "
    "such as thread (16,0,0); 16 wait there, such as thread (0,0,0)",
}

# What `run` gives: out[t] for 64 threads, 0 before, and -1 for what a thread that has returned has left.
LEGAL = r"""
#define BOTH(x) do { __syncthreads(); s[t] = (x); __syncthreads(); } while (0)
#define NEXT ((t + 1) % 64)

__global__ void returned(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t;
  if (t >= n) { out[t] = -1; return; }
  __syncthreads();
  if (t == 0) return;
  __syncthreads();
  out[t] = s[(t + 1) % n];
}
__global__ void on_the_other_side(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < n) {
    __syncthreads();
    out[t] = s[t + n];
  } else {
    s[t] = 2 * t;
    return;
  }
}
__global__ void in_switch(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t;
  switch (n % 4) {
    case 0: __syncthreads(); out[t] = s[NEXT]; break;
    case 1: __syncthreads(); out[t] = s[NEXT]; __syncthreads(); s[t] = t + 1;  // and on
    case 2: __syncthreads(); if (t > 40) { out[t] = -1; return; } __syncthreads(); break;
    default: if (t % 2) { out[t] = -1; return; } __syncthreads();
  }
  out[t] = s[63 - t];
}
__global__ void in_macros(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (n > 3) BOTH(t); else BOTH(-t);
  int v = s[NEXT];
  if (t == 63) return;
  for (int i = 0; i < 2; ++i) { BOTH(v); BOTH(v + 1); }
  out[t] = v;
}
__global__ void by_jumps(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  int turn = 0, v = t;
again:
  s[t] = v;
  __syncthreads();
  v = s[NEXT];
  if (turn == 1 && t == 63) { out[t] = -1; return; }
  if (turn > 1) goto done;
  __syncthreads();
  ++turn;
  goto again;
done:
  __syncthreads();
  out[t] = v;
}
__global__ void in_lambdas(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  auto shift = [&](auto by) { BOTH(t); return s[(t + by) % 64]; };
  auto count = [&](int yes) { return __syncthreads_count(yes); };
  const int a = n > 3 ? shift(1) : count(1), b = n > 300 ? count(t < 3) : shift(2u);
  auto rest = [&](int limit) {
    if (t >= limit) { out[t] = -1; return; }
    __syncthreads();
    out[t] = a + b + count(t < 5);
  };
  rest(n);
}
__device__ int inner(int *s, int t, int n) {
  if (t >= n) return -1;
  s[t] = t;
  __syncthreads();
  if (t % 2) return s[n - 1 - t];
  __syncthreads();
  return s[n - 1 - t];
}
__device__ void middle(int *out, int *s, int t, int n) {
  if (t % 8 == 7) { out[t] = -1; return; }
  out[t] = inner(s, t, n);
}
__global__ void in_functions(int *out, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  middle(out, s, threadIdx.x, n);
  out[threadIdx.x] += 1;
}
__device__ void body(int *out, int n) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t >= n) { out[t] = -1; return; }
  s[t] = t;
  __syncthreads();
  if (t == 0) return;
  __syncthreads();
  out[t] = s[(t + 1) % n];
}
__global__ void wrapped(int *out, int n) { body(out, n); }
__global__ void for_ever(int *out, int n) {
  __shared__ int turn;
  const int t = threadIdx.x;
  if (t == 0) turn = 0;
  while (true) {
    __syncthreads();
    if (turn == 5) break;
    if (t >= n && turn == 2) { out[t] = -1; return; }
    __syncthreads();
    if (t == 1) ++turn;
    __syncthreads();
    if (turn == 4) { __syncthreads(); continue; }
    __syncthreads();
  }
  for (;;) { if (t == 0) return; __syncthreads(); break; }
  out[t] = turn;
}
__global__ void in_heads(int *out, int n) {
  const int t = threadIdx.x;
  int k = 0;
  while (__syncthreads_or(k < n % 7)) ++k;
  if (!__syncthreads_and(k == n % 7)) return;
  if (__syncthreads_count(t % 2) == n) return;
  out[t] = k;
  if (t == 3) return;
  (t < 1 ? (void)(out[t] += 1) : (void)0), __syncthreads();
}
template <int N> __global__ void constant(int *out, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if constexpr (N > 1) { __syncthreads(); if (threadIdx.x % 2) { out[threadIdx.x] = -1; return; } }
  else if (n > 1) { __syncthreads(); }
  else return;
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
"""

# Kernels whose groups, warp functions and destructors keep all of their source from becoming loops.
THREADS = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void groups(int *out, int n) {
  auto b = cg::this_thread_block();
  if (threadIdx.x < n)
    b.sync(); /*groups a*/
  else
    cg::sync(b); /*groups b*/
}
__global__ void group_and_barrier(int *out, int n) {
  if (threadIdx.x < n)
    cg::this_thread_block().sync(); /*group a*/
  else
    __syncthreads(); /*group b*/
}
__global__ void half_a_group(int *out, int n) {
  cg::thread_block b = cg::this_thread_block();
  if (threadIdx.x < n)
    b.sync(); /*half*/
}
#define HALVES(name, left, right) \
  __global__ void name(int *out, int n) { int all; if (threadIdx.x < n) out[0] = left; else out[1] = right; (void)all; }
HALVES(up_and_down, __shfl_up_sync(~0u, 1, 1), __shfl_down_sync(~0u, 1, 1))
HALVES(any_and_all, __any_sync(~0u, 1), __all_sync(~0u, 1))
HALVES(any_and_ballot, __any_sync(~0u, 1), __ballot_sync(~0u, 1))
HALVES(both_matches, __match_any_sync(~0u, 1), __match_all_sync(~0u, 1, &all))

__global__ void tiles(int *out, int n) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int v = threadIdx.x;
  if (tile.meta_group_rank() % 2) {
    tile.sync();
    v = tile.shfl(v, 3);
    if (threadIdx.x > 55) { out[threadIdx.x] = -1; return; }
    tile.sync();
  } else if (threadIdx.x < 32) {
    for (int i = 0; i < 3; ++i) v += tile.shfl_xor(v, 1) - v, tile.sync();
  } else {
    auto two = cg::tiled_partition<2>(tile);
    if (two.meta_group_rank() == 1) { two.sync(); v = two.shfl(v, 0); }
    else cg::sync(two);
  }
  block.sync();
  out[threadIdx.x] = v;
}
__global__ void warps(int *out, int n) {
  const int t = threadIdx.x;
  int v;
  if (t % 32 < 16) v = __shfl_sync(~0u, t, 20);
  else v = __shfl_sync(~0u, t, 2);
  if (t % 2) __syncwarp();
  else __syncwarp();
  if (t % 3) v += __popc(__ballot_sync(~0u, t % 4 == 0)); else v += __popc(__ballot_sync(~0u, t % 4 == 0));
  if (t == 5) { out[t] = -1; return; }
  __syncthreads();
  out[t] = v;
}
struct Guard { int *out; __device__ ~Guard() { __syncthreads(); out[threadIdx.x] += 1000; } };
__global__ void destructors(int *out, int n) {
  __syncthreads();
  Guard guard = {out};
  out[threadIdx.x] = 1;
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = 2;
}
"""

# A class that only looks like that of the dialect, so that the marked text does not compile.
OTHER_BLOCK = """
struct thread_block { int *out; __device__ void sync() { *out = 7; } };
__global__ void other_block(int *out, int n) {
  thread_block block = {out + threadIdx.x};
  block.sync();
  __syncthreads();
}
"""

GROUPS = {
    "groups": DIFFERENT + "16 wait at sync() of a thread_block (@groups a), such as thread (0,0,0); "
    "48 wait at sync() of a thread_block (@groups b), such as thread (16,0,0)",
    "group_and_barrier": DIFFERENT + "16 wait at sync() of a thread_block (@group a), such as thread (0,0,0); "
    "48 wait at __syncthreads() (@group b), such as thread (16,0,0)",
    "half_a_group": "in block (0,0,0) 48 of 64 threads do not come to sync() of a thread_block (@half), such as "
    "thread (16,0,0); 16 wait there, such as thread (0,0,0)",
}
INSTRUCTIONS = {
    "up_and_down": ("__shfl_up_sync", "__shfl_down_sync"),
    "any_and_all": ("__any_sync", "__all_sync"),
    "any_and_ballot": ("__any_sync", "__ballot_sync"),
    "both_matches": ("__match_any_sync", "__match_all_sync"),
}


def legal(name: str, n: int) -> list[int]:
    """What a legal kernel writes, by the thread."""
    t = range(64)
    if name in ("returned", "wrapped"):
        return [-1 if i >= n else 0 if i == 0 else (i + 1) % n for i in t]
    if name == "on_the_other_side":
        return [2 * (i + n) if i < n else 0 for i in t]
    if name == "in_switch":
        gone = (lambda i: False, lambda i: i > 40, lambda i: i > 40, lambda i: i % 2)[n % 4]
        return [-1 if gone(i) else 63 - i + (n % 4 == 1) for i in t]
    if name == "in_macros":
        return [0 if i == 63 else i + 1 for i in t]
    if name == "by_jumps":
        # The last turn shifts what the thread that is gone has left in shared memory.
        values = [(i + 2) % 64 for i in t]
        values[63] = 0
        return [-1 if i == 63 else values[i + 1] for i in t]
    if name == "in_lambdas":
        return [-1 if i >= n else (i + 1) % 64 + (i + 2) % 64 + 5 for i in t]
    if name == "in_functions":
        return [0 if i % 8 == 7 or i >= n else n - i for i in t]
    if name == "for_ever":
        return [-1 if i >= n else 0 if i == 0 else 5 for i in t]
    if name == "in_heads":
        return [0 if n == 32 else n % 7 + (i == 0) for i in t]
    if name.startswith("constant"):
        return [-1 if "3" in name and i % 2 else 63 - i for i in t]
    if name == "tiles":
        shifted = [
            i // 8 * 8 + 3 if i // 8 % 2 else i ^ 1 if i < 32 else i - i % 2 if i // 2 % 4 == 1 else i for i in t
        ]
        return [-1 if i > 55 else shifted[i] for i in t]
    if name == "warps":
        return [-1 if i == 5 else i // 32 * 32 + (20 if i % 32 < 16 else 2) + 8 for i in t]
    assert name == "destructors"
    return [1002 if i < n else 1001 for i in t]


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    host_compiler()


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")


WAYS: dict[str, dict[str, Any]] = {
    "loops": {},
    "threads": {"defines": {"PODIUM_CPU_FIBERS": ""}},
    "debug": {"debug": True},
    "sanitizer": {"sanitize": "address,undefined"},
}


@contextmanager
def built(source: str, way: str) -> Iterator[podium.Module]:
    """Give all kernels of a source, compiled in one go."""
    options = dict(WAYS[way])
    names = [name.replace("constant", "constant<1>") for name in re.findall(r"__global__ void (\w+)", source)]
    names = [name for name in names if name != "name"] + re.findall(r"^HALVES\((\w+)", source, re.MULTILINE)
    if "constant<1>" in names:
        names.append("constant<3>")
    signature = Signature.parse("out: *i32, n: i32")
    with podium.use("cpu", sanitize=options.pop("sanitize", None)):
        driver = podium.driver.resolve()
        entries = tuple(Entry(name, signature) for name in names)
        program = Program(source, "cuda", entries, Options.of(**options))
        yield podium.module(driver.compile(program, driver.default_target()))


def run(module: podium.Module, name: str, n: int) -> list[int]:
    out = podium.asarray([0] * 64)
    module[name][1, 64](out, n)
    values: list[int] = out.tolist()
    return values


def told(source: str, text: str) -> str:
    """Put the places of marks into an expected text."""
    return re.sub(
        r"@([\w ]+)", lambda m: f"<podium source>:{source[: source.index(f'/*{m[1]}*/')].count(chr(10)) + 1}", text
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_barrier_that_not_all_come_to_is_named(way: str) -> None:
    """Its line, how many wait, how many do not come or wait elsewhere, and a thread of each, are the same in all ways."""
    if way == "sanitizer":  # what another runtime has said of the same status is not said of this one's
        with built(ELSEWHERE, "loops") as module, pytest.raises(LaunchError, match="1 of 64 threads"):
            run(module, "elsewhere", 63)
    with built(DIVERGENT, way) as module:
        for name, text in ERRORS.items():
            with pytest.raises(LaunchError) as caught:
                run(module, name, 16)
            assert caught.value.status_name == "PODIUM_CPU_ERROR_BARRIER"
            assert told(DIVERGENT, text) in str(caught.value), name
        # If the threads go the same way, the same kernels are right.
        for name in set(ERRORS) - {"leaves_the_loop"}:
            run(module, name, 64)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_legal_is_no_error(way: str) -> None:
    """Early returns in kernels, functions and lambdas, and barriers in every kind of statement, give what they should."""
    with built(LEGAL, way) as module:
        for name in module.names:
            for n in (20, 21, 22, 23, 32):
                assert run(module, name, n) == legal(name, n), (name, n)


def test_loops_are_among_the_ways() -> None:
    """Kernels of both kinds become loops where they are to, so that the tests above compare something."""
    found = regions.rewrite_regions(re.sub(r"(?m)^#.*$", "", DIVERGENT + LEGAL))[1]
    apart = {name for name, why in found.items() if not why}
    assert {"one_side", "returns_behind_it", "leaves_the_loop", "calls", "side_of_a_group"} <= apart
    assert {"returned", "on_the_other_side", "wrapped", "constant"} <= apart


@pytest.mark.parametrize("way", ["threads", "debug"])
def test_groups_and_warps(way: str) -> None:
    """Groups of a block wait as barriers do; lanes meet in one function, and may be at different lines of it."""
    with built(THREADS, way) as module:
        for name, text in GROUPS.items():
            with pytest.raises(LaunchError) as caught:
                run(module, name, 16)
            assert told(THREADS, text) in str(caught.value), name
        for name, functions in INSTRUCTIONS.items():
            with pytest.raises(LaunchError) as caught:
                run(module, name, 16)
            assert caught.value.status_name == "PODIUM_CPU_ERROR_BARRIER"
            for function in functions:
                assert f"16 wait at {function}() (<podium source>:" in str(caught.value), name
            run(module, name, 32)
        for name in ("tiles", "warps", "destructors"):
            assert run(module, name, 21) == legal(name, 21), name


def test_text_that_cannot_be_marked() -> None:
    """A source that does not compile with marks is compiled without."""
    assert "numbered" in regions.rewrite_regions(OTHER_BLOCK, loops=False)[0]
    with built(OTHER_BLOCK, "threads") as module:
        assert run(module, "other_block", 1) == [7] * 64


MARKED = r"""
__global__ void kernel(int *p, int n) {
  if (n < 0) return;
  if (p[0]) __syncthreads();
  for (int i = 0; i < n; ++i) { if (p[i]) return; int v = __syncthreads_or(p[i]); p[i] = v; }
  if (n > 3) { auto f = [] { __syncthreads(); return; }; f(); } else return;
  if (n > 5) return;
}
__device__ int recursive(int n) { __syncthreads(); return n ? recursive(n - 1) : 0; }
__global__ void returns_a_number(int *p) { __syncthreads(); recursive(3); }
__global__ void jumps(int *p) { __syncthreads(); if (*p) return; goto end; end: *p = 1; }
__global__ void none(int *p) { if (*p) return; *p = 1; }
"""


def test_marks() -> None:
    """Barriers have numbers, above zero in kernels; returns name the barriers that they leave behind for good."""
    text, _ = regions.rewrite_regions(MARKED, loops=False)
    numbers = [int(number) for number in re.findall(r"::podium_cpu::numbered\{(-?\d+)\}", text)]
    assert numbers == [1, 2, -3, -4, 5, 6]
    assert "if (n < 0) { ::podium_cpu::past = 0; return; }" in text
    assert "if (p[0]) __syncthreads(::podium_cpu::numbered{1});" in text
    assert (
        "{ if (p[i]) { ::podium_cpu::past = 1; return; } int v = __syncthreads_or(::podium_cpu::numbered{2}, p[i])"
        in text
    )
    assert "return; }; f(); } else { ::podium_cpu::past = 2; return; }" in text
    assert "if (n > 5) { ::podium_cpu::past = 2; return; }\n ::podium_cpu::past = 2;}" in text
    assert "if (*p) { ::podium_cpu::past = 0; return; } goto end; end: *p = 1;  ::podium_cpu::past = 6;}" in text
    assert text.endswith("__global__ void none(int *p) { if (*p) return; *p = 1; }\n")
    assert text.count("\n") == MARKED.count("\n")
