"""What the kernel driver says of the machine, for a runtime on a modelled device: a folder as /sys/.../kfd/topology.

One processor, and one GPU of an architecture that the runtime can run without what a model lacks (gfx90a is none: there
it installs a trap handler). What is here is what the runtime was seen to need, and the numbers of a plausible device.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
_SIMD_IDS = 0x80001000  # the first id of a GPU's units, as the kernel driver counts them


@dataclass(frozen=True)
class Gpu:
    """What differs between the devices that can be modelled."""

    arch: str
    version: int  # major * 10000 + minor * 100 + stepping
    wave: int
    product: int  # PCI device id


GPUS = {gpu.arch: gpu for gpu in (Gpu("gfx942", 90402, 64, 0x74A1), Gpu("gfx1100", 110000, 32, 0x744C))}


def write_topology(folder: Path, gpu: Gpu) -> Path:
    """Write the files of a machine with one GPU below a folder, and return it."""
    _write(folder / "generation_id", {"": 1})
    _write(folder / "system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    _write_node(folder / "nodes/0", 0, "", _processor(), memory=(0, 16 * GIB))
    _write_node(folder / "nodes/1", 2, gpu.arch, _device(gpu), memory=(1, 8 * GIB))  # the id is the number and 1
    for number, (level, size) in enumerate(((1, 16), (2, 4096))):
        _write_cache(folder / f"nodes/1/caches/{number}", level, size)
    return folder


def _write(path: Path, values: dict[str, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} {value}\n".lstrip() for name, value in values.items()))


def _write_node(folder: Path, gpu_id: int, name: str, properties: dict[str, int], memory: tuple[int, int]) -> None:
    heap, size = memory
    node = int(folder.name)
    _write(folder / "gpu_id", {"": gpu_id})
    (folder / "name").write_text(f"{name}\n")
    _write(folder / "properties", properties)
    bank = {"heap_type": heap, "size_in_bytes": size, "flags": 0, "width": 64, "mem_clk_max": 1600}
    _write(folder / "mem_banks/0/properties", bank)
    link = dict.fromkeys(("type", "version_major", "version_minor", "node_from", "node_to", "weight"), 0)
    link |= {"type": 2, "node_from": node, "node_to": 1 - node, "weight": 20}
    link |= dict.fromkeys(("min_latency", "max_latency", "min_bandwidth", "max_bandwidth"), 0)
    link |= {"recommended_transfer_size": 0, "recommended_sdma_engine_id_mask": 0, "flags": 1}
    _write(folder / "io_links/0/properties", link)


def _write_cache(folder: Path, level: int, size: int) -> None:
    properties = {"processor_id_low": _SIMD_IDS, "level": level, "size": size, "cache_line_size": 128}
    properties |= {"cache_lines_per_tag": 1, "association": 16, "latency": 0, "type": 9}
    _write(folder / "properties", properties)
    with (folder / "properties").open("a") as file:
        file.write(f"sibling_map {','.join(['1'] * 64)}\n")


def _node() -> dict[str, int]:
    names = """
        cpu_cores_count simd_count mem_banks_count caches_count io_links_count p2p_links_count cpu_core_id_base
        simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size array_count
        simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version vendor_id
        device_id location_id domain drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines
        num_sdma_queues_per_engine num_cp_queues max_engine_clk_ccompute
    """
    return dict.fromkeys(names.split(), 0) | {
        "mem_banks_count": 1,
        "io_links_count": 1,
        "max_engine_clk_ccompute": 3000,
    }


def _processor() -> dict[str, int]:
    return _node() | {"cpu_cores_count": os.cpu_count() or 1}


def _device(gpu: Gpu) -> dict[str, int]:
    units = {
        "simd_count": 416,
        "simd_per_cu": 4,
        "cu_per_simd_array": 14,
        "array_count": 8,
        "simd_arrays_per_engine": 1,
    }
    waves = {"wave_front_size": gpu.wave, "max_waves_per_simd": 8, "max_slots_scratch_cu": 32, "lds_size_in_kb": 64}
    names = {"gfx_target_version": gpu.version, "vendor_id": 0x1002, "device_id": gpu.product, "location_id": 1024}
    # With no GWS the runtime refuses cooperative launches; with some it asks for a queue that no model has.
    queues = {"num_cp_queues": 24, "num_sdma_engines": 0, "num_sdma_queues_per_engine": 8, "num_gws": 0}
    more = {"drm_render_minor": 128, "max_engine_clk_fcompute": 1700, "local_mem_size": 8 * GIB, "fw_version": 66}
    more |= {
        "capability": 2 << 12 | 1 << 7,
        "capability2": 0,
        "debug_prop": 0,
        "sdma_fw_version": 8,
    }  # doorbells of kind 2
    more |= {"unique_id": 1234567, "num_xcc": 1, "family_id": 141, "caches_count": 2, "simd_id_base": _SIMD_IDS}
    return _node() | units | waves | names | queues | more
