"""Graphs, `cuda.graphs`: the results of `stream.capture()`, memory inside graphs, and work for their nodes.

The classes of graphs are in `streams`, because the methods of `Stream` create them and arrays need streams. This
package adds what needs arrays as well.
"""

from ..streams.conditionals import Condition
from ..streams.graph import ExecutableGraph, Graph
from ..streams.graph_nodes import GraphNode
from .memory import empty
from .node_work import NodeCopy, NodeFill

__all__ = ["Condition", "ExecutableGraph", "Graph", "GraphNode", "NodeCopy", "NodeFill", "empty"]
__dir__ = __all__.copy  # without private names and imports
