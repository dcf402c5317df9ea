"""The tables of `devices`: the scaling of the stops for several devices, compared with the model."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.tables import Cell

from . import device_model
from .report import Bar, Comparison, Table

Json = dict[str, Any]

MODES = ("one process", "ranks")
STRONG, WEAK = "strong", "weak"
SCALING = {
    "sequential": STRONG,
    "overlapped": STRONG,
    "larger plate": WEAK,
    "strong scaling": STRONG,
    "weak scaling": WEAK,
}


class Figure(NamedTuple):
    """A row of a table: a variant of a stop on `count` devices; `predicted` is the model's efficiency or GB/s."""

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
    return round(base * count ** (1 / 3) / 256) * 256


def perf_lines(text: str) -> list[tuple[float, float]]:
    number = r"\s+(\S+)"
    lines = re.finditer(rf"^\s*(\d+)\s+\d+\s+float\s+sum{number * 4}", text, re.MULTILINE)
    return [(float(line[1]), float(line[5])) for line in lines]


def figures(found: Json) -> Iterator[Figure]:
    for each in found["runs"]:
        if each.get("outcome") and each["state"] == "passed" and each["count"] > 1:
            yield from (_of_product if each["stop"] == "distributed_gemm" else _of_rows)(each)


def _of_rows(each: Json) -> Iterator[Figure]:
    stop, count, size = each["stop"], each["count"], each["outcome"]["size"]
    for row in each["outcome"]["rows"]:
        values, name = row["values"], row["name"]
        # Stops also have rows for fewer devices, and rows that do not use all devices, such as a single strip.
        if values.get("devices", count) != count or not (name in SCALING or stop == "all_reduce"):
            continue
        # If there are no times, one of the stops gives counts of instructions instead.
        if "ms" in values or "efficiency" in values:
            work = (stop, name, each["mode"], count, SCALING.get(name, ""), size)
            yield Figure(*work, _rate(values), values.get("efficiency"), _prediction(stop, name, count, size))


def _of_product(each: Json) -> Iterator[Figure]:
    """Yield a product's strong-scaling efficiency at each size of its chart, and weak scaling at the size for it."""
    lines, count = _lines(each["outcome"], "rates"), each["count"]
    alone = dict(lines.pop("one device", []))
    for way, points in lines.items():
        work = (each["stop"], way, each["mode"], count)
        for size, rate in points:
            efficiency, predicted = rate / count / alone[size], _prediction(each["stop"], way, count, int(size))
            yield Figure(*work, STRONG, int(size), f"{rate:.1f} TFLOP/s", efficiency, predicted)
        size, rate = points[-1]
        for base, base_rate in alone.items():
            if weak_size(int(base), count) == size and base < size:
                yield Figure(*work, WEAK, int(size), f"{rate:.1f} TFLOP/s", rate / count / base_rate)


def _rate(values: Json) -> str:
    if "ms" not in values:
        return f"{values['instructions']:,} instructions"
    unit = next((unit for unit in values if unit.endswith("/s")), None)
    return f"{values['ms']:.4g} ms" if unit is None else f"{values[unit]:,.4g} {unit}"


def _prediction(stop: str, way: str, count: int, size: int) -> float | None:
    """Return the efficiency that the model predicts, or the GB/s of all_reduce, or None without a prediction."""
    if way == "SUMMA":
        return device_model.product_seconds(1, size) / count / device_model.product_seconds(count, size)
    if stop == "halo":
        alone = device_model.halo_seconds(1, size, size)["computing"]
        if way == "larger plate":
            return alone / device_model.halo_seconds(count, size, size)["overlapped"]
        return alone / count / device_model.halo_seconds(count, size / count, size)[way]
    return _predicted_bandwidth(count, device_model.FLOAT * size) if stop == "all_reduce" else None


def _predicted_bandwidth(count: int, nbytes: float) -> float:
    seconds = device_model.all_reduce_seconds(count, nbytes)
    return 1e-9 * device_model.bus_bandwidth(count, nbytes, seconds)


def _lines(outcome: Json, name: str) -> dict[str, list[tuple[float, float]]]:
    lines = next((picture["lines"] for picture in outcome["pictures"] if picture["name"] == name), {})
    return {line: [(x, y) for x, y in points] for line, points in lines.items()}


def bandwidths(found: Json) -> Table:
    timed = [each for each in found["runs"] if each["stop"] == "all_reduce" and "outcome" in each and each["count"] > 1]
    most = max((each["count"] for each in timed), default=0)
    lines: dict[str, dict[float, float]] = {}
    for each in timed:
        if each["count"] == most:
            ways = _lines(each["outcome"], "bandwidth")
            lines |= {f"{way}, {each['mode']}": dict(points) for way, points in ways.items()}
    if lines:
        lines["model"] = {nbytes: _predicted_bandwidth(most, nbytes) for nbytes in next(iter(lines.values()))}
    if own := found["nccl_tests"].get(str(most)):
        lines["NCCL's tests"] = dict(own)
    sizes = sorted(set().union(*lines.values()))
    rows: list[list[Cell]] = [[int(nbytes), *(line.get(nbytes) for line in lines.values())] for nbytes in sizes]
    return Table(f"Bus bandwidth of sums on {most} devices, in GB/s", ["bytes", *lines], rows)


def left_out(found: Json) -> str:
    parts = []
    if found["left_out"]:
        parts.append(f"not run, for want of devices: {', '.join(map(str, found['left_out']))}")
    if found["without_ranks"]:
        parts.append("no ranks ran, for want of mpiexec or mpi4py (the extra mpi)")
    if not any("ms" in row["values"] for each in found["runs"] for row in each.get("outcome", {"rows": []})["rows"]):
        parts.append("no times were taken, since this driver has no GPU's clock")
    return "".join(f"; {part}" for part in parts)


def tables(found: Json) -> Iterator[Comparison | Table]:
    """Yield whether each run passed, then the efficiencies with the model's, and the bandwidths of all-reduce."""
    for each in found["runs"]:
        outcome = each.get("outcome", {"size": None, "checks": []})
        size = "" if outcome["size"] is None else f", size {outcome['size']:,}"
        what = f"{each['stop']} on {each['count']}, {each['mode']}{size}"
        passed = sum(check["holds"] for check in outcome["checks"])
        counts = (passed, "checks", len(outcome["checks"]))
        note = f"{each['state']} in {each['seconds']:.1f} s"
        yield Comparison(what, "holds", *counts, Bar.at_least(1), note, failed=each["state"] != "passed")
    headings = ["stop", "way", "in", "devices", "scaling", "size", "rate", "efficiency", "model, or its GB/s of sums"]
    yield Table("Scaling", headings, list(map(list, figures(found))))
    yield bandwidths(found)
