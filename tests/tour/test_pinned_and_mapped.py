"""Pinned and mapped memory: the bytes that cross the link, and memory that kernels cannot access."""

import pytest

from library_tour.course.pinned_and_mapped import OFTEN
from tests.tour.outcomes import SIZES, counted

SIZE = SIZES["pinned_and_mapped"]


def by_name(rows):
    return {row.name: row for row in rows}


def test_mapped_data_crosses_the_link_at_each_read_and_copied_data_once(result):
    often = by_name(result.tables[f"Read {OFTEN} times"])
    megabytes = 4e-6 * SIZE
    assert often["mapped, in place"].values["link MB"] == pytest.approx(OFTEN * megabytes)
    assert often["pinned, copied"].values["link MB"] == pytest.approx(megabytes)


@counted
def test_the_counted_sectors_are_the_bytes_that_cross_the_link_to_mapped_memory_and_wide_loads_a_quarter(result):
    for table in (result.rows, result.tables[f"Read {OFTEN} times"]):
        values = by_name(table)["mapped, in place"].values
        assert 32e-6 * values["loads"] * values["sectors/load"] == pytest.approx(values["link MB"], rel=0.01)
    rows = by_name(result.rows)
    wide, narrow = (rows[name].values["loads"] for name in ("mapped, 16-byte loads", "mapped, in place"))
    assert wide == pytest.approx(narrow / 4, rel=0.1)


def test_pageable_memory_is_refused_with_the_remedy(rows):
    assert "copy it with cudart_py.to_device" in rows["pageable, in place"].note
