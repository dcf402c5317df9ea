"""Answer the system calls of a kernel in machine code, with the functions of the NumPy engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...syntax.instructions import Call, Symbol
from ..layout import Context
from .reports import asked, with_memory
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from .launch import NativeLaunch


def call_system(launch: NativeLaunch, number: int) -> None:
    """Answer the system call of some lanes; the number is as in `asked`."""
    block = int(launch.context[Context.BLOCK])
    site, group, places = asked(launch, number)
    chunk = with_memory(launch, group).chunk
    call = site.instruction.operands[0]
    assert isinstance(call, Call)
    assert isinstance(call.target, Symbol)
    if launch.speculation is not None and call.target.name not in ("vprintf", "__assertfail"):
        # The effects of the call can't be undone. Output is kept until the end, and a failed assertion is the end.
        raise SpeculationFailed
    passed = site.instance.code.call_sites[id(site.instruction)]
    arguments: list[Any] = []
    for pieces in passed.arguments:
        (((_, size), _),) = pieces.items()
        row = launch.exchange[len(arguments)].view(f"u{size}")
        arguments.append(row[places].copy())
    function = getattr(chunk.system, call.target.name.lstrip("_"))
    try:
        result = function(group, *arguments, site=site.instruction)
    finally:
        launch.printed += [(block, text, size) for _, text, size in chunk.printed]
    if call.target.name in ("malloc", "free"):
        launch.place_extents()
    if result is not None and passed.results and passed.results[0]:
        (((_, size), _),) = passed.results[0].items()
        launch.exchange[-1].view(f"u{size}")[places] = result
