"""Call everything that is public with bad arguments, and say what came of it.

    python -m tests.fuzz.arguments [--calls 30000] [--seed 1] [--batch 1000] [--show 40]
    python -m tests.fuzz.arguments --every

With a seed the calls are random, some with two bad arguments; `--every` puts each bad value once in each place.
The calls are made by processes of their own, a batch in each: one that dies is a crash, one that is silent for a minute
a hang, and the call it made then is named. What else is wrong is in the words of `cases.py`. The exit status is 1
if anything is.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .cases import Finding, every_call, find_targets, fuzz

SILENCE = 60.0
KINDS = ("crash", "hang", "inscrutable", "accepted", "changed", "leaked", "lost")


def run_batch(seed: int | None, begin: int, end: int) -> list[Finding]:
    """Make some of the calls in a process of its own, and again behind one that it did not survive."""
    found: list[Finding] = []
    while begin < end:
        with tempfile.NamedTemporaryFile("r") as notes:
            command = [
                sys.executable,
                "-m",
                "tests.fuzz.arguments",
                "--child",
                notes.name,
                str(seed),
                str(begin),
                str(end),
            ]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            while True:
                try:
                    printed, _ = child.communicate(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    if time.time() - os.stat(notes.name).st_mtime > SILENCE:
                        child.kill()
            last = notes.read().splitlines()[-1:]
        found += [Finding(**json.loads(line)) for line in printed.splitlines() if line.startswith("{")]
        if child.returncode == 0:
            break
        kind = "hang" if child.returncode == -9 else "crash"
        call = last[0] if last else f"{begin}: before the first call"
        found.append(Finding(kind, call, f"the process ended with status {child.returncode}"))
        begin = int(call.partition(":")[0]) + 1
    return found


def run_child(notes: str, seed: int | None, begin: int, end: int) -> None:
    """Make the calls, and print what is wrong as it is found."""
    with open(notes, "w") as file:

        def note(line: str) -> None:
            file.write(line + "\n")
            file.flush()

        for finding in fuzz(seed, begin, end, note):
            print("\n" + json.dumps(finding.__dict__), flush=True)


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="each bad value once in each place")
    parser.add_argument("--batch", type=int, default=1000, help="calls of one process")
    parser.add_argument("--show", type=int, default=40, help="findings to show")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        notes, seed, *numbers = options.child
        run_child(notes, None if seed == "None" else int(seed), *map(int, numbers))
        return 0
    seed = None if options.every else options.seed
    calls = len(every_call()) if options.every else options.calls
    found: list[Finding] = []
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CUDART_PY_CACHE"] = str(Path(cache) / "cache")
        for start in range(0, calls, options.batch):
            found += run_batch(seed, start, min(calls, start + options.batch))
    for finding in found[: options.show]:
        print(f"{finding.kind}: {finding.call}\n    {finding.text}")
    if len(found) > options.show:
        print(f"and {len(found) - options.show} more")
    counts = collections.Counter(finding.kind for finding in found)
    figures = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
    print(
        f"{calls:,} calls of {len(find_targets())} public calls, {'each once' if options.every else f'seed {seed}'}: "
        f"{figures} "
        f"({time.perf_counter() - begin:.0f} s)"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
