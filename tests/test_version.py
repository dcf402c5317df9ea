"""The version, which the package and both commands tell."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import cudart_py as cuda
import library_tour.__main__ as tour
from cudart_py import __main__ as tools


def test_the_package_has_the_version_that_is_installed():
    assert cuda.__version__ == version("cudart-py")


@pytest.mark.parametrize(("main", "name"), [(tools.main, "cudart-py"), (tour.main, "library-tour")])
def test_the_commands_tell_it(main, name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"{name} {version('cudart-py')}\n"
