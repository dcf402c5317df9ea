"""The simulated driver has the functions of cuda.bindings with the same signatures, and few other names."""

import importlib
import inspect
import pkgutil
import re
from typing import Any

from cuda.bindings import driver as bindings

from cudart_py.simulator import calls, driver

OTHERS = {
    "CAPABILITIES", "attach_debugger", "begin_profile", "complete_profile", "detach_debugger", "drop_bytes",
    "end_profile", "has_unwaited", "host_time", "in_a_call", "in_finalizer", "lost_by", "note_exit", "reset",
    "run_queued", "set_sanitizer", "take_report",
}  # fmt: skip  # grouped
FUNCTIONS = {name: function for name, function in vars(driver).items() if name.startswith("cu")}


def parameters(function: Any) -> list[Any]:
    return [(one.name, one.default) for one in inspect.signature(function).parameters.values()]


def test_every_function_has_the_parameters_of_cuda_bindings_and_says_which_it_is() -> None:
    theirs = {name: parameters(getattr(bindings, name)) for name in FUNCTIONS}
    assert {name: parameters(function) for name, function in FUNCTIONS.items()} == theirs
    assert [name for name, function in FUNCTIONS.items() if f"({name})." not in (function.__doc__ or "")] == []


def test_what_the_modules_offer_is_all_that_is_offered() -> None:
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(calls.__path__, f"{calls.__name__}.")
    ]
    offered = {name for module in modules for name in vars(module) if re.match("cu[A-Z]", name)}
    assert offered == set(FUNCTIONS)
    # pytest adds its own names to the modules whose assertions it rewrites.
    public = {name for name in vars(driver) if name.isidentifier() and not name.startswith("_")} - {"annotations"}
    assert public == {*FUNCTIONS, *OTHERS}
