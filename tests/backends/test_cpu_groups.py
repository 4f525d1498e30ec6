"""Cooperative groups on the CPU backend: blocks, tiles, coalesced groups, partitions, reductions, scans, copies."""

from __future__ import annotations

from functools import reduce

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, ints, zeros

import podium
from podium.backend import HostCompiler
from podium.errors import CompileError, LaunchError

GRID_BARRIER = 9


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
struct Big { int a[5]; };

extern "C" __global__ void block(int *out) {
  cg::thread_block b = cg::this_thread_block();
  __shared__ int s[96];
  s[b.thread_rank()] = b.thread_rank();
  b.sync();
  int v = s[b.size() - 1 - b.thread_rank()];
  cg::sync(b);
  s[b.thread_rank()] = v;
  auto token = b.barrier_arrive();
  b.barrier_wait(static_cast<cg::thread_block::arrival_token &&>(token));
  cg::thread_group any = b;
  any.sync();
  int *o = out + (b.group_index().y * gridDim.x + b.group_index().x) * b.num_threads() * 4 + 4 * b.thread_rank();
  o[0] = s[(any.thread_rank() + 1) % any.size()];
  o[1] = b.thread_index().x + 10 * b.thread_index().y + 100 * b.group_dim().x + 1000 * b.dim_threads().y;
  o[2] = cg::this_grid().thread_rank();
  o[3] = cg::this_grid().block_rank() + 10 * cg::this_grid().num_blocks() + 100 * cg::this_grid().dim_blocks().y +
         1000 * (cg::this_grid().size() == cg::this_grid().num_threads());
}

template <unsigned N> __global__ void tiles(int *out) {
  auto tile = cg::tiled_partition<N>(cg::this_thread_block());
  cg::thread_block_tile<N> same = tile;
  const int r = tile.thread_rank(), t = threadIdx.x;
  int *o = out + 14 * t;
  o[0] = r + 100 * same.size() + 10000 * tile.meta_group_rank() + 1000000 * tile.meta_group_size();
  o[1] = tile.shfl(t, 1);
  o[2] = same.shfl_up(t, 2);
  o[3] = same.shfl_down(t, 2);
  o[4] = tile.shfl_xor(t, 1);
  o[5] = tile.any(t == 5) + 2 * tile.all(t > 3);
  o[6] = tile.ballot(t % 3 == 0);
  o[7] = tile.match_any(t / 3);
  int all;
  o[8] = tile.match_all(t / N, all) + all;
  o[9] = cg::reduce(tile, t, cg::plus<int>());
  o[10] = cg::reduce(tile, t ^ 5, cg::greater<int>()) - cg::reduce(tile, t ^ 5, cg::less<int>());
  o[11] = cg::inclusive_scan(tile, t);
  o[12] = cg::exclusive_scan(same, t, cg::plus<int>());
  Big big = {{t, 1, 2, 3, 2 * t}};
  o[13] = tile.shfl(big, N - 1).a[4];
  tile.sync();
}

extern "C" __global__ void nested(int *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto quad = cg::tiled_partition<4>(cg::tiled_partition<16>(warp));
  cg::thread_group dynamic = cg::tiled_partition(cg::this_thread_block(), 8);
  cg::thread_group inner = cg::tiled_partition(dynamic, 4);
  dynamic.sync();
  inner.sync();
  out[4 * threadIdx.x] = quad.meta_group_rank() + 10 * quad.meta_group_size() + 100 * quad.thread_rank();
  out[4 * threadIdx.x + 1] = cg::reduce(quad, 1 << threadIdx.x % 8, cg::bit_or<int>());
  out[4 * threadIdx.x + 2] = dynamic.thread_rank() + 10 * dynamic.size() + 100 * inner.thread_rank() + 1000 * inner.size();
  out[4 * threadIdx.x + 3] = cg::this_thread().size() + cg::this_thread().thread_rank();
}

extern "C" __global__ void coalesced(int *out) {
  int *o = out + 10 * threadIdx.x;
  if (threadIdx.x % 3 == 1) {
    cg::coalesced_group g = cg::coalesced_threads();
    const int r = g.thread_rank();
    o[0] = r + 100 * g.size() + 10000 * g.meta_group_size();
    o[1] = g.shfl((int)threadIdx.x, 2);
    o[2] = g.shfl_up((int)threadIdx.x, 1);
    o[3] = g.shfl_down((int)threadIdx.x, 1);
    o[4] = g.ballot(r % 2);
    o[5] = g.any(r == 3) + 2 * g.all(r < 3) + 4 * g.match_any(r / 2);
    o[6] = cg::reduce(g, r, [](int a, int b) { return a * 2 + b; });
    o[7] = cg::exclusive_scan(g, r + 1);
    cg::coalesced_group half = cg::tiled_partition(g, 4);
    o[8] = half.thread_rank() + 10 * half.size() + 100 * half.meta_group_rank();
    double x[2] = {0.5 * r, 1};
    struct Pair { double v; int w; } pair = {0.5 * r, r};
    o[9] = (int)(2 * g.shfl(pair, 3).v) + pair.w + (int)x[1];
  }
}

extern "C" __global__ void partitions(int *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto label = cg::labeled_partition(warp, threadIdx.x % 5);
  auto half = cg::binary_partition(warp, threadIdx.x % 4 == 0);
  int *o = out + 4 * threadIdx.x;
  o[0] = label.thread_rank() + 100 * label.size() + 10000 * label.meta_group_rank() + 100000 * label.meta_group_size();
  o[1] = half.thread_rank() + 100 * half.size();
  o[2] = cg::reduce(label, (int)threadIdx.x, cg::plus<int>());
  o[3] = cg::invoke_one_broadcast(half, [](int x) { return x + (int)threadIdx.x; }, 1000);
  cg::invoke_one(label, [=] { atomicAdd(out + 4 * 32, 1); });
}

extern "C" __global__ void copies(const float *in, float *out, int n) {
  extern __shared__ float buffer[];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, buffer, in, sizeof(float) * n);
  cg::wait(block);
  for (int i = block.thread_rank(); i < n; i += block.size()) out[n - 1 - i] = buffer[i];
  block.sync();
  cg::memcpy_async(cg::tiled_partition<32>(block), buffer, 8, in, n);
  cg::memcpy_async(block, out + n, buffer, cuda::aligned_size_t<4>(4 * 8));
  cg::wait_prior<0>(block);
}

extern "C" __global__ void grid(int *out, int *rounds) {
  cg::grid_group g = cg::this_grid();
  for (int turn = 0; turn < 5; ++turn) {
    out[g.thread_rank()] = rounds[(g.block_rank() + 1) % g.num_blocks()] + g.block_rank();
    g.sync();
    if (threadIdx.x == 0) rounds[g.block_rank()] = out[(g.thread_rank() + blockDim.x) % g.size()];
    cg::sync(g);
  }
  out[g.thread_rank()] += 1000 * g.is_valid();
}
extern "C" __global__ void divergent(int n) {
  auto block = cg::this_thread_block();
  if (threadIdx.x < n) block.sync();
  else cg::tiled_partition<4>(block).shfl(1, 0);
}

// The sum of a block in the style of the samples.
template <int n> __device__ float reduce_tile(cg::thread_block_tile<n> g, float x) {
#pragma unroll
  for (int i = g.size() / 2; i > 0; i /= 2) x += g.shfl_down(x, i);
  return x;
}
extern "C" __global__ void sum(const float *in, float *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  float x = 0;
  for (unsigned long long i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) x += in[i];
  x = reduce_tile<32>(tile, x);
  if (tile.thread_rank() == 0) atomicAdd(out, x);
}
"""

ENTRIES = {
    "block": "*i32",
    "tiles<1>": "*i32",
    "tiles<4>": "*i32",
    "tiles<32>": "*i32",
    "nested": "*i32",
    "coalesced": "*i32",
    "partitions": "*i32",
    "copies": "*kfp32, *fp32, i32",
    "grid": "*i32, *i32",
    "divergent": "i32",
    "sum": "*kfp32, *fp32, i32",
}


@pytest.fixture(scope="module")
def groups(compiler: HostCompiler) -> Kernels:
    return Kernels(GROUPS, ENTRIES)


def rows(out: list[int], width: int) -> list[list[int]]:
    return [out[start : start + width] for start in range(0, len(out), width)]


def test_blocks_and_the_grid(groups: Kernels) -> None:
    """A block waits as __syncthreads does, and knows its shape; the grid counts threads and blocks."""
    out = zeros("i", 6 * 96 * 4)
    assert groups("block", (3, 2), (32, 3), out) == SUCCESS
    for number, row in enumerate(rows(out.tolist(), 4)):
        block, thread = divmod(number, 96)
        expected = [95 - (thread + 1) % 96, thread % 32 + 10 * (thread // 32) + 3200 + 3000, number]
        assert row == [*expected, block + 60 + 200 + 1000]


@pytest.mark.parametrize("n", [1, 4, 32])
def test_tiles(groups: Kernels, n: int) -> None:
    """Every function of a tile stays within it, and its bits count from the tile's first thread."""
    out = zeros("i", 64 * 14)
    assert groups(f"tiles<{n}>", 1, 64, out) == SUCCESS
    for t, row in enumerate(rows(out.tolist(), 14)):
        first, r = t - t % n, t % n
        tile = range(first, first + n)
        bits = [1 << each - first for each in tile]
        ballot = sum(bit for bit, each in zip(bits, tile) if each % 3 == 0)
        match = sum(bit for bit, each in zip(bits, tile) if each // 3 == t // 3)
        flips = [each ^ 5 for each in tile]
        assert row == [
            r + 100 * n + 10000 * (t // n) + 1000000 * (64 // n),
            first + 1 % n,
            t - 2 if r >= 2 else t,
            t + 2 if r + 2 < n else t,
            t ^ 1 if n > 1 else t,
            (5 in tile) + 2 * (first > 3),
            (ballot + 2**31) % 2**32 - 2**31,
            (match + 2**31) % 2**32 - 2**31,
            (sum(bits) + 1 + 2**31) % 2**32 - 2**31,
            sum(tile),
            max(flips) - min(flips),
            sum(range(first, t + 1)),
            sum(range(first, t)),
            2 * (first + n - 1),
        ]


def test_tiles_of_tiles(groups: Kernels) -> None:
    """A tile can be parted again, and so can groups whose size is known at run time only."""
    out = zeros("i", 64 * 4)
    assert groups("nested", 1, 64, out) == SUCCESS
    for t, row in enumerate(rows(out.tolist(), 4)):
        quad = t % 16 // 4
        assert row[0] == quad + 40 + 100 * (t % 4)
        assert row[1] == (0x0F if t % 8 < 4 else 0xF0)
        assert row[2] == t % 8 + 80 + 100 * (t % 4) + 4000
        assert row[3] == 1


def test_coalesced_groups(groups: Kernels) -> None:
    """The threads that are together in a branch are a group, ranked in order; values of any size are exchanged."""
    out = zeros("i", 32 * 10)
    assert groups("coalesced", 1, 32, out) == SUCCESS
    members = [t for t in range(32) if t % 3 == 1]
    size = len(members)
    for t, row in enumerate(rows(out.tolist(), 10)):
        if t not in members:
            assert row == [0] * 10
            continue
        r = members.index(t)
        halves = [members[start : start + 4] for start in range(0, size, 4)]
        half = next(each for each in halves if t in each)
        match = sum(1 << each for each in range(size) if each // 2 == r // 2)
        assert row == [
            r + 100 * size + 10000,
            members[2],
            members[max(r - 1, 0)],
            members[min(r + 1, size - 1)],
            sum(1 << each for each in range(size) if each % 2),
            1 + 4 * match,
            reduce(lambda a, b: a * 2 + b, range(size)),
            sum(range(1, r + 1)),
            half.index(t) + 10 * len(half) + 100 * halves.index(half),
            3 + r + 1,
        ]


def test_partitions(groups: Kernels) -> None:
    """Threads with the same label make a group each; one thread of a group can act for it."""
    out = zeros("i", 32 * 4 + 1)
    assert groups("partitions", 1, 32, out) == SUCCESS
    for t, row in enumerate(rows(out.tolist()[:-1], 4)):
        label = [each for each in range(32) if each % 5 == t % 5]
        half = [each for each in range(32) if (each % 4 == 0) == (t % 4 == 0)]
        assert row[0] == label.index(t) + 100 * len(label) + 10000 * (t % 5) + 500000
        assert row[1:] == [half.index(t) + 100 * len(half), sum(label), 1000 + half[0]]
    assert out[-1] == 5


def test_copies_by_groups(groups: Kernels) -> None:
    """memcpy_async copies all of what was asked for, at any size, and wait makes it visible to the group."""
    for n in (1, 37, 1000):
        data = zeros("f", n + 8)
        for i in range(n + 8):
            data[i] = i
        out = zeros("f", n + 8)
        assert groups("copies", 1, 64, data, out, n, shared=4 * max(n, 8)) == SUCCESS
        assert out.tolist()[:n] == list(range(n - 1, -1, -1))
        assert out.tolist()[n : n + min(n, 8)] == list(range(min(n, 8)))


def test_the_grid_waits_in_a_cooperative_launch(groups: Kernels) -> None:
    """Blocks that are launched together wait for each other, again and again; in another launch that is an error."""
    blocks, block = 7, 33
    rounds = ints(range(blocks))
    values = list(range(blocks))
    out = zeros("i", blocks * block)
    assert groups("grid", blocks, block, out, rounds, cooperative=True) == SUCCESS
    for _ in range(5):
        new = [values[(b + 1) % blocks] + b for b in range(blocks)]
        values = [new[(b + 1) % blocks] for b in range(blocks)]
    assert rounds.tolist() == values
    assert out.tolist() == [1000 + new[i // block] for i in range(blocks * block)]
    assert groups("grid", blocks, block, out, rounds) == GRID_BARRIER


def test_groups_that_wait_in_vain_are_named() -> None:
    """A group that not all threads reach ends the launch with an error, at the line of the user's call."""
    kernel = podium.kernel(GROUPS, "divergent")
    line = GROUPS[: GROUPS.index("block.sync();\n  else")].count("\n") + 1
    with podium.use("cpu"), pytest.raises(LaunchError, match=rf"sync\(\) of a thread_block.*:{line}\b"):
        kernel[1, 6](5)


def test_sum_in_the_style_of_the_samples(groups: Kernels) -> None:
    """Groups are passed to functions, and loops over the grid use its rank."""
    data, out = zeros("f", 1000), zeros("f", 1)
    for i in range(1000):
        data[i] = i
    assert groups("sum", 3, 128, data, out, 1000) == SUCCESS
    assert out[0] == 999 * 500


def test_what_groups_cannot_do_is_refused() -> None:
    """Clusters, several devices and tiles of several warps are refused by name, where they stand in the source."""
    source = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __global__ void k(int *p) {
      cg::cluster_group cluster = cg::this_cluster();
      cg::this_multi_grid().sync();
      auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    }"""
    with pytest.raises(CompileError) as caught:
        Kernels(source, {"k": "*i32"})
    found = [(each.line, each.message) for each in caught.value.diagnostics if "CPU backend has no" in each.message]
    for line, feature in ((4, "clusters"), (5, "several devices"), (6, "tiles of several warps")):
        assert any(where == line and feature in message for where, message in found), (feature, found)


@pytest.mark.parametrize("std", ["c++11", "c++20"])
def test_headers_of_groups_in_every_standard(std: str) -> None:
    """The headers work in the oldest and in a new standard, and without warnings."""
    source = GROUPS.split("namespace cg", 1)[0] + "#include <hip/hip_cooperative_groups.h>\n"
    source += "__global__ void k(int *p) { *p = cooperative_groups::this_thread_block().size(); }"
    flags = ["-Wall", "-Wextra", "-Werror"]
    out = ints([0])
    assert Kernels(source, {"k": "*i32"}, std=std, flags=flags)("k", 1, 5, out) == SUCCESS and out[0] == 5
