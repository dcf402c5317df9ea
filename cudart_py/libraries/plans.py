"""Plans: library calls that are checked once and queued repeatedly, like nvmath's plan and execute."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, cast

from ..context.capture import captures, find
from ..context.current import activated
from ..context.device import Device
from ..hints import KEYWORDS, unexpected
from ..streams.access_policy import AccessPolicy, policy_of
from ..streams.graphs.executable_graph import ExecutableGraph
from ..streams.stream import Stream

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Planned = TypeVar("Planned", bound="Plan[Any]")
Planned_co = TypeVar("Planned_co", bound="Plan[Any]", covariant=True)

# A plan has one graph per access policy under which it is called. Most programs use one or two.
MOST_GRAPHS = 4


class Plan(Generic[Result]):
    """A prepared library call: `plan()` queues it and returns its output array.

    The operands are checked when the plan is created, and the library's work is recorded as a graph. For the host,
    launching the graph takes a fraction of the time of the library call. The plan keeps its arrays and its stream
    alive, and each call uses their current contents. A call uses the access policy that is set for the stream at that
    time. If the stream is being captured, the call becomes part of the captured graph. Any thread can call the plan.

    A call raises ValueError if the plan or one of its operands has been closed. `close()` and the end of a `with` block
    release the graph.
    """

    def __init__(self, name: str, stream: Stream, device: Device, result: Result) -> None:
        self._name = name
        self._stream, self._device = stream, device
        self._result = result
        self._closed = False
        # Keyed by the window of the access policy, None for no policy.
        self._graphs: dict[Any, ExecutableGraph] = {}

    def __call__(self) -> Result:
        """Queue the work in the plan's stream and return its result."""
        stream = self._stream
        if captures and find(stream.handle) is not None:
            self._require_open()
            with activated(self._device):
                self._queue(stream)
            return self._result
        policy = policy_of(stream)
        graph = self._graphs.get(None if policy is None else policy.window)
        if graph is None:
            graph = self._record(policy)
        graph.launch(stream)
        return self._result

    @property
    def result(self) -> Result:
        """The output array, which every call returns."""
        return self._result

    @property
    def closed(self) -> bool:
        """Whether the plan has been closed."""
        return self._closed

    def close(self) -> None:
        """Release the graph, so that the plan can no longer be called; a second call does nothing."""
        self._closed = True
        graphs, self._graphs = self._graphs, {}
        for graph in graphs.values():
            graph.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Plan of {self._name}{', closed' if self._closed else ''}>"

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError(f"this plan of {self._name} is closed")

    def _record(self, policy: AccessPolicy | None = None) -> ExecutableGraph:
        """Return a new graph of the call, and keep it for later calls under the same access policy."""
        self._require_open()
        with activated(self._device):
            self._prepare()
            # Recorded in a new stream, because the default streams cannot be captured.
            with Stream(non_blocking=True) as recorder:
                if policy is None:
                    graph = self._recorded(recorder)
                else:
                    with policy.of(recorder):
                        graph = self._recorded(recorder)
        if len(self._graphs) >= MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[None if policy is None else policy.window] = graph
        return graph

    def _recorded(self, recorder: Stream) -> ExecutableGraph:
        with recorder.capture() as graph:
            self._queue(recorder)
        with graph:
            return graph.instantiate()

    def _prepare(self) -> None:
        """Create the objects that cannot be created during a capture, such as handles and workspaces."""
        raise NotImplementedError

    def _queue(self, stream: Stream) -> None:
        """Queue the call in a stream that is being captured, and keep the objects that the call uses alive."""
        raise NotImplementedError


class Plannable(Protocol[Arguments, Result_co, Planned_co]):
    """A library function that can also be planned."""

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result_co:
        """Queue the work at once."""

    def plan(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Planned_co:
        """Return a plan for the work without queueing anything."""


def plannable(
    make: Callable[..., Planned],
) -> Callable[[Callable[Arguments, Result]], Plannable[Arguments, Result, Planned]]:
    """Return a decorator that gives a function the attribute `plan`, a function with the same arguments.

    `make` gets all of these arguments by keyword, and returns the `Plan`. Its docstring becomes that of `plan`.
    """

    def decorate(function: Callable[Arguments, Result]) -> Plannable[Arguments, Result, Planned]:
        signature, name = inspect.signature(function), f"{function.__name__}.plan"

        def plan(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Planned:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                if not KEYWORDS.get(function.__name__, {}).keys().isdisjoint(kwargs):
                    raise unexpected(name, (), kwargs) from None
                raise TypeError(f"{name}() {error}") from None
            bound.apply_defaults()
            return make(**bound.arguments)

        described = cast(Any, plan)  # because types cannot express that a function gets an attribute
        described.__signature__ = signature.replace(return_annotation=inspect.signature(make).return_annotation)
        plan.__name__, plan.__qualname__, plan.__doc__ = "plan", name, make.__doc__
        plannable_function = cast(Any, function)
        plannable_function.plan = plan
        return cast(Plannable[Arguments, Result, Planned], plannable_function)

    return decorate
