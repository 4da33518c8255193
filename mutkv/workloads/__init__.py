"""Scripts of requests and events that exercise a cache; a workload holds no engine logic."""

from mutkv.configuration import Configuration
from mutkv.workloads.decode import Decode
from mutkv.workloads.workload import Layout, Recording, Workload

__all__ = ["WORKLOADS", "Decode", "Layout", "Recording", "Workload", "workload_for"]

WORKLOADS: dict[str, type[Workload]] = {"decode": Decode}


def workload_for(configuration: Configuration) -> Workload:
    """Return the script of this configuration."""
    return WORKLOADS[configuration.workload](configuration)
