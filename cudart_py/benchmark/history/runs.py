"""The runs that pytest-benchmark stored as `.benchmarks/<machine>/NNNN_<name>.json` (`--benchmark-save`)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# The files that pytest-benchmark itself treats as stored runs, and the commit ids that it writes outside a repository.
_RUNS = "[0-9][0-9][0-9][0-9]_*.json"
_NO_COMMIT = ("unversioned", "unknown")
# The part of a run's name that --benchmark-autosave puts after the number: commit and date, which the run also records.
_AUTOSAVED = re.compile(r"_[^_]+_\d{8}_\d{6}(_uncommitted-changes)?$")


class StoreError(ValueError):
    """There is no store, it has no runs, or one of its files is broken; the message names the file."""


@dataclass(frozen=True)
class Entry:
    """The results of a run for one benchmark.

    `name`: the test's full name. `seconds`: the median time, None if it was only counted. `quartiles`: the quartiles of
    the times. `info`: the `extra_info` that the plugin's fixtures wrote. `launches`: the counters of each launch.
    """

    name: str
    seconds: float | None = None
    quartiles: tuple[float, float] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    launches: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Run:
    """A stored run.

    `name`: its number and name, or only the number if pytest-benchmark chose the name.
    `when`: its date, in UTC.
    `commit`: the identifier of the commit, None outside a repository.
    `dirty`: whether the work tree had changes that were not committed.
    `machine`: the machine's properties as pytest-benchmark and the plugin record them.
    `timed`, `counted`: the entries, keyed by the benchmark's name.
    `nvrtc`: the version of NVRTC that compiled the counted kernels, empty if it was not stored.
    """

    name: str
    when: datetime
    commit: str | None
    dirty: bool
    project: str
    machine: Mapping[str, Any]
    timed: Mapping[str, Entry]
    counted: Mapping[str, Entry]
    nvrtc: str = ""

    @property
    def short_commit(self) -> str:
        """The first eight digits of the commit, with a `+` for uncommitted changes; empty without a commit."""
        return self.commit[:8] + "+" * self.dirty if self.commit else ""


def read_store(folder: Path) -> list[Run]:
    """Read the runs of a store, or of the folder of one machine in it, sorted by date.

    Raises StoreError, whose message is one line, if there are no runs, or for a file that is not a stored run.
    """
    if not folder.is_dir():
        raise StoreError(f"the folder {folder} does not exist; pytest --benchmark-save=NAME makes .benchmarks")
    files = [*folder.glob(_RUNS), *folder.glob(f"*/{_RUNS}")]
    if not files:
        raise StoreError(f"{folder} has no stored runs (NNNN_*.json); pytest --benchmark-save=NAME stores one")
    return sorted(_shortened([_read(file) for file in files]), key=lambda run: (run.when, run.name))


def _shortened(runs: Sequence[Run]) -> list[Run]:
    """Remove the folder that all tests have in common from their names."""
    names = {name for run in runs for name in (*run.timed, *run.counted)}
    folders = {name.partition("::")[0].rpartition("/")[0] for name in names}
    common = os.path.commonpath(folders) if folders and all(folders) else ""
    if not common:
        return list(runs)
    length = len(common) + 1

    def shortened(entries: Mapping[str, Entry]) -> dict[str, Entry]:
        return {name[length:]: replace(entry, name=name[length:]) for name, entry in entries.items()}

    return [replace(run, timed=shortened(run.timed), counted=shortened(run.counted)) for run in runs]


def _read(file: Path) -> Run:
    try:
        return _run(_AUTOSAVED.sub("", file.stem), json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{file} is not a run that pytest-benchmark stored ({type(error).__name__}: {error})"
        ) from error


def _run(name: str, content: Mapping[str, Any]) -> Run:
    when = datetime.fromisoformat(content["datetime"])
    commit = content.get("commit_info") or {}
    return Run(
        name=name,
        # Old versions of pytest-benchmark wrote UTC without a time zone.
        when=when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC),
        commit=None if commit.get("id") in _NO_COMMIT else commit.get("id"),
        dirty=bool(commit.get("dirty")),
        project=str(commit.get("project") or ""),
        machine=content.get("machine_info") or {},
        timed={one["fullname"]: _timed(one) for one in content["benchmarks"]},
        counted=_counted(content.get("counted", ())),
        nvrtc=str(content.get("nvrtc") or ""),
    )


def _timed(found: Mapping[str, Any]) -> Entry:
    stats = found["stats"]
    return Entry(
        found["fullname"],
        float(stats["median"]),
        (float(stats["q1"]), float(stats["q3"])),
        found.get("extra_info") or {},
    )


def _counted(found: Sequence[Mapping[str, Any]]) -> dict[str, Entry]:
    """Return the entries, keyed by name; a test that called its fixture several times has the launches of all calls."""
    entries: dict[str, Entry] = {}
    for one in found:
        name = one.get("fullname", one["name"])
        before = entries[name].launches if name in entries else ()
        entries[name] = Entry(name, info=one, launches=(*before, *one["counters"]))
    return entries
