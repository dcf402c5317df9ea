"""The tables of `devices`: how the stops for several devices scale, beside the model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.tables import Cell

from . import device_model
from .report import Bar, Comparison, Table

__all__ = ["MODES", "Figure", "figures", "left_out", "perf_lines", "tables", "weak_size"]

Json = dict[str, Any]

MODES = ("one process", "ranks")
STRONG, WEAK = "strong", "weak"
SCALING = {
    "in turn": STRONG,
    "overlapped": STRONG,
    "larger plate": WEAK,
    "strong scaling": STRONG,
    "weak scaling": WEAK,
}


@dataclass(frozen=True)
class Figure:
    """One figure of a table: a way of a stop on so many devices; `predicted` is the model's efficiency or GB/s."""

    stop: str
    way: str
    mode: str
    count: int
    scaling: str
    size: int
    rate: str
    efficiency: float | None
    predicted: float | None = None


def weak_size(base: int, count: int) -> int:
    """Return the rows and columns of a product that is `count` times the work of one of `base`, in whole blocks."""
    return round(base * count ** (1 / 3) / 256) * 256


def perf_lines(text: str) -> list[tuple[float, float]]:
    """Return bytes and out-of-place bus bandwidth of each line that all_reduce_perf prints."""
    number = r"\s+(\S+)"
    lines = re.finditer(rf"^\s*(\d+)\s+\d+\s+float\s+sum{number * 4}", text, re.MULTILINE)
    return [(float(line[1]), float(line[5])) for line in lines]


def figures(found: Json) -> Iterator[Figure]:
    """Yield the figures of all runs that took times, in their order."""
    for each in found["runs"]:
        outcome = each.get("outcome")
        if outcome and each["state"] == "passed":
            of_stop = _of_product if each["stop"] == "distributed_gemm" else _of_rows
            yield from of_stop(each, outcome)


def _of_rows(each: Json, outcome: Json) -> Iterator[Figure]:
    for row in outcome["rows"]:
        values, scaling = row["values"], SCALING.get(row["name"], "")
        # A stop tells of fewer devices, too, and has four workers on one that is alone.
        if each["count"] == 1 or values.get("devices", each["count"]) != each["count"]:
            continue
        # Other rows, such as that of one strip, are no work of all devices.
        if not scaling and each["stop"] != "all_reduce":
            continue
        # Without times instructions stand for them in one of the stops.
        if "ms" not in values and "efficiency" not in values:
            continue
        efficiency, rate = values.get("efficiency"), _rate(values)
        predicted = _prediction(each["stop"], row["name"], each["count"], outcome["size"])
        work = (each["stop"], row["name"], each["mode"], each["count"], scaling, outcome["size"])
        yield Figure(*work, rate, efficiency, predicted)


def _of_product(each: Json, outcome: Json) -> Iterator[Figure]:
    """Yield the efficiencies of a product at all sizes of its picture, and that of weak scaling at a size for it."""
    lines = _lines(outcome, "rates")
    alone = dict(lines.pop("one device", []))
    count = each["count"]
    if count == 1:
        return
    for way, points in lines.items():
        for size, rate in points:
            told, base = f"{rate:.1f} TFLOP/s", alone[size]
            predicted = _prediction(each["stop"], way, count, int(size))
            yield Figure(
                each["stop"], way, each["mode"], count, STRONG, int(size), told, rate / count / base, predicted
            )
        for base_size in alone:
            size, rate = points[-1]
            if weak_size(int(base_size), count) == size and base_size < size:
                efficiency = rate / count / alone[base_size]
                yield Figure(each["stop"], way, each["mode"], count, WEAK, int(size), f"{rate:.1f} TFLOP/s", efficiency)


def _rate(values: Json) -> str:
    if "ms" not in values:
        return f"{values['instructions']:,} instructions"
    unit = next((unit for unit in values if unit.endswith("/s")), None)
    return f"{values['ms']:.4g} ms" if unit is None else f"{values[unit]:,.4g} {unit}"


def _prediction(stop: str, way: str, count: int, size: int) -> float | None:
    """Return the efficiency that the model predicts, or of all_reduce the GB/s; None where it knows nothing."""
    if way == "SUMMA":
        return device_model.product_seconds(1, size) / count / device_model.product_seconds(count, size)
    if stop == "halo":
        alone = device_model.halo_seconds(1, size, size)["computing"]
        if way == "larger plate":
            return alone / device_model.halo_seconds(count, size, size)["overlapped"]
        return alone / count / device_model.halo_seconds(count, size / count, size)[way]
    if stop == "all_reduce":
        nbytes = device_model.FLOAT * size
        return 1e-9 * device_model.bus_bandwidth(count, nbytes, device_model.all_reduce_seconds(count, nbytes))
    return None


def _lines(outcome: Json, name: str) -> dict[str, list[tuple[float, float]]]:
    """Return the lines of one of the outcome's curves, none where it was not drawn."""
    for picture in outcome["pictures"]:
        if picture["name"] == name:
            return {line: [(x, y) for x, y in points] for line, points in picture["lines"].items()}
    return {}


def bandwidths(found: Json) -> tuple[int, dict[str, list[tuple[float, float]]]]:
    """Return the largest count of devices, and its bandwidths of sums against bytes by way, NCCL's own tests, model."""
    lines: dict[str, list[tuple[float, float]]] = {}
    timed = [each for each in found["runs"] if each["stop"] == "all_reduce" and "outcome" in each and each["count"] > 1]
    most = max((each["count"] for each in timed), default=0)
    for each in timed:
        if each["count"] == most:
            for way, points in _lines(each["outcome"], "bandwidth").items():
                lines[f"{way}, {each['mode']}"] = points
    if lines:
        sizes = next(iter(lines.values()))
        lines["model"] = [
            (nbytes, 1e-9 * device_model.bus_bandwidth(most, nbytes, device_model.all_reduce_seconds(most, nbytes)))
            for nbytes, _ in sizes
        ]
    if own := found["nccl_tests"].get(str(most)):
        lines["NCCL's tests"] = [(nbytes, rate) for nbytes, rate in own]
    return most, lines


def left_out(found: Json) -> str:
    """Return what did not run, and why, as a part of the conditions."""
    parts = []
    if found["left_out"]:
        parts.append(f"not run, for want of devices: {', '.join(map(str, found['left_out']))}")
    if found["without_ranks"]:
        parts.append("no ranks ran, for want of mpiexec or mpi4py (the extra mpi)")
    if not any("ms" in row["values"] for each in found["runs"] for row in each.get("outcome", {"rows": []})["rows"]):
        parts.append("no times were taken, since this driver has no GPU's clock")
    return "".join(f"; {part}" for part in parts)


def tables(found: Json) -> Iterator[Comparison | Table]:
    """Yield whether each run passed, the efficiencies beside the model's, and the bandwidths of sums."""
    for each in found["runs"]:
        outcome = each.get("outcome", {"size": None, "checks": []})
        size = "" if outcome["size"] is None else f", size {outcome['size']:,}"
        what = f"{each['stop']} on {each['count']}, {each['mode']}{size}"
        passed = sum(check["holds"] for check in outcome["checks"])
        counts = (passed, "checks", len(outcome["checks"]))
        note = f"{each['state']} in {each['seconds']:.1f} s"
        yield Comparison(what, "holds", *counts, Bar.at_least(1), note, failed=each["state"] != "passed")
    rows = [
        [one.stop, one.way, one.mode, one.count, one.scaling, one.size, one.rate, one.efficiency, one.predicted]
        for one in figures(found)
    ]
    headings = ["stop", "way", "in", "devices", "scaling", "size", "rate", "efficiency", "model, or its GB/s of sums"]
    yield Table("Scaling", headings, rows)
    most, lines = bandwidths(found)
    columns = [dict(points) for points in lines.values()]
    sizes = sorted({nbytes for column in columns for nbytes in column})
    by_bytes: list[list[Cell]] = [[int(nbytes), *(column.get(nbytes) for column in columns)] for nbytes in sizes]
    yield Table(f"Bus bandwidth of sums on {most} devices, in GB/s", ["bytes", *lines], by_bytes)
