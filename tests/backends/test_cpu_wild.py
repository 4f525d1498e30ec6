"""Kernels of many styles, written to break the CPU backend: each in a file of cpu_wild, and compared with numpy."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cpu_kernels import host_compiler

import podium
from podium.backend import Entry, HostCompiler, Options, Program

np = pytest.importorskip("numpy", reason="numpy is what the kernels are compared with")

FOLDER = Path(__file__).parent / "cpu_wild"


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")  # no launcher is built for a kernel that is launched once


@functools.cache
def kernels(file: str, *names: str, std: str = "c++17", **signatures: str) -> podium.Module:
    """Compile the kernels of a file in one go: those named, else all that can be found in it."""
    path = FOLDER / file
    module = podium.module(path)
    given = [module.kernel(name, signature=text) for name, text in signatures.items()]
    declared = [*given, *(module[name] for name in names or (() if signatures else module.names))]
    entries = tuple(Entry(each.name, each.signature) for each in declared)
    driver = podium.driver.resolve()
    program = Program(path.read_text(), "cuda", entries, Options.of(std=std), path=str(path))
    return podium.module(driver.compile(program, driver.default_target()))


@pytest.fixture
def random() -> Any:
    return np.random.default_rng(7)


def grid(count: int, block: int) -> int:
    return -(-count // block)


def test_bitonic_sort(random: Any) -> None:
    """Templates with a comparison object, and untyped dynamic shared memory that two arrays share."""
    n, tile = 1000, 256
    sort = kernels("bitonic.cu")["sort_doubles"]
    for descending in (False, True):
        keys, values = random.normal(size=n), np.arange(n, dtype=np.int16)
        before = keys.copy()
        sort[grid(n, tile), tile // 2](keys, values, n, descending, shared=tile * 10)
        for start in range(0, n, tile):
            expected = np.sort(before[start : start + tile])
            assert (keys[start : start + tile] == (expected[::-1] if descending else expected)).all()
        assert (before[values] == keys).all()


@pytest.mark.parametrize("compiler_name", ["g++", "clang++"])
def test_aggregated_atomics(random: Any, compiler_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that leave a loop at different times find each other; one of them does what counts for all.

    The others pass a variable to the shuffle that they have not set, from which clang likes to conclude too much.
    """
    if shutil.which(compiler_name) is None:
        pytest.skip(f"there is no {compiler_name}")
    monkeypatch.setenv("CXX", compiler_name)
    module = kernels.__wrapped__("aggregate.cu")
    numbers = random.integers(1, 2000, 777, dtype=np.int32)

    def steps(number: int) -> int:
        count = 0
        while number != 1:
            number, count = (3 * number + 1 if number % 2 else number // 2), count + 1
        return count

    kept, count = np.zeros(777, np.int32), np.zeros(1, np.int32)
    module["keep_short"][3, 96](numbers, 777, 40, kept, count)
    expected = [each for each in numbers.tolist() if steps(each) <= 40]
    assert sorted(kept[: count[0]].tolist()) == sorted(expected)

    keys, values = random.integers(-2, 9, 1111, dtype=np.int32), random.integers(-99, 99, 1111, dtype=np.int32)
    sums = np.zeros(9, np.int32)
    module["sum_by_key"][grid(1111, 160), 160](keys, values, 1111, sums)
    assert sums.tolist() == [int(values[keys == key].sum()) for key in range(9)]


EXTENT = [("low", "f4"), ("high", "f4"), ("sum", "f8"), ("count", "i8")]


@pytest.mark.parametrize("blocks", [1, 2, 13, 200])
def test_last_block_done(random: Any, blocks: int) -> None:
    """The block with the last ticket sees what all others have written; the counter in a global wraps by itself."""
    kernel = kernels("last_block.cu")["extent"]
    x = random.normal(size=20_011).astype(np.float32)
    x[::97] = np.nan
    partial, total = np.zeros(blocks, EXTENT), np.zeros(1, EXTENT)
    for _ in range(3):
        partial[:], total[:] = np.zeros(1, EXTENT), np.zeros(1, EXTENT)
        kernel[blocks, 99](x, x.size, partial, total)
        assert total["low"][0] == np.nanmin(x) and total["high"][0] == np.nanmax(x)
        assert total["count"][0] == np.count_nonzero(~np.isnan(x))
        assert total["sum"][0] == pytest.approx(np.nansum(x, dtype=np.float64))


def test_work_queue() -> None:
    """Persistent threads take tasks that other threads make, until nothing is pending."""
    kernel = kernels("work_queue.cu")["integrate"]
    capacity, blocks = 1 << 16, 5
    items, ready = np.zeros((capacity, 2)), np.zeros(capacity, np.uint32)
    head, tail, pending = np.zeros(1, np.uint32), np.ones(1, np.uint32), np.ones(1, np.uint32)
    items[0], ready[0] = (0.0, 2.0), 1
    result, taken = np.zeros(1), np.zeros(blocks, np.uint32)

    class Queue(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ("items", "head", "tail", "ready", "pending")]

    queue = Queue(*(each.ctypes.data for each in (items, head, tail, ready, pending)))
    kernel[blocks, 64](queue, 1e-9, result, taken)
    x = np.linspace(0.0, 2.0, 2_000_001)
    y = np.sin(1.0 / (x * x + 0.01)) * np.exp(-x)
    assert result[0] == pytest.approx(((y[1:] + y[:-1]) / 2).sum() * 1e-6, abs=1e-7)
    assert pending[0] == 0 and head[0] == tail[0] == taken.sum() > 1000


def test_breadth_first_search(random: Any) -> None:
    """Frontiers grow through queues in shared memory that may overflow."""
    kernel = kernels("bfs.cu")["expand"]
    n = 3000
    degrees = random.integers(0, 12, n)
    degrees[:5] = 400  # more than a block's queue holds
    rows = np.concatenate(([0], np.cumsum(degrees))).astype(np.int32)
    columns = random.integers(0, n, rows[-1], dtype=np.int32)
    distance = np.full(n, -1, np.int32)
    frontier, size, level = np.zeros(n, np.int32), 1, 0
    distance[0] = 0
    while size:
        level += 1
        following, count = np.zeros(n, np.int32), np.zeros(1, np.int32)
        kernel[grid(size, 64), 64](rows, columns, frontier, size, level, distance, following, count)
        frontier, size = following, int(count[0])

    expected, front, level = np.full(n, -1), [0], 0
    expected[0] = 0
    while front:
        level += 1
        reached = {int(each) for v in front for each in columns[rows[v] : rows[v + 1]] if expected[each] < 0}
        front = sorted(reached)
        expected[front] = level
    assert (distance == expected).all()


def philox(seed: int, sequence: Any, first: int, rounds: int = 10) -> Any:
    """Compute Philox 4x32 for many sequences."""
    c = [np.full(sequence.shape, first, np.uint64), np.zeros_like(sequence), sequence & 0xFFFFFFFF, sequence >> 32]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(rounds):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> 32) ^ c[1] ^ np.uint64(k[0]), b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ np.uint64(k[1]), a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1).astype(np.uint32)


def test_philox() -> None:
    """Random numbers are those of the definition, bit for bit, and so is what is counted with them."""
    module = kernels("philox.cu")
    seed, n, draws = 0x1234_5678_9ABC_DEF0, 77, 5
    out = np.zeros((n, draws, 4), np.uint32)
    module["raw_numbers"][grid(n, 32), 32](out, n, draws, seed)
    sequences = np.arange(n, dtype=np.uint64)
    expected = np.stack([philox(seed, sequences, first) for first in range(draws)], axis=1)
    assert (out == expected).all()

    inside = np.zeros(1, np.uint64)
    module["inside_circle"][grid(n, 32), 32](n, draws, seed, inside)
    points = (expected >> 8).astype(np.float32).reshape(-1, 2) / np.float32(1 << 24)
    assert inside[0] == np.count_nonzero((points.astype(np.float64) ** 2).sum(axis=1) < 1)


@pytest.mark.parametrize("n", [1, 64, 150])
def test_n_body(random: Any, n: int) -> None:
    """float4 tiles in dynamic shared memory that is declared outside of all functions."""
    kernel = kernels("nbody.cu")["accelerations"]
    bodies, result = random.normal(size=(n, 4)).astype(np.float32), np.zeros((n, 3), np.float32)
    kernel[grid(n, 64), 64](bodies, result, n, 0.01, shared=64 * 16)
    r = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
    weights = bodies[None, :, 3] / ((r**2).sum(axis=2) + 0.01) ** 1.5
    np.testing.assert_allclose(result, (r * weights[:, :, None]).sum(axis=1), rtol=1e-4, atol=1e-3)


def test_convolution(random: Any) -> None:
    """Weights in constant memory, references to planes of shared memory, and a struct of the dialect by value."""
    kernel = kernels("convolution.cu")["convolve"]
    z, y, x = 5, 11, 19
    data, out = random.normal(size=(z, y, x)).astype(np.float32), np.zeros((z, y, x), np.float32)
    kernel[(grid(x, 8), grid(y, 4)), (8, 4)](data, out, np.array([(x, y, z)], "i4,i4,i4")[0])
    weights = np.array([[[0, 1, 0], [1, 2, 1], [0, 1, 0]]] * 3, np.float64)
    weights[1] = [[1, 2, 1], [2, -24, 2.5], [1, 2, 1]]
    weights[2, 2, 2] = 0.5
    wide = np.pad(data.astype(np.float64), 1, mode="edge")
    expected = sum(
        weights[dz, dy, dx] * wide[dz : dz + z, dy : dy + y, dx : dx + x]
        for dz in range(3)
        for dy in range(3)
        for dx in range(3)
    )
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_string_matching() -> None:
    """Pointers to char with goto, a switch that falls through, and characters that are negative."""
    module = kernels("match.cu")
    text = ("the cat 42 sat on 7 mats, 4ever and a day " * 9).encode() + bytes([0xE4, 0xF6]) + b" end"
    patterns = [b"cat", b"s?t", b"t*s", b"zebra", b"*d", b""]
    found = np.zeros((len(patterns), len(text)), np.uint8)
    module["find"][(2, len(patterns)), 100](text, len(text), b"\0".join(patterns) + b"\0", found)

    def matches(at: int, pattern: bytes) -> bool:
        expression = re.escape(pattern.decode()).replace(r"\?", ".").replace(r"\*", ".*?")
        return re.compile(expression, re.DOTALL).match(text.decode("latin1"), at) is not None

    for row, pattern in enumerate(patterns):
        if b"*" not in pattern:  # a star reaches 64 characters at most
            assert found[row].tolist() == [matches(i, pattern) for i in range(len(text))]
    assert found[2].sum() > 20 and found[4].sum() > 20

    counts = np.zeros(3, np.int32)
    aligned = np.frombuffer(text, np.int8).copy()
    module["words"][grid(len(text), 16 * 32), 32](aligned, len(text), counts)
    words = text.split()
    numbers = sum(chr(word[0]).isdigit() for word in words)
    assert counts.tolist() == [len(words) - numbers, numbers, 2]


def test_recursion_and_objects(random: Any) -> None:
    """Recursive functions, function pointers, virtual functions, new and delete, and lambdas."""
    module = kernels("recursion.cu")
    count = np.zeros(1, np.int32)
    module["count_queens"][1, 32](8, count)
    assert count[0] == 92

    rows = random.integers(0, 50, (64, 37), dtype=np.int32)
    expected, depths = np.sort(rows, axis=1), np.zeros(64, np.int32)
    module["sort_rows"][2, 32](rows, 37, depths)
    assert (rows == expected).all() and depths.min() >= 5

    areas, deleted, folded = np.zeros(50), np.zeros(1, np.int32), np.zeros(50, np.int32)
    module["objects"][1, 50](areas, deleted, folded)
    assert areas.tolist() == [3.0 * i * i if i % 2 else 0.5 * i for i in range(50)]
    assert deleted[0] == 25

    def fold(start: int) -> int:
        value = start
        for k in range(1, 5):
            value = value * k if (start + k) % 2 else value + k
        return value

    assert folded.tolist() == [fold(i) for i in range(50)]


SPMV = "rows: i64, Ap: *ki64, Aj: *ki64, Ax: *kfp64, x: *kfp64, y: *fp64, alpha: fp64, beta: fp64"


def test_sparse_product(random: Any) -> None:
    """Several rows in a warp, each with a shuffle mask and trip counts of its own; the kernels come from a macro."""
    rows, columns = 133, 90
    dense = random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.1)
    dense[7] = random.normal(size=columns)
    dense[8] = 0
    starts = np.concatenate(([0], np.cumsum(np.count_nonzero(dense, axis=1)))).astype(np.int64)
    index, values = np.nonzero(dense)[1].astype(np.int64), dense[dense != 0]
    x, y = random.normal(size=columns), random.normal(size=rows)
    module = kernels("spmv.cu", spmv_1=SPMV, spmv_4=SPMV, spmv_32=SPMV)
    for name in ("spmv_1", "spmv_4", "spmv_32"):
        result = y.copy()
        module[name][3, 64](rows, starts, index, values, x, result, 2.0, 0.5)
        np.testing.assert_allclose(result, 2 * dense @ x + 0.5 * y, rtol=1e-12, atol=1e-12)


def test_segmented_scan(random: Any) -> None:
    """An operation that does not commute, over structs that go through shuffles member by member."""
    n = 1001
    maps, heads = random.integers(-3, 4, (n, 2), dtype=np.int32), (random.random(n) < 0.05).astype(np.uint8)
    out = np.zeros_like(maps)
    kernels("segmented_scan.cu")["scan_maps"][1, 96](maps, heads, out, n)
    a, b = np.int32(1), np.int32(0)
    with np.errstate(over="ignore"):
        for i in range(n):
            p, q = maps[i]
            a, b = (p, q) if heads[i] else (a * p, b * p + q)
            assert out[i].tolist() == [a, b], i


@pytest.mark.parametrize("n", [1, 2, 77, 128])
def test_early_returns_around_barriers(random: Any, n: int) -> None:
    """Threads that have returned are not waited for, whichever they are and however many barriers follow."""
    module = kernels("odd_even.cu")
    data = random.integers(0, 1000, (3, n), dtype=np.int32)
    expected = np.sort(data, axis=1)
    module["merge_sort"][3, 160](data, n, shared=4 * n)
    assert (data == expected).all()

    shorts, rounds = random.integers(-99, 99, (3, n)).astype(np.int16), np.zeros(3, np.int32)
    expected = np.sort(shorts, axis=1)
    module["transposition_sort"][3, 33](shorts, n, rounds)
    assert (shorts == expected).all() and (rounds <= n + 2).all()


def test_game_of_life(random: Any) -> None:
    """Cells as bits: packed by ballots, and added up as words."""
    module = kernels("life.cu")
    rows, words = 20, 3
    cells = random.random((rows, 32 * words)) < 0.4
    board = np.packbits(cells, axis=1, bitorder="little").view(np.uint32)

    def step(cells: Any) -> Any:
        around = sum(np.roll(cells, (dy, dx), (0, 1)).astype(int) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - cells
        return (around == 3) | (cells & (around == 2))

    out = np.zeros_like(board)
    module["by_ballot"][grid(rows * words * 32, 128), 128](board, out, words, rows)
    assert (np.unpackbits(out.view(np.uint8), axis=1, bitorder="little") == step(cells)).all()

    module["by_words"][1, (words, rows)](board, words, rows, 7, shared=4 * rows * words)
    for _ in range(7):
        cells = step(cells)
    assert (np.unpackbits(board.view(np.uint8), axis=1, bitorder="little") == cells).all()


def test_atomics_by_compare_and_swap(random: Any) -> None:
    """Doubles by their bits, a function given as a lambda, and 16 bits within a word."""
    n = 1234
    x, y = random.integers(-9, 9, n).astype(np.float64), random.integers(-9, 9, n).astype(np.float64)
    total, product, largest, residues = np.zeros(1), np.ones(1), np.zeros(1, np.float32), np.zeros(8, np.uint16)
    kernels("dot_cas.cu")["dot"][6, 50](x, y, n, total, product, largest, residues)
    assert total[0] == x @ y and product[0] == 1.5**6 and largest[0] == np.abs(x).max()
    assert residues.tolist() == [*np.bincount(np.arange(n) % 7).tolist(), 0]


def test_lock_free_structures(random: Any) -> None:
    """Union-find, a hash table with open addressing, and locks that lanes of one warp take one after another."""
    module = kernels("components.cu")
    n, edges = 2000, random.integers(0, 2000, (1500, 2), dtype=np.int32)
    parent = np.arange(n, dtype=np.int32)
    module["unite"][grid(1500, 128), 128](edges, 1500, parent)
    module["flatten"][4, 128](parent, n)
    label = np.arange(n)
    while True:
        before = label.copy()
        smaller = np.minimum(label[edges[:, 0]], label[edges[:, 1]])
        np.minimum.at(label, edges[:, 0], smaller)
        np.minimum.at(label, edges[:, 1], smaller)
        if (label == before).all():
            break
    assert (parent == label).all()

    keys = random.integers(0, 150, 3000, dtype=np.uint32)
    slots = np.full(256, 2**64 - 1, np.uint64)
    module["count_keys"][grid(3000, 100), 100](keys, 3000, slots, 255)
    used = slots[slots != 2**64 - 1]
    # the first who comes puts the key with a count of 0, and every one adds 1
    assert {int(each >> 32): int(each & 0xFFFFFFFF) for each in used} == dict(zip(*np.unique(keys, return_counts=True)))

    locks, sizes, lists = np.zeros(7, np.int32), np.zeros(7, np.int32), np.zeros((7, 3000), np.uint32)
    module["under_lock"][grid(3000, 100), 100](keys, 3000, locks, sizes, lists, 7, 3000)
    for bucket in range(7):
        assert sorted(lists[bucket, : sizes[bucket]]) == sorted(keys[keys % 7 == bucket])


def test_fourier_transform(random: Any) -> None:
    """Recursion in templates, arrays by reference, operators on the dialect's vector types."""
    module = kernels("fft.cu")
    for name, length, threads in (("fft_512", 512, 64), ("fft_256", 256, 64)):
        signal = (random.normal(size=(3, length)) + 1j * random.normal(size=(3, length))).astype(np.complex64)
        out = np.zeros((3, length, 2), np.float32)
        module[name][3, threads](signal.view(np.float32), out)
        np.testing.assert_allclose(out.view(np.complex64)[..., 0], np.fft.fft(signal), atol=2e-3)


def test_collectives(random: Any) -> None:
    """Temporary storage of nested types in a union in shared memory, chosen by policies, in blocks of three axes."""
    module = kernels("collectives.cu", "tiles<double, BY_RAKING>", "tiles<int, BY_WARPS>")
    tile, n = 7 * 5 * 3 * 4, 1500
    for name, kind in (("tiles<double, BY_RAKING>", np.float64), ("tiles<int, BY_WARPS>", np.int32)):
        values = random.integers(-50, 3, n).astype(kind)
        sums, firsts = np.zeros(grid(n, tile), kind), np.zeros(grid(n, tile), np.int32)
        module[name][grid(n, tile), (7, 5, 3)](values, n, sums, firsts)
        for block, start in enumerate(range(0, n, tile)):
            part = values[start : start + tile]
            assert sums[block] == part.sum()
            assert firsts[block] == (start + np.argmax(part > 0) if (part > 0).any() else 0x7FFFFFFF)


def test_accessors(random: Any) -> None:
    """Tensors by value as templates of pointer, sizes and strides; overloads of abs, max and floor by type."""
    module = kernels("accessor.cu")

    def accessor(array: Any) -> Any:
        class Accessor(ctypes.Structure):
            _fields_ = [
                ("data", ctypes.c_void_p),
                ("sizes", ctypes.c_longlong * array.ndim),
                ("strides", ctypes.c_longlong * array.ndim),
            ]

        strides = [each // array.itemsize for each in array.strides]
        return Accessor(array.ctypes.data, array.shape, (ctypes.c_longlong * array.ndim)(*strides))

    for name, kind in (("sample_float", np.float32), ("sample_double", np.float64)):
        image = random.normal(size=(9, 13, 2)).astype(kind).transpose(2, 0, 1)  # channels last
        where = (random.random((31, 2)) * (11, 15) - 1).astype(kind)
        out = np.zeros((31, 2), kind)
        module[name][2, 32](accessor(image), accessor(where), accessor(out))
        wide = np.pad(image, ((0, 0), (2, 3), (2, 3)))
        low = np.floor(where).astype(int)
        f = where - low
        y, x = low[:, 0] + 2, low[:, 1] + 2
        top = wide[:, y, x] * (1 - f[:, 1]) + wide[:, y, x + 1] * f[:, 1]
        bottom = wide[:, y + 1, x] * (1 - f[:, 1]) + wide[:, y + 1, x + 1] * f[:, 1]
        np.testing.assert_allclose(out, (top * (1 - f[:, 0]) + bottom * f[:, 0]).T, atol=1e-5)


def test_alignment(random: Any) -> None:
    """Diagonals along which ever other threads are at work, with references that turn round three rows."""
    pairs = [
        (random.integers(0, 4, random.integers(1, 100)), random.integers(0, 4, random.integers(1, 90)))
        for _ in range(5)
    ]
    scoring = np.array([(3, -2, 5, 1)], "i1,i1,i1,i1")[0]

    def joined(side: int) -> tuple[Any, Any]:
        texts = [pair[side] for pair in pairs]
        offsets = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int32)
        return np.concatenate(texts).astype(np.int8), offsets

    def score(a: Any, b: Any) -> int:
        none = -(10**6)
        h = np.zeros((len(a) + 1, len(b) + 1), int)
        e, f = np.full_like(h, none), np.full_like(h, none)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 5)
                f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 5)
                h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])
        return int(h.max())

    left, right = joined(0), joined(1)
    best = np.zeros(5, np.int32)
    kernels("wavefront.cu")["align"][5, 48](left[0], right[0], left[1], right[1], scoring, best)
    assert best.tolist() == [score(a, b) for a, b in pairs]


def test_barriers_in_odd_places(random: Any) -> None:
    """In functions, recursion, destructors, conditions and heads of loops, between declarations of every kind."""
    module = kernels("barriers.cu")
    n = 96
    given = random.integers(0, 100, n, dtype=np.int32)
    t = np.arange(n)

    def run(name: str, *extra: int, count: int = n) -> Any:
        out = np.full(count, -7, np.int32)
        module[name][1, count](given[:count].copy(), out, *extra)
        return out

    def same(found: Any, expected: Any) -> bool:
        return bool((found == expected).all())

    assert same(run("called"), np.roll(given, -1))
    assert same(run("recursive"), np.roll(given, -3))
    assert same(run("indirect"), np.roll(given, -2))
    assert same(run("conditions"), np.roll((given + 7) // 8 * 8, -1) + 10000 * 136)

    a = given.astype(int)
    second = a + np.roll(3 * a, -1)
    sums = second + (a + 1 + a % 10) + a // 10 + np.array([1, 2, 3, 4])[t % 4] + (2 + second) + (2 * a + 6) + 2 * a + 2
    sums += np.where(a != 0, 3 * a, -1)
    inner = np.roll(sums, -2)
    assert same(run("declarations", n), inner + inner % 3 + second)

    for count in (95, 96, 64):
        assert same(run("loops", count, count=count), loops(given[:count].astype(int)))

    expected = []
    for i, value in enumerate(given.tolist()):
        step = 0
        while value > step:
            value, step = value - (i % 2 == 0 and value > 90), step + 1
        expected.append(step * 1000 + value)
    assert run("leavers", n).tolist() == expected

    v = a
    for _ in range(2):
        v = np.roll(v, -1) + (t >= 64)
    assert same(run("odds", n), v + 1 + 3 * (t == 0))
    constants = sum(range(2, 14))
    assert same(run("look_alikes", n), np.roll(a + t + constants, -1) + t + constants)
    box = np.roll(given[:60].reshape(4, 3, 5), (-1, -2, -3), (0, 1, 2))[::-1, :, ::-1]
    out = np.zeros(60, np.int32)
    module["axes"][1, (5, 3, 4)](given[:60].copy(), out)
    assert same(out, box.ravel())
    s = given.copy()
    for warp in (0, 64):
        s[warp : warp + 32] = np.roll(s[warp : warp + 32], -3)
    assert same(run("halves", n), s[::-1] + (t // 32 % 2 == 0))


def loops(v: Any) -> Any:
    """Compute what the kernel of this name does, all threads at once."""
    n = v.size
    t, steps = np.arange(n), np.zeros(n, int)
    for i in range(5):
        v = np.roll(v, -1) if i % 2 else np.roll(v, 2) + i
    while (v % 5).any():
        uneven = v % 5 != 0
        v, steps = v + uneven, steps + uneven
    for _ in range(5):
        s = v
        for k in range(3):
            v = v + np.where(k < t % 4, s[(t + k) % n] & 1, 0)
    v = (v[::-1], np.roll(v + 1, -3) + 7, v + 7)[n % 3]
    return np.roll(v, -3) + 100000 * steps


def test_forms_of_shared_memory(random: Any) -> None:
    """Every order of the words in a declaration, types that are defined in it, templates, and arrays by offsets."""
    module = kernels("shared_forms.cu")
    out = np.zeros(64)
    module["forms"][1, 64](out, shared=64 * 8)
    assert out.tolist() == [23 * (63 - t) + 14.5 for t in range(64)]
    for n in (5, 31):
        x, result = random.random(n).astype(np.float32), np.zeros(n, np.float32)
        module["carved"][1, 32](x, result, n, shared=14 * n + 8)
        np.testing.assert_allclose(result, x[::-1] + (np.arange(n) + 1) % n + 2 * x, rtol=1e-6)
    total = np.zeros(1, np.int32)
    module["volatile_dynamic"][1, 512](total, shared=2048)
    assert total[0] == 511 * 256


@pytest.mark.parametrize("std", ["c++17", "c++20"])
def test_names_of_others(std: str) -> None:
    """A kernel may have for its own whatever the C library and the backend's headers call something."""
    out = np.zeros(4, np.int32)
    kernels("names.cu", std=std)["everything"][1, 4](out, 4)
    assert out.tolist() == [28 + 20 + 5 + 12 + 24 + 13 + 15 + 30 + 600] * 4


def test_lanes_that_take_turns(random: Any) -> None:
    """Loops over those who are still there, tiles at different places, and locks of a warp."""
    module = kernels("waterfall.cu")
    order, following = np.zeros(32, np.int32), np.zeros(1, np.int32)
    module["turns"][1, 32](order, following)
    assert order.tolist() == list(range(32))

    keys, rounds, groups = random.integers(0, 5, 64, dtype=np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    module["waterfall"][1, 64](keys, rounds, groups)
    for warp in range(0, 64, 32):
        here = keys[warp : warp + 32].tolist()
        distinct = list(dict.fromkeys(here))
        assert rounds[warp : warp + 32].tolist() == [distinct.index(key) + 1 for key in here]
        assert groups[warp : warp + 32].tolist() == [here.count(key) for key in here]

    values = random.integers(-5, 6, 333, dtype=np.int32)
    positives, others, counts = np.zeros(333, np.int32), np.zeros(333, np.int32), np.zeros(2, np.int32)
    module["partition"][6, 64](values, positives, others, counts, 333)
    assert sorted(positives[: counts[0]]) == sorted(values[values > 0])
    assert sorted(others[: counts[1]]) == sorted(values[values <= 0])

    lengths, sums = random.integers(0, 9, 64, dtype=np.int32), np.zeros(64, np.int32)
    module["shrinking"][1, 64](lengths, sums)
    for i, length in enumerate(lengths):
        here = lengths[i // 32 * 32 :][:32]
        assert sums[i] == sum(np.count_nonzero(here > step) for step in range(length))

    x, out = random.random(32), np.zeros(32)
    module["tiles"][1, 32](x, out)
    last = np.concatenate((x[27:32], x[29:32]))
    np.testing.assert_allclose(
        out, np.concatenate((np.full(8, x[:8].sum()), np.full(8, x[15]), x[16:24].cumsum(), last))
    )

    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    module["warp_lock"][7, 96](lock, total)
    assert total[0] == 7 * 96
