"""Change the code a little, many times over, and see whether the tests notice (mutation testing by cosmic-ray).

    uv run --group mutation scripts/mutation_test.py                    300 mutants of all modules in mutated_modules.py
    uv run --group mutation scripts/mutation_test.py --module copies --sample 40 --seed 2

The mutants are cosmic-ray's: another operator, comparison, number, constant, condition, exception or decorator, or a
loop that is never entered. A sample is drawn uniformly from all of them. Each mutant is planted in a clone of the last
commit, never in the checkout, and `--jobs` mutants are tried at the same time, each in a clone of its own. Tests run
there in their own process, up to the first failure. A mutant is caught if a test fails, provided that the same test
passes without the mutant. It is also caught if a test takes 20 s more than four times the usual duration of the slowest
test of its process, or if the process takes 20 s more than four times the sum.

The tests to run for a mutant are determined once per commit: the modules' own tests and those of their neighbours run
under coverage, which records the tests that execute each statement. The tests that execute the mutant's statement run
first, then others that execute its module, the quickest first, up to a limit on their number and total seconds. A
mutant that survives these meets the remaining tests that execute its statement, or those that execute its module if
only the import executes the statement. These run last, in several processes. Leaving a test out can only make a caught
mutant count as a survivor, never the other way round.

Mutants that no test can notice are left out beforehand, by these rules:

- code in an annotation, which is never evaluated, or below `if TYPE_CHECKING:`;
- `==` in place of `is`, and `is` in place of `==`: they agree for None, enums and small numbers, the only values that
  the modules compare with either;
- the bare `*` of a parameter list, which cosmic-ray takes for an operator, and code that Python cannot compile;
- the `strict=True` of a `zip`, which only asserts that lengths agree;
- a caching decorator (`functools.cache`, `lru_cache`) that is removed or whose size changes: it only saves time.

The clones and the results (cosmic-ray's session, an SQLite file) are kept in a temporary folder; an interrupted run
resumes there. So does one that ended early because of `--seconds`. Survivors are listed with their changes. Exits with
1 if fewer than 95 percent were caught, or if mutants are left to try.
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
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue

import attrs
import coverage
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from mutated_modules import MODULES, NEIGHBOURS

ROOT = Path(__file__).parents[1]

_IDENTITY = {"Is", "IsNot"}
_MEMORY = 8 << 30  # bytes that a mutant may allocate
MOST_TESTS, MOST_SECONDS = 400, 20  # per mutant, in its first selection of tests
PIECE_SECONDS = 60  # of the remaining tests, which run in several processes
LEAST, PATIENCE, GRACE = 95, 4, 20
QUIET = ("-q", "-p", "no:cacheprovider")


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


class Record:
    """The statements that each test executes and its duration, recorded by running a commit's tests once."""

    def __init__(self, folder: Path, clone: Path, jobs: int) -> None:
        lines, seconds = folder / "lines.sqlite", folder / "seconds.json"
        if not seconds.exists():
            run_recorder(folder, clone, jobs)
            measured = coverage.Coverage(data_file=str(lines), config_file=False)
            measured.combine([str(folder)])
            measured.save()
            parts = [json.loads(part.read_text()) for part in folder.glob("*.seconds.json")]
            seconds.write_text(json.dumps({test: taken for part in parts for test, taken in part.items()}))
        self._clone = clone
        self._data = coverage.CoverageData(str(lines))
        self._data.read()
        self.seconds: dict[str, float] = json.loads(seconds.read_text())
        self._by_line: dict[Path, dict[int, set[str]]] = {}

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
        if path not in self._by_line:
            found = self._data.contexts_by_lineno(str(path))
            self._by_line[path] = {at: self.seconds.keys() & set(tests) for at, tests in found.items()}
        by_line = self._by_line[path]
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
        if not ordered:
            raise RuntimeError(f"no test of {path.name} passes")
        count = max(1, len(near & own), min(MOST_TESTS, bisect.bisect(total, MOST_SECONDS)))
        rest = [test for test in ordered[count:] if test in (executing or seen)]
        return _by_file(ordered[:count]), _by_file(rest)

    def pieces(self, tests: list[str]) -> Iterator[list[str]]:
        """Divide tests into lists that take about as long, and keep their order."""
        total = itertools.accumulate(self.seconds[test] for test in tests)
        for _, group in itertools.groupby(zip(total, tests, strict=True), lambda pair: pair[0] // PIECE_SECONDS):
            yield [test for _, test in group]


def run_recorder(folder: Path, clone: Path, jobs: int) -> None:
    """Run all tests in a clone with mutation_recorder.py, in several processes, and leave its files in a folder."""
    path = os.pathsep.join([str(clone / "scripts"), *search_path(clone)])
    recording = [f"PYTHONPATH={path}", f"MUTATION_RECORD={folder}", sys.executable, "-m", "pytest", *QUIET]
    workers = ("-n", str(jobs), "--dist=worksteal", "-p", "mutation_recorder")
    tests = dict.fromkeys(itertools.chain(*MODULES.values(), NEIGHBOURS))
    done = subprocess.run([*environment(clone), *recording, *workers, *tests], check=False)
    if done.returncode > 1:  # 1 if tests failed, which are left out
        raise RuntimeError(f"pytest's exit status is {done.returncode}")


def _by_file(tests: list[str]) -> list[str]:
    order = files(tests)
    return sorted(tests, key=lambda test: order.index(test.partition("::")[0]))


def files(tests: list[str]) -> list[str]:
    """Return the files of tests, in the order of their first tests."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


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


def search_path(clone: Path) -> list[str]:
    """Return the folders where a clone's tests find packages first: the clone's own, not an installed one."""
    return [str(clone), *filter(None, [os.environ.get("PYTHONPATH")])]


def environment(clone: Path) -> list[str]:
    """Return the beginning of a command that runs in a clone and imports the clone's package."""
    return ["env", "-C", str(clone), f"PYTHONPATH={os.pathsep.join(search_path(clone))}", "CUDART_PY_DRIVER=simulator"]


def command(clone: Path, tests: list[str], *options: str) -> list[str]:
    """Return the command that runs tests in a clone and in one process."""
    # With a profile named, no test fails for the processor time that it takes: the limits below are the mutant's.
    fixed = ("-n", "0", "--hypothesis-profile=default")
    return [*environment(clone), sys.executable, "-m", "pytest", *QUIET, *fixed, *options, *tests]


def prepare(clone: Path, tests: list[str]) -> None:
    """Write the bytecode of a clone's package and tests: the processes that run tests on mutants may not write any."""
    compiling = [*environment(clone), sys.executable, "-m", "compileall", "-q", "cudart_py"]
    for tool in (compiling, command(clone, files(tests), "--collect-only")):
        subprocess.run(["env", "-u", "PYTHONDONTWRITEBYTECODE", *tool], stdout=subprocess.DEVNULL, check=True)


class Trial:
    """Runs tests on mutants in several clones, until a point in time (of `time.monotonic`)."""

    def __init__(self, clones: list[Path], known: Record, end: float) -> None:
        self._first, self._known, self._end = clones[0], known, end
        self._free = SimpleQueue[Path]()
        for clone in clones:
            self._free.put(clone)
        self._passing, self._failing = set[str](), set[str]()  # without a mutant

    def attempt(self, item: WorkItem, tests: list[str]) -> WorkResult | None:
        """Run tests on a mutant, up to the first failure; return None if time runs out before there is a verdict.

        Tests that turn out to fail without a mutant too are left out, from then on.
        """
        clone = self._free.get()
        try:
            places = [(each, clone / each.module_path.relative_to(self._first)) for each in item.mutations]
            mutants = [attrs.evolve(each, module_path=place) for each, place in places]
            while kept := [test for test in tests if test not in self._failing]:
                result = self._run(clone, mutants, kept)
                if result is None or result.test_outcome != TestOutcome.KILLED or result.output == "timeout":
                    return result
                failed = failures(result.output or "", kept)
                if self._pass(clone, failed) if failed else self._found(clone, kept):
                    return result
                if not failed:
                    return attrs.evolve(result, test_outcome=TestOutcome.SURVIVED)
            return WorkResult(worker_outcome=WorkerOutcome.NORMAL, test_outcome=TestOutcome.SURVIVED)
        finally:
            self._free.put(clone)

    def _run(self, clone: Path, mutants: list[MutationSpec], tests: list[str]) -> WorkResult | None:
        seconds = [self._known.seconds[test] for test in tests]
        limit, left = GRACE + PATIENCE * sum(seconds), self._end - time.monotonic()
        if left <= 0:
            return None
        slow = math.ceil(GRACE + PATIENCE * max(seconds))
        options = ("-x", f"--override-ini=faulthandler_timeout={slow}", "-o", "faulthandler_exit_on_timeout=true")
        result = mutate_and_test(mutants, shlex.join(command(clone, tests, *options)), min(limit, left))
        return None if result.output == "timeout" and left < limit else result

    def _pass(self, clone: Path, tests: list[str]) -> bool:
        if not self._passing.issuperset(tests):
            done = subprocess.run(command(clone, tests), capture_output=True, text=True, check=False)
            (self._failing if done.returncode else self._passing).update(tests)
            if done.returncode:
                print(f"\nfails without a mutant too: {' '.join(tests)}\n{done.stdout[-3000:]}", file=sys.stderr)
        return self._passing.issuperset(tests)

    def _found(self, clone: Path, tests: list[str]) -> bool:
        done = subprocess.run(command(clone, tests, "--collect-only"), capture_output=True, check=False)
        return done.returncode == 0


def failures(output: str, tests: list[str]) -> list[str]:
    """Return the tests that pytest's summary names, which is none if the process ended or could not import a module."""
    lines = [f"{line} " for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [test for test in tests if any(line.startswith((f"FAILED {test} ", f"ERROR {test} ")) for line in lines)]


def run(session: WorkDB, clones: list[Path], known: Record, end: float) -> list[WorkResult]:
    """Try all mutants of a session that have no result yet, one at a time in each clone.

    Return results of the mutants that have survived so far, but had not met all of their tests when time ran out.
    """
    pending = session.pending_work_items
    chosen = {item.job_id: known.choose(*item.mutations) for item in pending}
    trial = Trial(clones, known, end)
    results: dict[str, WorkResult] = {}

    def caught(item: WorkItem) -> bool:
        return item.job_id in results and results[item.job_id].test_outcome == TestOutcome.KILLED

    def attempt(task: tuple[WorkItem, list[str]]) -> tuple[WorkItem, WorkResult | None]:
        item, tests = task
        return item, None if caught(item) else trial.attempt(item, tests)

    def count_survived(tasks: list[tuple[WorkItem, list[str]]]) -> Counter[str]:
        survived = Counter[str]()
        for count, (item, result) in enumerate(threads.imap_unordered(attempt, tasks), 1):
            print(f"\r{count} of {len(tasks)} ", end="", file=sys.stderr, flush=True)
            if result is None or caught(item):
                continue
            if result.test_outcome not in (TestOutcome.KILLED, TestOutcome.SURVIVED):
                raise RuntimeError(f"{_kind(item)} could not be tried:\n{result.output}")
            results[item.job_id] = result
            if caught(item):
                session.set_result(item.job_id, result)
            else:
                survived[item.job_id] += 1
        print(file=sys.stderr)
        return survived

    with ThreadPool(len(clones)) as threads:
        tests = [test for parts in chosen.values() for part in parts for test in part]
        threads.map(lambda clone: prepare(clone, tests), clones)
        survived = count_survived([(item, chosen[item.job_id][0]) for item in pending])
        alive = [item for item in pending if survived[item.job_id]]
        rest = [(item, piece) for item in alive for piece in known.pieces(chosen[item.job_id][1])]
        survived = count_survived(rest)
    alive = [item for item in alive if not caught(item)]
    pieces = Counter(item.job_id for item, _ in rest)
    for item in alive:
        if survived[item.job_id] == pieces[item.job_id]:
            session.set_result(item.job_id, results[item.job_id])
    return [results[item.job_id] for item in alive if survived[item.job_id] < pieces[item.job_id]]


def report(session: WorkDB, clone: Path, alive: list[WorkResult]) -> Iterator[str]:
    """Yield the lines of the table, then the survivors with their changes, also those that have not met all tests."""
    results: dict[str, list[WorkResult]] = {}
    for item, result in session.completed_work_items:
        results.setdefault(str(item.mutations[0].module_path.relative_to(clone)), []).append(result)
    yield "| module | mutants | caught | survived |\n|---|---:|---:|---:|"
    survivors: list[WorkResult] = []
    for module, each in sorted(results.items()):
        survived = [result for result in each if result.test_outcome == TestOutcome.SURVIVED]
        survivors += survived
        yield f"| `{module}` | {len(each)} | {len(each) - len(survived)} | {len(survived)} |"
    total = sum(map(len, results.values()))
    yield f"| all | {total} | {total - len(survivors)} | {len(survivors)} |"
    yield from map(_change, survivors)
    if left := len(session.pending_work_items):
        yield f"\n{left} mutants are left, of which {len(alive)} have survived some of their tests:"
        yield from map(_change, alive)


def _change(result: WorkResult) -> str:
    changes = [line for line in (result.diff or "").splitlines() if line[:2] != "--" and line[:1] in ("-", "+", "@")]
    return "\n" + "\n".join(changes)


def main() -> int:
    """Draw mutants, run the tests on them, and report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once (all processors)")
    parser.add_argument("--module", action="append", default=[], help="part of a module's path; may be repeated")
    parser.add_argument("--seconds", type=float, default=math.inf, help="when to end, even if mutants are left (never)")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
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
    with ThreadPool(1) as beside, use_db(str(folder / f"{name}.sqlite")) as session:
        recording = beside.apply_async(Record, (folder, clone, options.jobs))
        if not session.num_work_items:
            drawn, count = draw(modules, clone, options.sample, options.seed)
            print(f"{len(drawn)} of {count} mutants of {len(modules)} modules, seed {options.seed}")
            session.add_work_items(drawn)
        alive = run(session, clones, recording.get(), end)
        print(*report(session, clone, alive), sep="\n")
        survived = sum(result.test_outcome == TestOutcome.SURVIVED for _, result in session.results)
        share = 100 * (1 - survived / max(1, session.num_results))
        return int(share < LEAST or bool(session.pending_work_items))


if __name__ == "__main__":
    sys.exit(main())
