"""The container for users without Linux, and the one for contributors: what can be checked without Docker."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cudart_py" / "integrations" / "container"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEVCONTAINERS = [FOLDER / "devcontainer.json", ROOT / ".devcontainer" / "devcontainer.json"]


def instructions():
    """Return the instructions of the Dockerfile with their arguments, continued lines joined."""
    lines = [line for line in (FOLDER / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_the_dockerfile_ends_as_an_ordinary_user_with_a_command_that_its_packages_have():
    found = instructions()
    names = [name for name, _ in found]
    assert set(names) <= {"FROM", "ARG", "RUN", "ENV", "USER", "WORKDIR", "EXPOSE", "CMD"}
    assert names[0] == "FROM"
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    arguments = dict(found)
    assert arguments["USER"] != "0"
    assert json.loads(arguments["CMD"])[0] == "jupyter"
    assert any(name == "RUN" and "pip install" in text and " jupyterlab " in text for name, text in found)


def test_the_image_has_a_python_and_extras_that_the_project_has():
    arguments = dict(instructions())
    version = re.fullmatch(r"python:3\.(\d+)-slim", arguments["FROM"])[1]
    assert f"Programming Language :: Python :: 3.{version}" in PROJECT["project"]["classifiers"]
    extras = re.search(r"cudart-py\[([\w,]+)\]", arguments["ARG"])[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", DEVCONTAINERS, ids=["users", "contributors"])
def test_a_devcontainer_names_a_file_or_an_image_and_groups_that_exist(path):
    data = json.loads(path.read_text())
    assert ("build" in data) != ("image" in data)
    if "build" in data:
        assert (path.parent / data["build"]["dockerfile"]).is_file()
        assert f" {data['remoteUser']} " in (FOLDER / "Dockerfile").read_text()
    groups = re.findall(r"--group (\w+)", data.get("postCreateCommand", ""))
    assert set(groups) <= set(PROJECT["dependency-groups"])
