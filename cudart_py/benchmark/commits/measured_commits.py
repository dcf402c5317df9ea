"""Commits prepared for their benchmarks, each in a temporary worktree with its own environment."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ..gates.pytest_runs import PytestFailedError, PytestRuns
from .environments import BuildError, Kind, make_environment
from .repository import Commit, Repository, RepositoryError

_LONGEST_REASON = 200
# The status of pytest if it has collected no tests.
_NOTHING_COLLECTED = 5
_NO_BENCHMARKS = "pytest found no benchmarks: name their files, such as bench_x.py"
# The lines in which pytest, pip and uv report an error, among others. uv gives the reason in the last of them.
_ERROR = re.compile(r"(FAILED|ERROR:?|error:|cause:|E  ) *\S")


class CommitSkippedError(Exception):
    """A commit that cannot be built, or whose benchmarks fail: the message says why, and `output` has the details."""

    def __init__(self, commit: Commit, reason: str, output: str = "") -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if _ERROR.match(line)] or lines
        super().__init__(f"{reason}: {errors[-1][:_LONGEST_REASON]}" if errors else reason)
        self.commit = commit
        self.output = output


class CommitBench:
    """Prepares commits for their benchmarks.

    - `kind`, `requirements`: the environment, as `make_environment` takes them.
    - `copied`: files and folders of the present working tree that replace those of each commit, relative to the
      working directory. Benchmarks that are newer than a commit can measure it in this way.
    - `arguments`: arguments for pytest, which runs in the same folder of the repository as the command.
    """

    def __init__(
        self,
        repository: Repository,
        kind: Kind,
        requirements: Sequence[str],
        copied: Sequence[Path],
        arguments: Sequence[str],
    ) -> None:
        self.repository = repository
        self._kind, self._requirements = kind, requirements
        self._copied = [path.resolve() for path in copied]
        for path in self._copied:
            if not path.exists() or not path.is_relative_to(repository.root):
                raise RepositoryError(f"{path} is not a file or folder of the repository")
        self._arguments = list(arguments)

    @contextmanager
    def prepared(self, commit: Commit) -> Iterator[PytestRuns]:
        """Check a commit out, make its environment, and yield the means to run its benchmarks; remove both at the end.

        Within the block, a failure of pytest also raises CommitSkippedError.
        """
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudart-py-commit-")))
            source = stack.enter_context(self.repository.worktree(commit, folder / "source"))
            self._copy(source)
            directory = source / self.repository.subfolder
            try:
                environment = make_environment(self._kind, source, folder / "environment", self._requirements)
                if not directory.is_dir():
                    raise CommitSkippedError(commit, f"it has no folder {self.repository.subfolder}")
                results = folder / "results"
                results.mkdir()
                yield PytestRuns(self._arguments, results, environment.python, directory, environment.variables)
            except BuildError as error:
                raise CommitSkippedError(commit, "cannot be built", error.output) from error
            except PytestFailedError as error:
                if error.directory != directory:
                    raise  # of another commit, which was prepared before this one
                if error.status in (0, _NOTHING_COLLECTED):
                    raise CommitSkippedError(commit, _NO_BENCHMARKS) from error
                raise CommitSkippedError(commit, "the benchmarks failed", error.output) from error

    def _copy(self, source: Path) -> None:
        for path in self._copied:
            target = source / path.relative_to(self.repository.root)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


@contextmanager
def cleaned_up_when_terminated() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that temporary worktrees are removed as they are after a KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        with contextlib.suppress(TypeError):  # a handler that was not installed from Python cannot be restored
            signal.signal(signal.SIGTERM, before)
