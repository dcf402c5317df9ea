"""The software driver offers CUDA's functions as cuda.bindings does, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import calls, driver

OTHERS = {
    "CAPABILITIES", "begin_profile", "drop_bytes", "end_profile", "in_a_call", "in_finalizer", "lost_by", "note_exit",
    "reset", "set_checks", "take_report",
}  # fmt: skip  # grouped
FUNCTIONS = sorted(name for name in vars(driver) if name.startswith("cu"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_of_cuda_bindings(name: str) -> None:
    ours = inspect.signature(getattr(driver, name)).parameters.values()
    theirs = inspect.signature(getattr(bindings, name)).parameters.values()
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]


def test_nothing_else_is_offered() -> None:
    # pytest puts names of its own into modules that it rewrites.
    public = {name for name in vars(driver) if name.isidentifier() and not name.startswith("_")} - {"annotations"}
    assert public == {*FUNCTIONS, *OTHERS}


def test_the_list_has_every_function_that_a_module_offers() -> None:
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(calls.__path__, f"{calls.__name__}.")
    ]
    offered = {name for module in modules for name in getattr(module, "__all__", ()) if re.match("cu[A-Z]", name)}
    assert offered == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_which_of_cudas_it_is(name: str) -> None:
    assert f"as {name}." in (getattr(driver, name).__doc__ or "")
