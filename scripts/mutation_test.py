"""Change the code a little, many times over, and see whether the tests notice (mutation testing by cosmic-ray).

    uv run --group mutation scripts/mutation_test.py                    300 mutants of all modules in mutated_modules.py
    uv run --group mutation scripts/mutation_test.py --module copies --sample 40 --seed 2

The mutants are cosmic-ray's: another operator, comparison, number, constant, condition, exception or decorator, or a
loop that is never entered. A sample is drawn uniformly from all of them. Each mutant is planted in a clone of the last
commit, never in the checkout, and `--jobs` mutants are tried at the same time, each in a clone of its own. Tests run
there in their own process, up to the first failure. A mutant is caught if a test fails or if the tests run into their
time limit, which is 20 s plus four times their usual duration.

The tests to run for a mutant are determined once per commit: the modules' own tests and those of their neighbours run
under coverage, which records the tests that execute each statement. The tests that execute the mutant's statement run
first, then others that execute its module, the quickest first, up to a limit on their number and total seconds. A
mutant that survives these meets the remaining tests that execute its statement, or those that execute its module if
only the import executes the statement. Leaving a test out can only make a caught mutant count as a survivor, never the
other way round. All tests that were chosen for any mutant run once without a mutant, and must pass.

Mutants that no test can notice are left out beforehand, by these rules:

- code in an annotation, which is never evaluated, or below `if TYPE_CHECKING:`;
- `==` in place of `is`, and `is` in place of `==`: they agree for None, enums and small numbers, the only values that
  the modules compare with either;
- the bare `*` of a parameter list, which cosmic-ray takes for an operator, and code that Python cannot compile;
- the `strict=True` of a `zip`, which only asserts that lengths agree;
- a caching decorator (`functools.cache`, `lru_cache`) that is removed or whose size changes: it only saves time.

The clones and the results (cosmic-ray's session, an SQLite file) are kept in a temporary folder; an interrupted run
resumes there. Survivors are listed with their changes. Exits with 1 if fewer than 95 percent were caught.
"""

import argparse
import ast
import bisect
import functools
import itertools
import json
import math
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue

import attrs
import coverage
import pytest
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem, WorkResult
from mutated_modules import MODULES, NEIGHBOURS

ROOT = Path(__file__).parents[1]

_IDENTITY = {"Is", "IsNot"}
_MEMORY = 8 << 30  # bytes that a mutant may allocate
MOST_TESTS, MOST_SECONDS = 400, 20  # per mutant, in its first selection of tests
LEAST, PATIENCE = 95, 4
ALONE = ("-q", "-n", "0", "-p", "no:cacheprovider")


def unseen(source: str, mutation: MutationSpec) -> bool:
    """Check whether one of the rules above leaves a mutant out."""
    kind = mutation.operator_name.rpartition("/")[2]
    if kind.startswith("ReplaceComparisonOperator_"):
        _, before, after = kind.split("_")
        if (before in _IDENTITY) != (after in _IDENTITY) and {before, after} & {"Eq", "NotEq"}:
            return True
    line, column = mutation.start_pos
    bare = source.splitlines()[line - 1].startswith("*,", column)
    return bare or any(begin <= mutation.start_pos and mutation.end_pos <= end for begin, end in _quiet(source))


@functools.cache
def _quiet(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the source ranges (begin, end) of a module in which the rules ignore mutants.

    They are annotations, blocks below `if TYPE_CHECKING:`, caching decorators, and the keywords of `zip`.
    """
    nodes: list[ast.expr | ast.stmt] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(returns=returns, decorator_list=decorators):
                nodes += [] if returns is None else [returns]
                nodes += [each for each in decorators if "cache" in ast.unparse(each)]
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                nodes.append(annotation)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                nodes += body
            case ast.Call(func=function) if ast.unparse(function).endswith("lru_cache"):
                nodes.append(node)
            case ast.Call(func=ast.Name(id="zip"), keywords=keywords):
                nodes += [keyword.value for keyword in keywords]
    # In cosmic-ray's positions a decorator begins with its @.
    return [
        ((node.lineno, max(0, node.col_offset - 1)), (node.end_lineno or 0, (node.end_col_offset or 0) + 1))
        for node in nodes
    ]


def draw(modules: list[str], clone: Path, sample: int, seed: int) -> tuple[list[WorkItem], int]:
    """Return a shuffled sample of the modules' mutants, and the number of all that the rules keep."""
    with tempfile.TemporaryDirectory() as folder, use_db(os.path.join(folder, "all.sqlite")) as every:
        init([clone / module for module in modules], every, {})
        found = list(every.work_items)
    sources = {path: path.read_text() for path in {item.mutations[0].module_path for item in found}}
    found = [item for item in found if not unseen(sources[item.mutations[0].module_path], item.mutations[0])]
    # cosmic-ray gives them random identifiers, and the same seed must draw the same sample.
    found.sort(key=lambda item: (str(item.mutations[0].module_path), *item.mutations[0].start_pos, _kind(item)))
    random.Random(seed).shuffle(found)
    compiled = (item for item in found if compiles(sources[item.mutations[0].module_path], item.mutations[0]))
    return list(itertools.islice(compiled, sample)), len(found)


def compiles(source: str, mutation: MutationSpec) -> bool:
    """Check whether a mutant is valid Python."""
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about `is` with a number, which is a valid mutant
            compile(mutate_code(source, operator, mutation.occurrence), "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _kind(item: WorkItem) -> str:
    mutation = item.mutations[0]
    return f"{mutation.operator_name} {mutation.occurrence}"


class Recorder:
    """A pytest plugin that gives each test a coverage context of its own, and records how long passing tests take."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        """Run a test in its coverage context."""
        if sys.gettrace() is None:  # an exception in the tracer, such as a signal handler's, has ended it
            self.measured.stop()
            self.measured.start()
        self.measured.switch_context(item.nodeid)
        self.seconds[item.nodeid] = 0
        handled = yield
        self.measured.switch_context("")
        return handled

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of a test's setup, call and teardown; a failed or skipped phase counts as infinite."""
        self.seconds[report.nodeid] += report.duration if report.passed else math.inf


def record(folder: Path) -> int:
    """Run all tests of the current folder, and save the lines that they execute and their durations.

    A test that fails or is skipped is left out. Code that a test runs in another process is not recorded.
    """
    modules = [str(Path(module).resolve()) for module in MODULES]
    measured = coverage.Coverage(data_file=str(folder / "lines.sqlite"), include=modules, config_file=False)
    measured.erase()
    recorder = Recorder(measured)
    with measured.collect():
        tests = dict.fromkeys(itertools.chain(*MODULES.values(), NEIGHBOURS))
        pytest.main([*ALONE, *tests], plugins=[recorder])
    measured.save()
    if passed := {test: seconds for test, seconds in recorder.seconds.items() if seconds < math.inf}:
        (folder / "seconds.json").write_text(json.dumps(passed))
    return int(not passed)


class Record:
    """The statements that each test executes and its duration, recorded by running a commit's tests once."""

    def __init__(self, folder: Path, clone: Path) -> None:
        if not (folder / "seconds.json").exists():
            command = [*environment(clone), sys.executable, __file__, "--record", str(folder)]
            subprocess.run(command, check=True)
        self._clone = clone
        self._data = coverage.CoverageData(str(folder / "lines.sqlite"))
        self._data.read()
        self.seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text())

    def choose(self, mutation: MutationSpec) -> tuple[list[str], list[str]]:
        """Return the tests to run for a mutant, in order, and the further tests for a survivor.

        First come all tests in the module's own files that execute the mutant's statement; if it runs on import, all
        tests in these files. Then, up to the limits, come other tests that execute the
        statement, tests in the module's own files that execute nothing of the module, since they may do their work in
        another process, and tests that execute anything else of the module. The quickest case of every test function
        is chosen before the second of any. The tests of one file stay together, since they share its fixtures.
        """
        path, line = mutation.module_path, mutation.start_pos[0]
        file = {test: test.partition("::")[0] for test in self.seconds}
        own = {test for test in self.seconds if file[test] in MODULES[str(path.relative_to(self._clone))]}
        found = self._data.contexts_by_lineno(str(path))
        by_line = {at: self.seconds.keys() & set(tests) for at, tests in found.items()}
        executing: set[str] = set()
        if not runs_on_import(path, line):
            executing = set().union(*(by_line.get(at, ()) for at in statement(path, line)))
        near = executing or own
        seen = set().union(*by_line.values())
        ranks, cases = {}, Counter[str]()
        for test in sorted(seen | own, key=self.seconds.__getitem__):
            ranks[test] = (test not in near, test not in own - seen, test not in own, cases[test.partition("[")[0]])
            cases[test.partition("[")[0]] += 1
        ordered = sorted(ranks, key=ranks.__getitem__)
        total = list(itertools.accumulate(self.seconds[test] for test in ordered))
        count = max(len(near & own), min(MOST_TESTS, bisect.bisect(total, MOST_SECONDS)))
        rest = [test for test in ordered[count:] if test in (executing or seen)]
        return _by_file(ordered[:count]), _by_file(rest)


def _by_file(tests: list[str]) -> list[str]:
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return sorted(tests, key=lambda test: files.index(test.partition("::")[0]))


def statement(path: Path, line: int) -> range:
    """Return the lines of the statement that a line belongs to; for a compound statement, the lines of its header."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)]
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or node.lineno)]
    if not around:
        return range(line, line + 1)
    innermost = max(around, key=lambda node: node.lineno)
    end = (innermost.end_lineno or line) + 1
    lines = range(innermost.lineno, min((n.lineno for n in nodes if innermost.lineno < n.lineno < end), default=end))
    # Neither an `except` nor a `case` is a statement, so the innermost statement may end before the line.
    return lines if line in lines else range(line, line + 1)


def runs_on_import(path: Path, line: int) -> bool:
    """Check whether a line is in no function's body, so that it runs in the first test that imports it."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return not any(node.body[0].lineno <= line <= (node.end_lineno or line) for node in functions)


def make_clone(place: Path) -> Path:
    """Clone the last commit, or restore the clone of an interrupted run."""
    if not place.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "checkout", "--quiet", "--force", "HEAD"], check=True)
    # Bytecode of a module might pass for that of a mutant, whose file may have the same time stamp and size.
    for module in MODULES:
        for kept in (place / module).parent.glob(f"__pycache__/{Path(module).stem}.*.pyc"):
            kept.unlink()
    return place


def environment(clone: Path) -> list[str]:
    """Return the beginning of a command that runs in a clone and imports the clone's package, not an installed one."""
    return ["env", "-C", str(clone), f"PYTHONPATH={clone}", "CUDART_PY_DRIVER=simulator"]


def command(clone: Path, tests: list[str]) -> list[str]:
    """Return the command that runs tests in a clone, up to the first failure."""
    # With a profile named, no test fails for the processor time that it takes: the limit below is the mutant's.
    options = ("-x", *ALONE, "--hypothesis-profile=default")
    return [*environment(clone), sys.executable, "-m", "pytest", *options, *tests]


def run(session: WorkDB, clones: list[Path], known: Record) -> None:
    """Try all mutants of a session that have no result yet, one at a time in each clone."""
    pending = session.pending_work_items
    chosen = {item.job_id: known.choose(*item.mutations) for item in pending}
    tests = sorted({test for parts in chosen.values() for part in parts for test in part})
    share = len(tests) // len(clones) + 1
    free = SimpleQueue[Path]()

    def check(clone: Path, start: int) -> None:
        done = subprocess.run(command(clone, tests[start : start + share]), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"tests fail without a mutant:\n{done.stdout[-3000:]}")
        free.put(clone)

    def attempt(item: WorkItem) -> tuple[WorkItem, WorkResult]:
        clone = free.get()
        mutants = [attrs.evolve(m, module_path=clone / m.module_path.relative_to(clones[0])) for m in item.mutations]
        for part in filter(None, chosen[item.job_id]):
            limit = 20 + PATIENCE * sum(known.seconds[test] for test in part)
            result = mutate_and_test(mutants, shlex.join(command(clone, part)), limit)
            if result.test_outcome != TestOutcome.SURVIVED:
                break
        free.put(clone)
        return item, result

    with ThreadPool(len(clones)) as threads:
        threads.starmap(check, zip(clones, range(0, len(tests), share), strict=False))
        for count, (item, result) in enumerate(threads.imap_unordered(attempt, pending), 1):
            if result.test_outcome not in (TestOutcome.KILLED, TestOutcome.SURVIVED):
                raise RuntimeError(f"{_kind(item)} could not be tried:\n{result.output}")
            session.set_result(item.job_id, result)
            print(f"\r{count} of {len(pending)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def report(session: WorkDB, clone: Path) -> Iterator[str]:
    """Yield the lines of the table, then the survivors with their changes."""
    results: dict[str, list[WorkResult]] = {}
    for item, result in session.completed_work_items:
        results.setdefault(str(item.mutations[0].module_path.relative_to(clone)), []).append(result)
    yield "| module | mutants | caught | survived |\n|---|---:|---:|---:|"
    survivors: list[WorkResult] = []
    for module, each in sorted(results.items()):
        alive = [result for result in each if result.test_outcome == TestOutcome.SURVIVED]
        survivors += alive
        yield f"| `{module}` | {len(each)} | {len(each) - len(alive)} | {len(alive)} |"
    total = sum(map(len, results.values()))
    yield f"| all | {total} | {total - len(survivors)} | {len(survivors)} |"
    for result in survivors:
        changes = [line for line in (result.diff or "").splitlines() if line[:2] not in ("--", "++")]
        yield "\n" + "\n".join(line for line in changes if line[:1] in "-+@")


def main() -> int:
    """Draw mutants, run the tests on them, and report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once (all processors)")
    parser.add_argument("--module", action="append", default=[], help="part of a module's path; may be repeated")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record:
        return record(options.record)
    modules = [module for module in MODULES if any(part in module for part in options.module or [""])]
    if not modules:
        parser.error(f"no module's path has {' or '.join(options.module)} in it; there are {', '.join(MODULES)}")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    folder = Path(tempfile.gettempdir()) / f"cudart-py-mutation-{head.stdout[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    # A shell makes its background processes ignore SIGINT. The tests would inherit that, and some interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The tests inherit this too: a mutant that allocates far too much must not exhaust the machine's memory.
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    clone, *_ = clones = [make_clone(folder / f"clone{number}") for number in range(options.jobs)]
    name = "-".join(map(str, (options.sample, options.seed, *sorted(options.module)))).replace("/", ".")
    with use_db(str(folder / f"{name}.sqlite")) as session:
        if not session.num_work_items:
            drawn, count = draw(modules, clone, options.sample, options.seed)
            print(f"{len(drawn)} of {count} mutants of {len(modules)} modules, seed {options.seed}")
            session.add_work_items(drawn)
        run(session, clones, Record(folder, clone))
        print(*report(session, clone), sep="\n")
        alive = sum(result.test_outcome == TestOutcome.SURVIVED for _, result in session.results)
        return int(100 * (1 - alive / max(1, session.num_results)) < LEAST)


if __name__ == "__main__":
    sys.exit(main())
