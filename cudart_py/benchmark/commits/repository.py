"""A git repository: its commits, and temporary worktrees of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_FIELDS = "%H%x00%ct%x00%s"


class RepositoryError(Exception):
    """Git rejects a request, for example because a commit is unknown; the message is one line."""


class Commit(NamedTuple):
    """A commit: its full identifier, the time at which it was committed, and the first line of its message."""

    identifier: str
    when: datetime
    subject: str

    @property
    def short(self) -> str:
        """The first eight digits of the identifier."""
        return self.identifier[:8]

    def __str__(self) -> str:
        return f"{self.short} ({self.subject})"


class Repository:
    """The repository that contains a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.root = Path(self._git("rev-parse", "--show-toplevel").strip()).resolve()
        self.subfolder = self._folder.relative_to(self.root)

    def commit(self, name: str) -> Commit:
        """Return the commit that a name stands for: an identifier, a branch, a tag or an expression like `HEAD~3`."""
        identifier = self._git(
            *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"),
            otherwise=f"{name!r} is not a commit of this repository",
        )
        return self._listed("--no-walk", identifier.strip())[0]

    def between(self, first: Commit, last: Commit) -> list[Commit]:
        """Return the commits after `first` up to `last`, oldest first; of merges, only the first parents are followed.

        Raises RepositoryError if `first` is not an ancestor of `last`.
        """
        base = self._git("merge-base", first.identifier, last.identifier, what=f"{first.short} and {last.short}")
        if base.strip() != first.identifier:
            raise RepositoryError(f"{first.short} is not an ancestor of {last.short}")
        return self._listed("--first-parent", "--reverse", f"{first.identifier}..{last.identifier}")

    def range(self, text: str) -> list[Commit]:
        """Return the commits of a range such as `v1.0..main`, oldest first, following first parents."""
        if text.startswith("-"):
            raise RepositoryError(f"{text!r} is not a range of commits")
        return self._listed("--first-parent", "--reverse", text)

    def _listed(self, *arguments: str) -> list[Commit]:
        output = self._git("log", f"--format={_FIELDS}", *arguments, "--", what=arguments[-1])
        fields = (line.split("\0", 2) for line in output.splitlines())
        return [
            Commit(identifier, datetime.fromtimestamp(int(seconds), UTC), subject)
            for identifier, seconds, subject in fields
        ]

    @contextmanager
    def worktree(self, commit: Commit, path: Path) -> Iterator[Path]:
        """Check a commit out into a new worktree at `path` (git worktree add), and remove the worktree at the end."""
        try:
            self._git("worktree", "add", "--quiet", "--detach", str(path), commit.identifier, what=commit.short)
            yield path
        finally:
            # One --force discards the files that benchmarks leave behind; the second removes a worktree that an
            # interrupted checkout has left locked. The removal fails if the checkout did, which does not matter.
            self._git("worktree", "remove", "--force", "--force", str(path), check=False)

    def _git(self, *arguments: str, what: str = "", otherwise: str = "", check: bool = True) -> str:
        """Return git's output; an error is `otherwise`, or what git says about `what`."""
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *arguments], capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise RepositoryError("git is not installed") from error
        if done.returncode and check:
            reason = (done.stderr.strip().splitlines() or [f"git ended with status {done.returncode}"])[0]
            raise RepositoryError(otherwise or f"{what or self._folder}: {reason}")
        return done.stdout
