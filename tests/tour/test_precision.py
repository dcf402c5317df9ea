import re

import pytest

import cudart_py as cuda
from library_tour import device_code
from library_tour.course import precision


@pytest.fixture(scope="module")
def entries():
    """Return the PTX of every kernel by its flags and name."""
    source = device_code.find("precision").read_text()
    texts = {}
    for flags in {way.flags for way in precision.WAYS.values()}:
        names = sorted({precision.kernel_of(way) for way in precision.WAYS.values() if way.flags == flags})
        image = cuda.images.compile_image(source, names=names, arch="compute_90", options=flags)
        for name in names:
            [entry] = image.entries(name)
            texts[flags, name] = image.ptx.decode().partition(f".entry {entry}(")[2].partition("\n}")[0]
    return texts


def test_the_column_names_the_instructions_of_the_kernel(entries):
    opcode = re.compile(r"^\s*((?:div|sqrt|sin|fma|mul|add)\.[a-z.]*)\.?f(?:32|64)\s", re.MULTILINE)
    for name, way in precision.WAYS.items():
        used = {match.rstrip(".") for match in opcode.findall(entries[way.flags, precision.kernel_of(way)])}
        assert set(way.ptx.split(", ")) <= used, name


def test_a_product_and_a_sum_are_fused_unless_the_flag_forbids(result):
    rows = {row.name: row.values for row in result.rows}
    assert rows["c = -a b"]["ulp"] == "0.00"
    assert rows["c = -a b, --fmad=false"]["ulp"] == "2^24"


def test_without_fused_instructions_there_are_no_differences_and_no_line_of_the_curve(result):
    [rows] = result.tables.values()
    values = {row.name: list(row.values.values()) for row in rows}
    assert values["float, --fmad=false"] == [0, 0, 0]
    assert values["float"][0] < 1e-5 < 1e-2 < values["float, wrong c"][0]
    [curve] = result.pictures
    assert set(curve.lines) == set(precision.RECURRENCES) - {"float, --fmad=false"}
    assert all(y > 0 for points in curve.lines.values() for _, y in points)
