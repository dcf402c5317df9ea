"""Comparison of stored runs of pytest-benchmark, which distinguishes slower benchmarks from noise.

A benchmark has one figure. If both runs have a peer (`gpu_benchmark(fn, beside=...)`), it is the ratio of the
benchmark's time to the peer's time in the same run. Otherwise it is the median time. A benchmark whose peer varies more
than the benchmark itself can always use its time (`gpu_benchmark.extra_info["gate"] = "time"`). A baseline may contain
several runs, from different processes or machines; its figure is their median. The noise is the largest deviation of
these runs, or the uncertainty of the median within one run if that is larger. Since few runs may agree by chance, the
noise is at least the median noise of the benchmark's group. A benchmark is slower if its figure exceeds the baseline's
figure by more than the limit and by more than three times the noise.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...pages.text_tables import aligned
from ..record import median_error
from ..times import format_seconds

Json = Mapping[str, Any]
SECONDS = "seconds"
# A figure may differ from the baseline by this multiple of the noise. With 2, and a baseline of three runs, most runs
# of unchanged code reported one of about eighty host times as slower.
_NOISE_TIMES = 3
# With fewer peers, the slowest quarter is not defined.
_FEWEST_PEERS = 4
# The keys of a benchmark's record that a baseline keeps in addition to its figures.
_KEPT = (
    *(
        "device",
        "GB/s",
        "TFLOP/s",
        "of ceiling",
        "ceiling",
        "batch",
        "cache",
        "captured",
        "clock_mhz",
        "memory",
        "beside",
    ),
    "gate",
)
# The keys of pytest-benchmark's statistics that a baseline leaves out: the samples, and values that no table shows.
_DROPPED = ("data", "total", "ld15iqr", "hd15iqr", "iqr_outliers", "stddev_outliers")


@dataclass(frozen=True)
class Verdict:
    """One benchmark compared with the baseline; `figure` is "seconds", or the name of the peer in the ratio."""

    benchmark: str
    figure: str
    before: float
    now: float
    limit: float

    @property
    def change(self) -> float:
        """The relative increase of the time: 0.1 for 10 percent more."""
        return self.now / self.before - 1

    @property
    def slower(self) -> bool:
        """Whether the time has increased by more than the limit."""
        return self.change > self.limit

    @property
    def faster(self) -> bool:
        """Whether the time has decreased by more than the limit."""
        return -self.change > self.limit


def benchmarks(run: Json) -> dict[str, Json]:
    """Return the benchmarks of a stored run, keyed by full name."""
    return {one["fullname"]: one for one in run["benchmarks"]}


def untimed(run: Json) -> list[str]:
    """Return the full names of the benchmarks that a stored run has not timed; older runs name those with counters."""
    return run["untimed"] if "untimed" in run else [one["fullname"] for one in run.get("counted", ())]


def figures(benchmark: Json) -> dict[str, list[float]]:
    """Return a benchmark's ratios to its peers and its time, each with one value per recorded run."""
    extra = benchmark["extra_info"]
    if "runs" in extra:
        return dict(extra["runs"])
    ratios = {name: [peer["ratio"]] for name, peer in extra.get("beside", {}).items()}
    return {**ratios, SECONDS: [benchmark["stats"]["median"]]}


def _compared(recorded: Mapping[str, Any], now: Json) -> str:
    """Return the name of the figure to compare: the first of the recorded figures that the new run also has."""
    if now["extra_info"].get("gate") == "time":
        return SECONDS
    current = figures(now)
    return next(one for one in recorded if one in current)


def noise(benchmark: Json, figure: str, values: Sequence[float]) -> float:
    """Return the relative noise of a figure: the spread between runs or within the kept run, whichever is larger."""
    middle = statistics.median(values)
    between = max(abs(value - middle) for value in values) / middle
    if figure == SECONDS:
        stats = benchmark["stats"]
        within = median_error(stats["iqr"], stats["rounds"]) / stats["median"]
    else:
        within = benchmark["extra_info"]["beside"][figure]["spread"] / 2
    return float(max(between, within))


def _usual_noise(baseline: Json) -> dict[str | None, float]:
    """Return the median noise of the benchmarks of each group."""
    by_group: dict[str | None, list[float]] = {}
    for one in baseline["benchmarks"]:
        recorded = figures(one)
        values = recorded[figure := _compared(recorded, one)]
        if min(values) > 0:
            by_group.setdefault(one["group"], []).append(noise(one, figure, values))
    return {group: statistics.median(found) for group, found in by_group.items()}


def compare(baseline: Json, run: Json, limit: float) -> list[Verdict]:
    """Compare the benchmarks that are in both runs; `limit` is 0.05 for five percent.

    A benchmark with a recorded figure of 0 is left out.
    """
    before, found = benchmarks(baseline), []
    usual = _usual_noise(baseline)
    for name, now in benchmarks(run).items():
        if name not in before:
            continue
        recorded, current = figures(before[name]), figures(now)
        values = recorded[figure := _compared(recorded, now)]
        if min(values) <= 0:
            continue
        expected = max(noise(before[name], figure, values), usual.get(before[name]["group"], 0.0))
        allowed = max(limit, _NOISE_TIMES * expected)
        found.append(Verdict(name, figure, statistics.median(values), statistics.median(current[figure]), allowed))
    return found


def slowdown_of_peers(baseline: Json, run: Json) -> float | None:
    """Return the upper quartile of the peers' slowdowns, as multiples of their times in the baseline.

    Peers are code of other packages, which a change of the measured code does not slow down. If they are slower, the
    cause is the machine. Returns None if fewer than four benchmarks have a peer in both runs.
    """
    before, found = benchmarks(baseline), []
    for name, now in benchmarks(run).items():
        recorded = figures(before[name]) if name in before else {}
        for peer, measured in now["extra_info"].get("beside", {}).items():
            if peer in recorded and min(recorded[peer]) > 0:
                pairs = zip(recorded[SECONDS], recorded[peer], strict=True)
                found.append(measured["median"] / statistics.median(ours / ratio for ours, ratio in pairs))
                break
    return statistics.quantiles(found, n=4, method="inclusive")[2] if len(found) >= _FEWEST_PEERS else None


def _gpu(run: Json) -> dict[str, Any]:
    return dict(run["machine_info"].get("gpu", {}))


def _model(run: Json) -> str:
    """Return the model of the GPU that a run measured on, or the machine's first GPU if the run names none."""
    measured = (one["extra_info"].get("device") for one in run["benchmarks"])
    return next(filter(None, measured), None) or next(iter(_gpu(run).get("devices", ())), "unknown")


def refusal(baseline: Json, run: Json, owner: str) -> str | None:
    """Return why two runs cannot be compared, or None: the GPU models or the driver's major versions differ.

    `owner` is the owner of the new GPU and driver in the message: "the run" or "this machine".
    """
    drivers = [str(_gpu(one).get("driver", "unknown")).partition(".")[0] for one in (baseline, run)]
    for what, before, now in (
        ("GPU", _model(baseline), _model(run)),
        ("major version of the driver", *drivers),
    ):
        if before != now:
            return (
                f"the baseline's {what} is {before}, and {owner}'s is {now}. Record a separate baseline for it with "
                "cudart-py gate --record"
            )
    return None


def differences(baseline: Json, run: Json) -> list[str]:
    """Return one line per difference in versions that does not prevent a comparison of the runs."""

    def versions(one: Json) -> dict[str, str]:
        info = one["machine_info"]
        gpu = {name: value for name, value in _gpu(one).items() if name != "devices"}
        return {"Python": info.get("python_version", ""), "processor": info.get("cpu", {}).get("brand_raw", ""), **gpu}

    before, now = versions(baseline), versions(run)
    return [
        f"{name} differs: {before.get(name) or 'unknown'} in the baseline, {now.get(name) or 'unknown'} in the run"
        for name in dict.fromkeys((*before, *now))
        if before.get(name) != now.get(name)
    ]


HEADINGS = ("benchmark", "compared", "before", "now", "change", "limit")


def cells(one: Verdict) -> tuple[str, ...]:
    """Return the cells of a verdict's row, one per heading of `HEADINGS`."""
    seconds = one.figure == SECONDS
    before, now = (format_seconds(value) if seconds else f"{value:.4g}" for value in (one.before, one.now))
    compared = "time" if seconds else f"time over {one.figure}"
    return one.benchmark, compared, before, now, f"{100 * one.change:+.1f} %", f"{100 * one.limit:.1f} %"


def table(verdicts: Iterable[tuple[Verdict, str]]) -> list[str]:
    """Return the lines of a table of verdicts, each followed by a word such as "SLOWER"."""
    listed = [((*HEADINGS,), ""), *((cells(one), word) for one, word in verdicts)]
    lines = aligned([row for row, _ in listed], left=2)
    return [f"{line}  {word}".rstrip() for line, (_, word) in zip(lines, listed, strict=True)]


def merge(runs: Sequence[Json]) -> dict[str, Any]:
    """Merge runs into a baseline: a run in pytest-benchmark's format without samples, small enough to commit.

    Each benchmark has the record of its median run, and the figures of all runs under "runs".
    """
    by_name: dict[str, list[Json]] = {}
    for run in runs:
        for name, one in benchmarks(run).items():
            by_name.setdefault(name, []).append(one)
    latest = runs[-1]
    machine = latest["machine_info"]
    return {
        "machine_info": {
            **{name: machine[name] for name in ("machine", "system", "python_version", "gpu") if name in machine},
            "cpu": {name: value for name, value in machine.get("cpu", {}).items() if name in ("brand_raw", "count")},
        },
        "commit_info": latest["commit_info"],
        "datetime": latest["datetime"],
        "version": latest["version"],
        "benchmarks": [_merged(same) for same in by_name.values()],
    }


def _merged(same: Sequence[Json]) -> dict[str, Any]:
    of_each = [figures(one) for one in same]
    kept = sorted(same, key=lambda one: one["stats"]["median"])[(len(same) - 1) // 2]
    names = [name for name in of_each[-1] if all(name in found for found in of_each)]
    extra = {name: kept["extra_info"][name] for name in _KEPT if name in kept["extra_info"]}
    extra["runs"] = {name: [value for found in of_each for value in found[name]] for name in names}
    return {
        **{name: kept[name] for name in ("group", "name", "fullname", "param")},
        "params": None,
        "options": {},
        "extra_info": _rounded(extra),
        "stats": _rounded({name: value for name, value in kept["stats"].items() if name not in _DROPPED}),
    }


def _rounded(value: Any) -> Any:
    """Return a JSON value with its floats rounded to six digits, which is more precise than any measurement."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {name: _rounded(one) for name, one in value.items()}
        case list():
            return [_rounded(one) for one in value]
        case _:
            return value


def baseline_text(baseline: Json) -> str:
    """Return a baseline as JSON with one line per benchmark, which makes changes of the file easy to review."""
    head = json.dumps({name: value for name, value in baseline.items() if name != "benchmarks"})
    lines = ",\n".join(json.dumps(one) for one in baseline["benchmarks"])
    return f'{head[:-1]}, "benchmarks": [\n{lines}\n]}}\n'
