#!/usr/bin/env python3
"""Compare the public API with the accepted one, so that no public name changes unnoticed.

    python scripts/public_api.py             print each change; the exit status is 1 if there is any
    python scripts/public_api.py --accept    write the present API, to be reviewed as a change to public_api.txt

The public modules are those whose names the pages of docs/reference/ show, and `__all__` lists the names of each. Each
line of the file is a name with its signature or annotation, as griffe reads it from the source. Names that begin with
an underscore are not public. The members of a base class are listed under the base if it is public, and otherwise under
each public class that inherits them.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("public_api.txt")
# Methods that Python calls and that no syntax of a program invokes.
HOOKS = {"__del__", "__dir__", "__getattr__", "__reduce__", "__repr__"}
# The griffe labels that matter to callers. Others, such as "dataclass", do not.
LABELS = {"async", "classmethod", "deletable", "property", "staticmethod", "writable"}


def public_modules() -> list[str]:
    """Return the modules of the names that the reference shows."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "reference").glob("*.md"))]
    return sorted({name for page in pages for name in re.findall(r"^::: (\S+)\.\w+", page, re.MULTILINE)})


def public_api(root: Path, modules: Sequence[str]) -> list[str]:
    """Return one line per public name of some modules, whose sources are under a folder, sorted by name."""
    loader = griffe.GriffeLoader(search_paths=[root], allow_inspection=False)
    for package in {module.partition(".")[0] for module in modules}:
        loader.load(package)
    collected = loader.modules_collection
    exported = {
        f"{module}.{name}": collected[f"{module}.{name}"]
        for module in modules
        for name in map(str, collected[module].exports or ())
    }
    public = {found.canonical_path for found in exported.values()}
    return sorted(
        {line for path, found in exported.items() for line in lines(path, found, public)},
        key=lambda line: (name_of(line), line),
    )


def lines(path: str, found: griffe.Object | griffe.Alias, public: set[str]) -> Iterator[str]:
    """Yield the lines of a name and of its members; `public` has the canonical paths of all public names."""
    if found.is_alias:
        found = found.final_target
    if found.is_class:
        bases = f"({', '.join(map(str, found.bases))})" if found.bases else ""
        yield f"class {path}{bases}"
        for name, member in members(found, public).items():
            yield from lines(f"{path}.{name}", member, public)
    elif found.is_function:
        for each in found.overloads or [found]:
            yield f"{path}{each.signature(return_type=True).removeprefix(each.name)}{labelled(found)}"
    elif found.is_module:
        yield f"module {path}"
    else:
        yield f"{path}{f': {found.annotation}' if found.annotation else ''}{labelled(found)}"


def members(found: griffe.Class, public: set[str]) -> dict[str, griffe.Object | griffe.Alias]:
    """Return the public members of a class, including those of bases that are not public themselves."""
    private_bases = [base for base in found.mro() if base.canonical_path not in public]
    every = {name: member for each in (*reversed(private_bases), found) for name, member in each.members.items()}
    return {name: member for name, member in every.items() if not name.startswith("_") or is_operator(name, member)}


def is_operator(name: str, member: griffe.Object | griffe.Alias) -> bool:
    """Check whether a member is a method that Python's syntax invokes, such as `__getitem__`."""
    return name.startswith("__") and name.endswith("__") and name not in HOOKS and member.is_function


def labelled(found: griffe.Object) -> str:
    """Return the labels of a name in brackets, or nothing."""
    labels = sorted(LABELS & found.labels)
    return f"  [{', '.join(labels)}]" if labels else ""


def name_of(line: str) -> str:
    """Return the name that a line begins with."""
    return re.match(r"(?:class |module )?([\w.]+)", line)[1]


def changes(accepted: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the lines that were removed, with a minus sign in front, and those that were added, with a plus sign."""
    return [line for line in difflib.ndiff(accepted, now) if line.startswith(("-", "+"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description="Compare the public API with the accepted one.")
    parser.add_argument("--accept", action="store_true", help="write the present API")
    options = parser.parse_args(arguments)
    now = public_api(ROOT, public_modules())
    found = changes(FILE.read_text(encoding="utf-8").splitlines(), now) if FILE.exists() else []
    print("\n".join(found) or "the public API is the accepted one")
    if options.accept:
        FILE.write_text("\n".join(now) + "\n", encoding="utf-8")
        print(f"written: {FILE.relative_to(ROOT)}, {len(now)} lines")
        return 0
    if found:
        print(
            "CONTRIBUTING.md, section Public names, says what a change needs;"
            " `python scripts/public_api.py --accept` accepts it."
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
