"""Change the code a little, many times over, and see whether the tests notice (mutation testing by cosmic-ray).

    uv run --group mutation scripts/mutation_test.py                    300 mutants of all modules below
    uv run --group mutation scripts/mutation_test.py --module copies --sample 40 --seed 2

The mutants are cosmic-ray's: another operator, comparison, number, constant, condition, exception or decorator, a loop
that is never entered. A sample of them is drawn evenly from all. Each is planted in a clone of the last commit, never
in the checkout, and the module's tests run there in a process of their own, up to the first that fails. A mutant is
caught where a test fails or the tests take `--patience` times as long as without it.

What cannot be seen by any test is left out beforehand, by these rules:

- what stands in an annotation, which is never evaluated, or below `if TYPE_CHECKING:`;
- `==` in place of `is`, and `is` in place of `==`: the same for None, enums and small numbers, which is what either
  compares here;
- the bare `*` of a parameter list, which cosmic-ray takes for an operator, and what Python cannot compile;
- a decorator that keeps results (`functools.cache`, `lru_cache`) taken away, or its size changed: it saves time only.

Clones and results (cosmic-ray's session, a file of SQLite) lie in `--folder`; a run that was cut goes on there. In the
end the survivors are listed with what was changed. Exits with 1 if fewer than `--least` percent were caught.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import functools
import itertools
import os
import queue
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[1]

_PTX = "cudart_py/simulator/ptx/"
_PTX_TESTS = ("tests/ptx",)
# Each module with its tests, the likely ones to notice first.
MODULES = {
    "cudart_py/copies.py": (
        "tests/test_copy_ways.py",
        "tests/test_copies.py",
        "tests/test_copies_3d.py",
        "tests/test_staging.py",
        "tests/test_graph.py",
        "tests/test_array.py",
        "tests/test_peer.py",
        "tests/test_two_devices.py",
    ),
    "cudart_py/launch.py": (
        "tests/test_launch.py",
        "tests/test_launch_attributes.py",
        "tests/test_graph.py",
        "tests/test_failures.py",
        "tests/test_kernels.py",
        "tests/test_errors.py",
        "tests/test_two_devices.py",
    ),
    "cudart_py/cache.py": ("tests/test_cache.py", "tests/test_compilation.py"),
    "cudart_py/capture.py": (
        "tests/test_capture_ends.py",
        "tests/test_graph.py",
        "tests/test_capture_lifetime.py",
        "tests/test_callbacks.py",
    ),
    "cudart_py/simulator/work.py": (
        "tests/simulator/test_queue.py",
        "tests/simulator/test_graphs.py",
        "tests/simulator/test_lifetimes.py",
        "tests/simulator/test_checks_races.py",
        "tests/simulator/test_contexts.py",
        "tests/test_stream.py",
        "tests/test_event.py",
    ),
    "cudart_py/simulator/streams.py": (
        "tests/simulator/test_queue.py",
        "tests/simulator/test_graphs.py",
        "tests/simulator/test_contexts.py",
        "tests/simulator/test_lifetimes.py",
        "tests/test_stream.py",
    ),
    _PTX + "arithmetic.py": ("tests/ptx/test_integers.py", "tests/ptx/test_floating.py", *_PTX_TESTS),
    _PTX + "bits.py": ("tests/ptx/test_bits.py", *_PTX_TESTS),
    _PTX + "carry.py": ("tests/ptx/test_integers.py", *_PTX_TESTS),
    _PTX + "comparisons.py": ("tests/ptx/test_integers.py", "tests/ptx/test_floating.py", *_PTX_TESTS),
    _PTX + "conversions.py": ("tests/ptx/test_conversions.py", *_PTX_TESTS),
    _PTX + "floating.py": ("tests/ptx/test_floating.py", *_PTX_TESTS),
    _PTX + "half.py": ("tests/ptx/test_half.py", *_PTX_TESTS),
    _PTX + "integers.py": ("tests/ptx/test_integers.py", "tests/ptx/test_simd.py", *_PTX_TESTS),
}

_IDENTITY = {"Is", "IsNot"}
_MEMORY = 8 << 30  # bytes that a mutant may ask for


def unseen(source: str, mutation: MutationSpec) -> bool:
    """Tell whether one of the rules above leaves a mutant out."""
    kind = mutation.operator_name.rpartition("/")[2]
    if kind.startswith("ReplaceComparisonOperator_"):
        _, before, after = kind.split("_")
        if (before in _IDENTITY) != (after in _IDENTITY) and {before, after} & {"Eq", "NotEq"}:
            return True
    line, column = mutation.start_pos
    if source.splitlines()[line - 1][column:].startswith("*,"):
        return True
    return any(begin <= mutation.start_pos and mutation.end_pos <= end for begin, end in _quiet(source))


@functools.cache
def _quiet(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return from where to where a module's annotations, imports for them, and kept results are spelled."""
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
    # A decorator's own position, as cosmic-ray has it, begins with its @.
    return [
        ((node.lineno, max(0, node.col_offset - 1)), (node.end_lineno or 0, (node.end_col_offset or 0) + 1))
        for node in nodes
    ]


def draw(modules: list[str], clone: Path, sample: int, seed: int) -> tuple[list[WorkItem], int]:
    """Return a sample of the mutants that the modules have, in an order that mixes them, and how many there are."""
    with tempfile.TemporaryDirectory() as folder, use_db(os.path.join(folder, "all.sqlite")) as every:
        init([clone / module for module in modules], every, {})
        found = list(every.work_items)
    sources = {path: path.read_text() for path in {item.mutations[0].module_path for item in found}}
    found = [item for item in found if not unseen(sources[item.mutations[0].module_path], item.mutations[0])]
    # cosmic-ray numbers them at random, and the same seed must draw the same.
    found.sort(key=lambda item: (str(item.mutations[0].module_path), *item.mutations[0].start_pos, _kind(item)))
    random.Random(seed).shuffle(found)
    compiled = (item for item in found if compiles(sources[item.mutations[0].module_path], item.mutations[0]))
    return list(itertools.islice(compiled, sample)), len(found)


def compiles(source: str, mutation: MutationSpec) -> bool:
    """Tell whether a mutant is Python at all."""
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    mutated = mutate_code(source, operator, mutation.occurrence)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of `is` with a number, which is a mutant all the same
            compile(mutated, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _kind(item: WorkItem) -> str:
    mutation = item.mutations[0]
    return f"{mutation.operator_name} {mutation.occurrence}"


def make_clone(place: Path) -> Path:
    """Clone the last commit, or bring a clone back to what it was if a run was cut there."""
    if not place.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "checkout", "--quiet", "--force", "HEAD"], check=True)
    return place


def command(clone: Path, module: str) -> str:
    """Return how a module's tests run in a clone, whose package stands before an installed one."""
    tests = [test for test in MODULES[module] if (clone / test).exists()]
    arguments = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return shlex.join(["env", "-C", str(clone), f"PYTHONPATH={clone}", "CUDART_PY_DRIVER=simulator", *arguments])


def baseline(clone: Path, module: str) -> float:
    """Return the seconds that a module's tests take without a mutant, which must pass."""
    began = time.monotonic()
    done = subprocess.run(shlex.split(command(clone, module)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the tests of {module} fail without a mutant:\n{done.stdout[-3000:]}")
    return time.monotonic() - began


def forget(clone: Path, module: str) -> None:
    """Remove what is kept compiled of a module: it might pass for a mutant's, whose file may have its time and size."""
    for kept in (clone / module).parent.glob(f"__pycache__/{Path(module).stem}.*.pyc"):
        kept.unlink()


def _all_tests(module: str) -> frozenset[str]:
    """Return a module's tests without order, and without those that lie in a folder that is named too."""
    named = set(MODULES[module])
    return frozenset(test for test in named if not {str(folder) for folder in Path(test).parents} & named)


def try_mutant(item: WorkItem, origin: Path, clone: Path, limit: float) -> WorkResult:
    """Plant a mutant in a clone, which need not be the one that it was found in, and run its module's tests."""
    (mutation,) = item.mutations
    module = str(mutation.module_path.relative_to(origin))
    there = MutationSpec(
        module_path=clone / module,
        operator_name=mutation.operator_name,
        occurrence=mutation.occurrence,
        start_pos=mutation.start_pos,
        end_pos=mutation.end_pos,
    )
    return mutate_and_test([there], command(clone, module), limit)


def run(session: WorkDB, clones: list[Path], limits: dict[str, float]) -> None:
    """Try all mutants of a session that have no result yet, one in each clone at a time."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for clone in clones:
        free.put(clone)

    def work(item: WorkItem) -> tuple[str, WorkResult]:
        clone = free.get()
        try:
            module = str(item.mutations[0].module_path.relative_to(clones[0]))
            return item.job_id, try_mutant(item, clones[0], clone, limits[module])
        finally:
            free.put(clone)

    pending = session.pending_work_items
    with concurrent.futures.ThreadPoolExecutor(len(clones)) as pool:
        for count, (job, result) in enumerate(pool.map(work, pending), 1):
            session.set_result(job, result)
            print(f"\r{count} of {len(pending)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def report(session: WorkDB, clone: Path) -> Iterator[str]:
    """Give the lines of the table and the survivors with their changes."""
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
    """Draw, try and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--module", action="append", default=[], help="part of a module's path; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="clones at work at a time (1)")
    parser.add_argument("--patience", type=float, default=4, help="times as long as without a mutant is too long (4)")
    parser.add_argument("--least", type=float, default=95, help="percentage that must be caught (95)")
    parser.add_argument("--folder", type=Path, help="where clones and results lie, by default one for each commit")
    options = parser.parse_args()
    modules = [module for module in MODULES if any(part in module for part in options.module or [""])]
    if not modules:
        parser.error(f"no module's path has {' or '.join(options.module)} in it; there are {', '.join(MODULES)}")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    folder = options.folder or Path(tempfile.gettempdir()) / f"cudart-py-mutation-{head.stdout[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    # In the background a shell ignores interrupts, which the tests would inherit, and some interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # They inherit this too: what a mutant asks for too much must not take the machine's memory.
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    clones = [make_clone(folder / f"clone{number}") for number in range(options.jobs)]
    name = "-".join(map(str, (options.sample, options.seed, *sorted(options.module))))
    with use_db(str(folder / f"{name}.sqlite")) as session:
        if not session.num_work_items:
            drawn, count = draw(modules, clones[0], options.sample, options.seed)
            print(f"{len(drawn)} of {count} mutants of {len(modules)} modules, seed {options.seed}")
            session.add_work_items(drawn)
        needed = {str(item.mutations[0].module_path.relative_to(clones[0])) for item in session.pending_work_items}
        seconds: dict[frozenset[str], float] = {}
        for module in sorted(needed):
            if _all_tests(module) not in seconds:
                seconds[_all_tests(module)] = baseline(clones[0], module)
            for clone in clones:
                forget(clone, module)
        run(session, clones, {module: 20 + options.patience * seconds[_all_tests(module)] for module in needed})
        print(*report(session, clones[0]), sep="\n")
        alive = sum(result.test_outcome == TestOutcome.SURVIVED for _, result in session.results)
        return int(100 * (1 - alive / max(1, session.num_results)) < options.least)


if __name__ == "__main__":
    sys.exit(main())
