"""Warps on the CPU backend: shuffles, votes, masks, and lanes that go their own ways."""

from __future__ import annotations

import array
import random

import pytest
from cpu_kernels import BARRIER, MASK, SUCCESS, Kernels, host_compiler, ints, zeros

from podium.backend import HostCompiler


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


WARPS = """
#include <cuda_fp16.h>
extern "C" __global__ void shuffles(const int *in, int *out, int argument, int width) {
  const int i = threadIdx.x, v = in[i], all = 0xffffffff;
  out[4 * i] = __shfl_sync(all, v, argument, width);
  out[4 * i + 1] = __shfl_up_sync(all, v, argument, width);
  out[4 * i + 2] = __shfl_down_sync(all, v, argument, width);
  out[4 * i + 3] = __shfl_xor_sync(all, v, argument, width);
}
extern "C" __global__ void types(double *out) {
  const unsigned all = 0xffffffffu;
  const int i = threadIdx.x;
  double sum = __shfl_sync(all, i * 0.5, 3);
  sum += __shfl_sync(all, (long long)i << 40, 3);
  sum += __shfl_sync(all, (unsigned char)i, 3);
  sum += __shfl_sync(all, i * 0.25f, 3);
  sum += (float)__shfl_sync(all, __float2half(i), 3);
  half2 pair = __shfl_sync(all, __floats2half2_rn(i, 2 * i), 3);
  out[i] = sum + __high2float(pair);
}
extern "C" __global__ void ballots(unsigned *out) {
  const int i = threadIdx.x, lane = i % 32;
  unsigned *o = out + 10 * i;
  o[0] = __ballot_sync(0xffffffff, i % 3 == 0);
  o[1] = __any_sync(0xffffffff, lane == 9);
  o[2] = __all_sync(0xffffffff, lane < 31) + 2 * __all_sync(0xffffffff, lane < 32);
  o[3] = __match_any_sync(0xffffffff, lane / 5);
  int same;
  o[4] = __match_all_sync(0xffffffff, i / 32, &same) + same;
  o[5] = __match_all_sync(0xffffffff, lane, &same) + same;
  o[6] = __reduce_add_sync(0xffffffff, lane) + __reduce_max_sync(0xffffffffu, lane);
  o[7] = __reduce_xor_sync(0xffffffff, 1u << lane) + __reduce_or_sync(0xffffffff, 0u) +
         __reduce_and_sync(0xffffffff, ~0u);
  o[8] = __reduce_min_sync(0xffffffff, lane - 7);
  o[9] = __activemask();
}
extern "C" __global__ void apart(int *out) {
  const int lane = threadIdx.x % 32;
  int v = threadIdx.x;
  if (lane < 8) {
    for (int k = 4; k > 0; k /= 2) v += __shfl_down_sync(0xff, v, k);
    v = __shfl_sync(0xff, v, 0);
  } else if (lane % 2) {
    v = __ballot_sync(0xaaaaaa00, lane > 20);
  } else {
    __syncwarp(0x55555500);
    v = __shfl_xor_sync(0x55555500, v, 2);
  }
  __syncwarp();
  out[threadIdx.x] = v;
}
extern "C" __global__ void order(int *out) {
  // lanes 0 to 15 go on to their next shuffle while the others have not looked at the first one yet
  int v = threadIdx.x;
  v = __shfl_xor_sync(0xffffffff, v, 16);
  if (threadIdx.x < 16)
    for (int i = 0; i < 5; ++i) v = __shfl_xor_sync(0xffff, v, 1) + 100;
  out[threadIdx.x] = v;
}
extern "C" __global__ void block_sum(const float *in, float *out) {
  __shared__ float parts[32];
  float v = in[threadIdx.x];
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = v;
  __syncthreads();
  if (threadIdx.x < warpSize) {
    v = threadIdx.x < blockDim.x / warpSize ? parts[threadIdx.x] : 0;
    for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
    if (threadIdx.x == 0) *out = v;
  }
}
extern "C" __global__ void partial_warp(int *out) {
  if (threadIdx.x % 32 == 5) return;
  int v = __ballot_sync(0xffffffff, 1);
  out[threadIdx.x] = v;
}
extern "C" __global__ void exits_later(int *out) {
  // lanes wait for lane 31, which returns without ever taking part
  if (threadIdx.x == 31) return;
  out[threadIdx.x] = __popc(__ballot_sync(0xffffffff, 1));
}
extern "C" __global__ void without_itself(int *out) { *out = __shfl_sync(0xfffffffe, 1, 0); }
extern "C" __global__ void other_masks(int *out) {
  *out = threadIdx.x % 2 ? __ballot_sync(0xffffffff, 1) : __ballot_sync(0x55555555 | 2, 1);
}
extern "C" __global__ void aggregated(int *counter, int *slots, int n) {
  const int i = threadIdx.x;
  if (i % 3 != 0) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1, lane = i % 32;
    int base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    slots[base + __popc(active & ((1u << lane) - 1))] = i;
  }
  if (i >= n) return;
  __syncthreads();
}
extern "C" __global__ void two_places(unsigned *out) {
  const int lane = threadIdx.x % 32;
  unsigned first = 0;
  if (lane < 10) first = __activemask();
  const unsigned second = __activemask();
  out[2 * threadIdx.x] = first, out[2 * threadIdx.x + 1] = second;
}
"""


@pytest.fixture(scope="module")
def warps() -> Kernels:
    return Kernels(
        WARPS,
        {
            "shuffles": "in: *ki32, out: *i32, argument: i32, width: i32",
            "types": "out: *fp64",
            "ballots": "out: *u32",
            "apart": "out: *i32",
            "order": "out: *i32",
            "block_sum": "in: *kfp32, out: *fp32",
            "partial_warp": "out: *i32",
            "exits_later": "out: *i32",
            "without_itself": "out: *i32",
            "other_masks": "out: *i32",
            "aggregated": "counter: *i32, slots: *i32, n: i32",
            "two_places": "out: *u32",
        },
    )


@pytest.mark.parametrize("width", [1, 2, 8, 32])
@pytest.mark.parametrize("argument", [0, 1, 5, 16, 31])
def test_shuffles(warps: Kernels, argument: int, width: int) -> None:
    """The four shuffles move values within segments, and lanes that would look beyond one keep their own."""
    source = random.Random(3)
    values = [source.randrange(1 << 30) for _ in range(64)]
    out = ints([0] * 256)
    assert warps("shuffles", 1, 64, ints(values), out, argument, width) == SUCCESS
    for i in range(64):
        lane, warp = i % 32, values[i // 32 * 32 :]
        begin = lane - lane % width
        expected = [
            warp[begin + argument % width],
            warp[lane - argument if lane - argument >= begin else lane],
            warp[lane + argument if lane + argument < begin + width else lane],
            warp[lane ^ argument if lane ^ argument < begin + width else lane],
        ]
        assert out[4 * i : 4 * i + 4].tolist() == expected, f"lane {lane}"


def test_shuffles_of_other_types(warps: Kernels) -> None:
    """A shuffle moves any value of up to eight bytes."""
    out = zeros("d", 32)
    assert warps("types", 1, 32, out) == SUCCESS
    assert out.tolist() == [1.5 + (3 << 40) + 3 + 0.75 + 3 + 6] * 32


def test_votes_and_reductions(warps: Kernels) -> None:
    """Ballots, matches and reductions give each lane what all lanes have brought."""
    out = zeros("I", 640)
    assert warps("ballots", 1, 64, out) == SUCCESS
    for i in range(64):
        first, lane = i // 32 * 32, i % 32
        expected = [
            sum(1 << k for k in range(32) if (first + k) % 3 == 0),
            1,
            2,
            sum(1 << k for k in range(32) if k // 5 == lane // 5),
            0,  # all bits, plus one
            0,
            sum(range(32)) + 31,
            (0xFFFFFFFF + 0 + 0xFFFFFFFF) & 0xFFFFFFFF,
            -7 & 0xFFFFFFFF,
            0xFFFFFFFF,
        ]
        assert out[10 * i : 10 * i + 10].tolist() == expected


def test_parts_of_a_warp_go_their_own_ways(warps: Kernels) -> None:
    """Groups of lanes with masks of their own do not disturb each other, and meet again."""
    out = ints([0] * 64)
    assert warps("apart", 1, 64, out) == SUCCESS
    for i in range(64):
        lane, first = i % 32, i // 32 * 32
        if lane < 8:
            expected = sum(range(first, first + 8))
        elif lane % 2:
            expected = sum(1 << k for k in range(21, 32, 2)) - (1 << 32)
        else:
            expected = i ^ 2
        assert out[i] == expected


def test_results_are_kept_until_they_are_read(warps: Kernels) -> None:
    """Lanes that hurry ahead to another shuffle do not overwrite what slower lanes still have to read."""
    out = ints([0] * 32)
    assert warps("order", 1, 32, out) == SUCCESS
    assert out.tolist() == [((i ^ 16) ^ 1) + 500 for i in range(16)] + [i ^ 16 for i in range(16, 32)]


def test_sum_of_a_block_by_shuffles(warps: Kernels) -> None:
    """The usual reduction in two steps: within warps, and then in the first warp while the others have left."""
    for threads in (32, 96, 1024):
        out = zeros("f", 1)
        assert warps("block_sum", 1, threads, array.array("f", range(threads)), out) == SUCCESS
        assert out[0] == sum(range(threads))


def test_lanes_that_are_not_there(warps: Kernels) -> None:
    """Lanes that have returned, and those beyond the end of the block, are not waited for."""
    out = ints([0] * 40)
    assert warps("partial_warp", 1, 40, out) == SUCCESS
    whole = ((1 << 32) - 1 - (1 << 5)) - (1 << 32)
    assert out.tolist() == [0 if i % 32 == 5 else whole if i < 32 else 0xFF - (1 << 5) for i in range(40)]
    assert warps("exits_later", 1, 32, out) == SUCCESS
    assert out.tolist()[:31] == [31] * 31


def test_wrong_masks_are_errors(warps: Kernels) -> None:
    """A mask without the caller, and lanes that wait with different masks, are errors instead of a hang."""
    assert warps("without_itself", 1, 32, ints([0])) == MASK
    assert warps("other_masks", 1, 32, ints([0])) == BARRIER


def test_active_mask_in_divergent_code(warps: Kernels) -> None:
    """Lanes that ask for the active mask in a branch are told of each other, and not of those elsewhere."""
    counter, slots = ints([0]), ints([-1] * 128)
    assert warps("aggregated", 1, 128, counter, slots, 1000) == SUCCESS
    wanted = [i for i in range(128) if i % 3]
    assert counter[0] == len(wanted)
    assert sorted(slots.tolist()[: len(wanted)]) == wanted
    out = zeros("I", 128)
    assert warps("two_places", 1, 64, out) == SUCCESS
    for first in range(0, 64, 32):
        assert out.tolist()[2 * first : 2 * first + 64 : 2] == [0x3FF] * 10 + [0] * 22
        # Which lanes meet at the second place is open; those that do agree on it.
        masks = out.tolist()[2 * first + 1 : 2 * first + 64 : 2]
        for lane, mask in enumerate(masks):
            assert mask >> lane & 1
            assert {masks[other] for other in range(32) if mask >> other & 1} == {mask}
