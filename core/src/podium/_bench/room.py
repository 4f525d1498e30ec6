"""What fits on a device, of the launches that podium makes by itself: devices are of any size."""

from __future__ import annotations

from podium._target import Device

__all__ = ["block_in", "elements_in", "tile_in"]

_TILES = (16, 8, 4, 2)


def block_in(device: Device, wanted: int) -> int:
    """Return how many threads on the x axis a block has: what is wanted, or the most that the device takes."""
    return min(wanted, device.max_threads, device.max_block[0])


def elements_in(device: Device, wanted: int, block: int, size: int) -> int:
    """Return how many elements, of `size` bytes in all arrays together, one thread each can work on.

    What is wanted, or the most that a grid on the x axis takes, and half of the device's memory.
    """
    return max(1, min(wanted, device.max_grid[0] * block, device.memory // 2 // size))


def tile_in(device: Device, threads: int, rows: int, columns: int, size: int) -> int | None:
    """Return the side of square tiles for a matrix, one block of at most so many threads each; None if none fits.

    `size` is the bytes of shared memory for each thread.
    """
    for tile in _TILES:
        fits = tile <= min(device.max_block[:2]) and tile * tile <= min(threads, device.max_threads)
        grid = -(-columns // tile) <= device.max_grid[0] and -(-rows // tile) <= device.max_grid[1]
        if fits and grid and tile * tile * size <= device.max_shared:
            return tile
    return None
