"""Profiles and diagrams of launches, from the simulator, and ranges for an external profiler: `cuda.profiling`."""

from ..pages.diagram import Diagram
from .drawing import access_diagram, divergence_diagram
from .profiler import profiler_range, profiler_start, profiler_stop
from .profiles import LaunchProfile, LineProfile, Profile
from .warp_records import WarpAccess, WarpRecord, WarpShuffle, WarpStep

__all__ = [
    "Diagram",
    "LaunchProfile",
    "LineProfile",
    "Profile",
    "WarpAccess",
    "WarpRecord",
    "WarpShuffle",
    "WarpStep",
    "access_diagram",
    "divergence_diagram",
    "profiler_range",
    "profiler_start",
    "profiler_stop",
]
__dir__ = __all__.copy  # hides private names and imports
