"""Memory and events that processes share, `cuda.ipc`: created in one process, and opened in others with handles.

An array is shared alone, if it is from `ipc.empty`, or through its pool, a `MemoryPool(interprocess=True)`.
"""

from .handles import ArrayHandle, EventHandle, PoolHandle, handle
from .memory import OpenedPool, empty

__all__ = ["ArrayHandle", "EventHandle", "OpenedPool", "PoolHandle", "empty", "handle"]
__dir__ = __all__.copy  # without private names and imports
