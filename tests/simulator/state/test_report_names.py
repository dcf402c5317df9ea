"""The names of kernels in reports."""

import pytest

from cudart_py.simulator.state.fault_reports import readable, summary


@pytest.mark.parametrize(
    ("mangled", "name"), [("_Z4raceB2v1Pf", "race"), ("_ZN5outer5innerEv", "outer::inner"), ("plain", "plain")]
)
def test_a_report_names_a_kernel_as_its_source_does(mangled, name):
    """Without the tags in which Numba keeps the options of a compilation; the instruction keeps the mangled name."""
    report = f"kernel {mangled} at k.cu:3: race, instruction 'call {mangled}'"
    assert readable(report) == f"kernel {name} at k.cu:3: race, instruction 'call {mangled}'"
    assert summary(report) == f"kernel {name} at k.cu:3: race"
