"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import cudart_py as cuda

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path for folder in ("cudart_py", "library_tour") for path in (ROOT / folder).rglob("*.py") if path.stat().st_size
)
FILES = sorted([*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def offenders(breaks: Callable[[Path], bool], paths: Sequence[Path]) -> list[str]:
    return [name_of(path) for path in paths if breaks(path)]


def test_every_module_says_what_it_is():
    assert offenders(lambda path: not ast.get_docstring(ast.parse(path.read_text())), MODULES) == []


def test_no_module_is_longer_than_500_lines():
    assert offenders(lambda path: len(path.read_text().splitlines()) > 500, FILES) == []


def does_more_than_re_export(path: Path) -> bool:
    # That __all__ is sorted is ruff's rule RUF022.
    body = ast.parse(path.read_text()).body
    names = [target.id for node in body if isinstance(node, ast.Assign) for target in node.targets]
    expected = ["__all__"] if any(isinstance(node, ast.ImportFrom) and node.level for node in body) else []
    return names != expected or not all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in body)


def test_an_init_only_re_exports():
    assert offenders(does_more_than_re_export, [path for path in MODULES if path.name == "__init__.py"]) == []


def test_every_public_name_is_there_and_documented():
    assert [name for name in cuda.__all__ if not getattr(cuda, name).__doc__] == []


def test_the_readmes_example_runs(tmp_path, capsys):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    # The first compile of a process may have to say which driver it found; the result comes last.
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "[2. 2. 2.]"


def test_the_readmes_commands_are_the_projects():
    text = (ROOT / "README.md").read_text()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    commands = re.findall(r"uv run (?:--extra \w+ )?([\w-]+)", text)
    assert {"library-tour", "pytest"} <= set(commands)
    assert set(commands) - {"pytest", "pytest-benchmark", "mpiexec"} <= set(scripts)
    for path in re.findall(r"`(scripts/[\w.]+|docs/[\w.]+)", text):
        assert (ROOT / path).is_file(), path


def test_the_architecture_names_modules_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    paths = re.findall(r"`(?:cudart_py/)?((?:\w+/)*\w+\.py)`", text)
    assert "driver/seam.py" in paths
    for path in paths:
        assert (ROOT / "cudart_py" / path).is_file(), path


def test_ci_runs_the_readmes_test_command():
    assert "uv run pytest" in (ROOT / ".ci" / "run").read_text()


def test_a_reason_stands_beside_every_ignore():
    silencers = r"noqa|type: ignore|pragma: no cover|fmt: (?:skip|off)"
    pattern = re.compile(rf"#\s*(?:{silencers})(?::\s*[\w, -]+|\[[\w, -]+\])?(?P<rest>.*)")
    for path in FILES:
        above = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = pattern.search(line)
            if match:
                assert "#" in match["rest"], f"{name_of(path)}:{number}: {line.strip()}"
            if re.search(r"(?:simplefilter|filterwarnings)\(.ignore", line):
                assert "#" in line, f"{name_of(path)}:{number}: {line.strip()}"
            if re.search(r"with .*\bsuppress\(", line):
                assert "#" in above + line, f"{name_of(path)}:{number}: {line.strip()}"
            above = line


def test_a_reason_stands_beside_every_import_inside_a_function():
    """A comment on the line, above it, or above the imports that it follows, says what the import saves."""
    for path in sorted((ROOT / "cudart_py").rglob("*.py")):
        lines = path.read_text().splitlines()
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = [node for function in functions for node in ast.walk(function)]
        imports = {node.lineno for node in inside if isinstance(node, ast.Import | ast.ImportFrom)}
        for number in sorted(imports):
            above = number - 1
            while above in imports:
                above -= 1
            reason = any("#" in line for line in lines[above - 1 : number])
            assert reason, f"{name_of(path)}:{number}: {lines[number - 1].strip()}"


def test_a_reason_stands_in_every_skip():
    """And nothing is expected to fail."""
    skips = {"skip", "skipif", "importorskip"}
    for path in FILES:
        text = path.read_text()
        if not re.search("skip|unsanitized|xfail", text):  # as in most files, which take seconds to parse
            continue
        tree = ast.parse(text)
        calls = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            where = f"{name_of(path)}:{node.lineno}"
            call = calls.get(node)
            assert node.attr != "xfail", where
            if node.attr == "unsanitized":
                assert call is not None, where
                assert call.args, where
            elif node.attr in skips and call is not None:
                reason = any(keyword.arg == "reason" for keyword in call.keywords)
                assert reason or (node.attr == "skip" and call.args), where
