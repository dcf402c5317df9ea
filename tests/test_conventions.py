"""The project's conventions that a test can check."""

import ast
import collections
import functools
import itertools
import re
import runpy
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path for folder in ("cudart_py", "library_tour") for path in (ROOT / folder).rglob("*.py") if path.stat().st_size
)
FILES = sorted([*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text()


def offenders(breaks: Callable[[Path], bool], paths: Sequence[Path]) -> list[str]:
    return [name_of(path) for path in paths if breaks(path)]


def test_no_module_is_longer_than_500_lines():
    assert offenders(lambda path: len(text_of(path).splitlines()) > 500, FILES) == []


def does_more_than_re_export(path: Path) -> bool:
    # That __all__ is sorted is ruff's rule RUF022.
    # The `__dir__` of a public submodule lists the names that it exports, without its other imports.
    body = [node for node in ast.parse(text_of(path)).body if ast.unparse(node) != "__dir__ = __all__.copy"]
    # Type checkers do not see a `__getattr__`, and may see imports of what it imports on first use.
    tests = ("TYPE_CHECKING", "not TYPE_CHECKING")
    chosen = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) in tests]
    body = [node for node in body if node not in chosen] + [node for each in chosen for node in each.body + each.orelse]
    # IPython calls this function of the package, which imports a layer that programs don't need.
    body = [node for node in body if getattr(node, "name", "") != "load_ipython_extension"]
    names = [target.id for node in body if isinstance(node, ast.Assign) for target in node.targets]
    expected = ["__all__"] if any(isinstance(node, ast.ImportFrom) and node.level for node in body) else []
    return names != expected or not all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in body)


def test_an_init_only_re_exports():
    assert offenders(does_more_than_re_export, [path for path in MODULES if path.name == "__init__.py"]) == []


def test_no_package_has_more_than_a_dozen_modules():
    modules = (path for path in MODULES if path.is_relative_to(ROOT / "cudart_py") and path.name != "__init__.py")
    counts = collections.Counter(path.parent.relative_to(ROOT) for path in modules)
    assert {str(folder): count for folder, count in counts.items() if count > 12} == {}


def test_the_readmes_example_runs(tmp_path, capsys):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    # The first compile of a process may print which driver it uses; the result is the last line.
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "[2. 2. 2.]"


def test_the_readmes_commands_are_the_projects():
    text = (ROOT / "README.md").read_text()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    commands = re.findall(r"uv run (?:--\w+ \w+ )?(\w[\w-]*)(?![\w-]*/)", text)
    assert {"library-tour", "pytest"} <= set(commands)
    assert set(commands) - {"python", "pytest", "pytest-benchmark", "mpiexec"} <= set(scripts)
    for path in re.findall(r"`(scripts/[\w.]+|docs/[\w.]+)", text):
        assert (ROOT / path).is_file(), path


def test_the_architecture_names_modules_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    paths = re.findall(r"`(?:cudart_py/)?((?:\w+/)*\w+\.py)`", text)
    assert "driver/backend.py" in paths
    for path in paths:
        assert (ROOT / "cudart_py" / path).is_file(), path


def test_a_reason_stands_beside_every_ignore():
    silencers = r"noqa|type: ignore|pragma: no cover|fmt: (?:skip|off)"
    pattern = re.compile(rf"#\s*(?:{silencers})(?::\s*[\w, -]+|\[[\w, -]+\])?(?P<rest>.*)")
    found = []
    for path in FILES:
        above = ""
        for number, line in enumerate(text_of(path).splitlines(), 1):
            match = pattern.search(line) if "#" in line else None
            bare = match and "#" not in match["rest"]
            silent = re.search(r"(?:simplefilter|filterwarnings)\(.ignore", line) and "#" not in line
            suppressed = re.search(r"with .*\bsuppress\(", line) and "#" not in above + line
            if bare or silent or suppressed:
                found.append(f"{name_of(path)}:{number}: {line.strip()}")
            above = line
    assert found == []


@functools.cache
def imports_in_functions(path: Path) -> set[int]:
    nodes = list(ast.walk(ast.parse(text_of(path))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [node for function in functions for node in ast.walk(function)]
    return {node.lineno for node in inside if isinstance(node, ast.Import | ast.ImportFrom)}


def test_a_reason_stands_beside_every_import_inside_a_function():
    """A comment on the line, above it, or above the imports that it follows, gives the reason for the import."""
    found = []
    for path in (path for path in MODULES if path.is_relative_to(ROOT / "cudart_py")):
        lines = text_of(path).splitlines()
        indented = [bool(re.match(r"\s+(?:from|import) ", line)) for line in ["", *lines]]
        bare = []
        for number in (number for number, is_import in enumerate(indented) if is_import):
            above = number - 1
            while indented[above]:
                above -= 1
            if not any("#" in line for line in lines[above - 1 : number]):
                bare.append(number)
        if bare:  # parse only such files: the imports may be under TYPE_CHECKING, or in a docstring
            found += [f"{name_of(path)}:{number}" for number in bare if number in imports_in_functions(path)]
    assert found == []


def test_a_reason_stands_in_every_skip_and_nothing_is_expected_to_fail():
    # The arguments of a call, with up to three levels of nested parentheses.
    inner = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
    skip = re.compile(
        rf"\b(?:pytest|mark)\.(?:(skip|skipif|importorskip|unsanitized)\b(?!\.)(?:\(({inner})\))?|xfail\b)"
    )
    found = []
    for path in (path for path in FILES if path.name != Path(__file__).name):
        for call in skip.finditer(text_of(path)):
            name, given = call[1], call[2] or ""
            if "reason=" not in given and not (name in ("skip", "unsanitized") and given.strip()):
                found.append(f"{name_of(path)}: {call[0]}")
    assert found == []


def test_the_modules_and_tests_of_mutation_testing_exist():
    lists = runpy.run_path(str(ROOT / "scripts/mutated_modules.py"))
    named = {*lists["MODULES"], *lists["NEIGHBOURS"], *itertools.chain(*lists["MODULES"].values())}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
