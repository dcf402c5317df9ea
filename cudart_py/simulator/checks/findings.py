"""Findings: the mistakes that the checks have found, kept until they are reported to the program.

A finding does not affect the launch. It is kept here until the driver function that ran the kernel returns, and then
becomes a warning, or an exception if the mode of the checks is "error".
"""

from __future__ import annotations

from ...base.wording import counted
from ...errors import SimulatorWarning
from ...findings.modes import initial_mode
from ...findings.records import has_listeners, note, read_report
from ...host.callers import call_site, warn_caller
from ..state.fault_reports import add_to_report, readable
from ..state.memory import live


class Finding:
    """A mistake that has not been delivered yet, with the report of its first occurrence.

    `kind` is a key of `cudart_py.findings.records.KINDS`.

    `again` counts the other instructions of the same line that make the same mistake, and `relaunched` the other
    launches that make it. Launches make the same mistake if their findings have equal keys; None equals no other key.
    `noun` says what has made it if that is not a launch.
    """

    def __init__(self, kind: str, text: str, key: object = None, noun: str = "launch") -> None:
        self.kind = kind
        self.key = key
        self._noun = noun
        self._text = text
        self._others = 0
        self._launches = 0

    def again(self) -> None:
        """Count another instruction."""
        self._others += 1

    def relaunched(self) -> None:
        """Count another launch."""
        self._launches += 1

    def __str__(self) -> str:
        text = self._text
        if self._others:
            text += f"\n    also at {counted(self._others, 'more instruction')} of this line"
            text += ", for example because a loop was unrolled"
        if self._launches:
            text += f"\n    the same in {counted(self._launches, f'more {self._noun}')}"
        return text


# Findings that have not been delivered yet.
pending: list[Finding] = []


class _Choice:
    """The mode that the program has chosen, where None means that the environment decides.

    `unchecked` says whether launches have run without checks since the mode was last chosen.
    """

    def __init__(self) -> None:
        self.chosen: str | None = None
        self.unchecked = False


_state = _Choice()


def mode() -> str:
    """Return the mode of the checks: "off", "warn" or "error".

    It is the mode that `set_sanitizer` has chosen, or else the initial one, for which a variable with an invalid value
    raises ValueError.
    """
    return initial_mode() if _state.chosen is None else _state.chosen


def set_sanitizer(chosen: str | None) -> str | None:
    """Set the mode for launches that run from now on, and return the previous choice.

    None, the initial choice, means that `CUDART_PY_SANITIZER` decides. Launches without checks leave no records of
    their writes, so all memory counts as written after them.
    """
    before, _state.chosen = _state.chosen, chosen
    if _state.unchecked:
        _state.unchecked = False
        for allocation in live.by_start.values():
            allocation.shadow.initialised = True
    return before


def note_unchecked_launch() -> None:
    """Record that a launch runs without checks."""
    _state.unchecked = True


def site_to_report() -> str:
    """Return the line of the program that makes the current call, for reports, or "" if the checks are off."""
    return "" if mode() == "off" else call_site()


def put_finding(kind: str, text: str, key: object = None, noun: str = "launch") -> Finding:
    """Return a new finding, and keep it until it is delivered; one whose key is known only counts as another launch."""
    finding = Finding(kind, readable(text), key, noun)
    known = None if key is None else next((other for other in pending if other.key == key), None)
    if known is None:
        pending.append(finding)
    else:
        known.relaunched()
    return finding


def deliver() -> None:
    """Report the pending findings as warnings at the program's own line, or raise one SimulatorWarning for all of them.

    They are raised if the mode is "error". A warning filter of the program may also turn a warning into an exception.
    """
    texts = take_texts()
    if mode() == "error":
        raise SimulatorWarning("\n".join(texts))
    for text in texts:
        warn_caller(text, SimulatorWarning)


def deliver_with_fault() -> None:
    """Report the pending findings beside a fault whose report no call has passed on yet.

    They are warnings, or follow the report of the fault if the mode is "error" or a warning filter raises the warning:
    an exception would take the place of that of the fault.
    """
    for text in take_texts():
        if mode() == "error":
            add_to_report(text)
            continue
        try:
            warn_caller(text, SimulatorWarning)
        except SimulatorWarning:
            add_to_report(text)


def take_texts() -> list[str]:
    """Return the texts of the pending findings, which are then no longer pending, and note them for the listeners."""
    if has_listeners():
        site = call_site()
        for finding in pending:
            note(read_report(finding.kind, str(finding), site, "error" if mode() == "error" else "warning"))
    texts = [str(finding) for finding in pending]
    pending.clear()
    return texts
