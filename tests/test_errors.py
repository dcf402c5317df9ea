"""The tree of exceptions, and the version that the package and both commands report."""

import inspect
import re
from importlib.metadata import version

import pytest

import cudart_py as cuda
import library_tour.__main__ as tour
from cudart_py import __main__ as tools
from cudart_py import errors


def test_errors_are_builtins_where_natural():
    assert issubclass(cuda.OutOfMemoryError, MemoryError)
    assert issubclass(cuda.errors.InvalidValueError, ValueError)
    assert issubclass(cuda.errors.NotFoundError, LookupError)
    assert issubclass(cuda.errors.NotSupportedError, NotImplementedError)


def test_the_tree_drawn_in_the_module_is_the_tree():
    drawn = {line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line}
    classes = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, cuda.CudaError)}
    assert drawn == classes - {"CudaError"}


@pytest.mark.parametrize(("main", "name"), [(tools.main, "cudart-py"), (tour.main, "library-tour")])
def test_the_package_and_the_commands_have_the_version_that_is_installed(main, name, capsys):
    assert cuda.__version__ == version("cudart-py")
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"{name} {cuda.__version__}\n"


def test_the_help_lists_every_command_and_each_command_has_its_own(capsys):
    with pytest.raises(SystemExit, match="0"):
        tools.main(["--help"])
    listed = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == ["profile", "debug", "gate", "find", "continuous", "history", "report", "run"]
    for command in listed:
        with pytest.raises(SystemExit, match="0"):
            tools.main([command, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: cudart-py {command} ")


def test_a_program_starts_without_the_modules_of_the_other_commands(python):
    """Importing them would double the time that `cudart-py run` takes to start a program."""
    program = (
        "import sys; from cudart_py.__main__ import main\n"
        "try: main(['run', '--help'])\nexcept SystemExit: print(*sys.modules)"
    )
    loaded = set(python(program, own_imports=True).stdout.splitlines()[-1].split())
    assert "cudart_py.standins.command.run_command" in loaded
    assert not loaded & {"cudart_py.benchmark", "cudart_py.debugging", "cudart_py.profiling"}
