"""Graphs, `cuda.graphs`: captured from streams or built node by node, and the memory that they allocate.

The classes of graphs are in `streams`, because the methods of `Stream` create them and arrays need streams. This
package adds the parts that need arrays.
"""

from ..streams.graphs.conditionals import Condition
from ..streams.graphs.executable_graph import ExecutableGraph
from ..streams.graphs.graph import Graph
from ..streams.graphs.nodes import GraphNode
from ..streams.host_functions import NodeFunction
from .graph_memory import GraphMemory
from .memory import NodeAllocation, NodeFree, empty
from .node_events import NodeRecord, NodeWait
from .node_memory_operations import NodeMemoryOperations
from .node_work import NodeCopy, NodeFill

__all__ = [
    "Condition",
    "ExecutableGraph",
    "Graph",
    "GraphMemory",
    "GraphNode",
    "NodeAllocation",
    "NodeCopy",
    "NodeFill",
    "NodeFree",
    "NodeFunction",
    "NodeMemoryOperations",
    "NodeRecord",
    "NodeWait",
    "empty",
]
__dir__ = __all__.copy  # without private names and imports
