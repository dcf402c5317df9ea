"""The scripts of this folder pass the type checkers in strict mode; skipped if the checkers are not installed."""

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import cudart_py
import library_tour
from cudart_py.benchmark import measure, measure_host
from cudart_py.benchmark.measuring import DeviceArguments, HostArguments

HERE = Path(__file__).parent
SCRIPTS = sorted(str(path) for path in HERE.glob("user_*.py"))


@pytest.mark.unsanitized("nothing of CUDA runs")
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_scripts_pass(checker):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed (the dependency group lint)")
    done = subprocess.run(
        [sys.executable, "-m", checker, *SCRIPTS], cwd=HERE.parent.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", [cudart_py, library_tour])
def test_a_package_says_that_it_has_types(package):
    assert Path(package.__file__).with_name("py.typed").is_file()


@pytest.mark.parametrize(("function", "kind"), [(measure, DeviceArguments), (measure_host, HostArguments)])
def test_the_fixtures_take_the_arguments_of_the_functions(function, kind):
    parameters = inspect.signature(function).parameters
    known = {name: annotation.__forward_arg__ for name, annotation in kind.__annotations__.items()}
    assert known == {name: parameters[name].annotation for name in parameters if name != "fn"}
