"""Profiles, `cuda.profiling`: what the simulator counts of launches, and what an external profiler records."""

from .profiler import profiler_range, profiler_start, profiler_stop
from .profiles import LaunchProfile, LineProfile, Profile

__all__ = ["LaunchProfile", "LineProfile", "Profile", "profiler_range", "profiler_start", "profiler_stop"]
__dir__ = __all__.copy  # without private names and imports
