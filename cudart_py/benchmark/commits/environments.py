"""Python environments in which the benchmarks of a commit run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

Kind = Literal["uv", "venv", "existing"]
KINDS: tuple[Kind, ...] = ("uv", "venv", "existing")
# The packages that run benchmarks, in addition to those that the project itself requires.
REQUIREMENTS = ("cudart-py", "pytest", "pytest-benchmark")
_BUILDABLE = ("pyproject.toml", "setup.py", "setup.cfg")


class BuildError(Exception):
    """An environment could not be made, or the project could not be installed in it; has the output of the tool."""

    def __init__(self, output: str) -> None:
        super().__init__("the environment could not be built")
        self.output = output


class Environment(NamedTuple):
    """An interpreter, and the environment variables to run it with."""

    python: str
    variables: Mapping[str, str]


def default_kind() -> Kind:
    """Return "uv" if it is installed, and otherwise "venv"."""
    return "uv" if shutil.which("uv") else "venv"


def default_requirements() -> tuple[str, ...]:
    """Return REQUIREMENTS, with the wheel from which cudart-py is installed here, if that file still exists."""
    wheel = _wheel_url()
    return REQUIREMENTS if wheel is None else (f"{REQUIREMENTS[0]} @ {wheel}", *REQUIREMENTS[1:])


def _wheel_url() -> str | None:
    try:
        text = metadata.distribution(REQUIREMENTS[0]).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    # Only pip and uv write this file, and only for packages that do not come from a registry (PEP 610).
    origin = json.loads(text or "{}")
    url = urlsplit(str(origin.get("url", "")))
    if "archive_info" in origin and url.scheme == "file" and Path(url2pathname(url.path)).is_file():
        return url.geturl()
    return None


def make_environment(kind: Kind, source: Path, folder: Path, requirements: Sequence[str]) -> Environment:
    """Return an environment with the project in the folder `source`, which is installed as editable if it can be.

    - "uv", "venv": a new environment in `folder`, made by uv, or by Python's venv and pip. It has the requirements too.
    - "existing": the present interpreter and its packages. The project's modules are found in `source` and in its
      folder `src` before any others, and nothing is built.

    Raises BuildError.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
    if kind == "existing":
        places = [str(place) for place in (source, source / "src") if place.is_dir()]
        known = filter(None, [variables.get("PYTHONPATH", "")])
        return Environment(sys.executable, variables | {"PYTHONPATH": os.pathsep.join([*places, *known])})
    # The modules of the present project must not be found instead of the commit's.
    variables.pop("PYTHONPATH", None)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    project = ["--editable", str(source)] if any((source / name).is_file() for name in _BUILDABLE) else []
    if kind == "uv":
        _run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], variables)
        install = ["uv", "pip", "install", "--quiet", "--python", python]
    else:
        _run([sys.executable, "-m", "venv", str(folder)], variables)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, *project, *requirements], variables)
    return Environment(python, variables)


def _run(command: Sequence[str], variables: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    except FileNotFoundError as error:
        raise BuildError(f"{command[0]} is not installed") from error
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)
