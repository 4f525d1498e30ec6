"""The launch attributes that are given by name, with their numbers in CUlaunchAttributeID."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "CARVEOUT",
    "CLUSTER",
    "CLUSTER_POLICY",
    "COOPERATIVE",
    "DEPENDENT",
    "IGNORE",
    "KEYS",
    "MEMORY_DOMAIN",
    "PREFERRED_CLUSTER",
    "PRIORITY",
]

IGNORE, COOPERATIVE, CLUSTER, CLUSTER_POLICY, DEPENDENT = 0, 2, 4, 5, 6
PRIORITY, MEMORY_DOMAIN, PREFERRED_CLUSTER, CARVEOUT = 8, 10, 11, 14

KEYS: Mapping[str, int] = MappingProxyType(
    {
        "cluster_scheduling_policy": CLUSTER_POLICY,
        "memory_sync_domain": MEMORY_DOMAIN,
        # No attribute of a launch: loading opts in to what the device has, and 0 refuses to make use of that.
        "non_portable_cluster": IGNORE,
        "preferred_cluster": PREFERRED_CLUSTER,
        "priority": PRIORITY,
        "shared_memory_carveout": CARVEOUT,
    }
)
"""Clusters, cooperative and dependent launches are fields of LaunchConfig, and not here."""
