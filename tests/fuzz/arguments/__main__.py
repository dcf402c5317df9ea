"""Call everything public with bad arguments, and report what is wrong.

    python -m tests.fuzz.arguments [--calls 30000] [--seed 1]
    python -m tests.fuzz.arguments --every

With a seed the calls are random, some with two bad arguments; `--every` puts each bad value once in each place.
Child processes make the calls, a thousand each, in a temporary folder, because some calls write files. A child that
dies is a crash, one that doesn't end is a hang, and its last call is named. `cases.py` defines the other findings. The
exit status is 1 if there are any findings.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .cases import Finding, every_call, fuzz

ROOT = Path(__file__).parents[3]
BATCH, SECONDS = 1000, 600
KINDS = ("crash", "hang", "inscrutable", "accepted", "changed", "leaked", "lost")


def run_batch(seed: int | None, begin: int, end: int, folder: str) -> list[Finding]:
    """Make calls from `begin` to `end` in a new process in `folder`; if a call kills it, continue in another."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tests.fuzz.arguments", "--child", str(seed), str(begin), str(end)]
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
        kind, printed = "crash" * bool(ended.returncode), ended.stdout
    except subprocess.TimeoutExpired as error:
        kind, printed = "hang", error.stdout or b""
    lines = printed.decode(errors="replace").splitlines()
    found = [Finding(**json.loads(line)) for line in lines if line.startswith('{"kind"')]
    if not kind:
        return found
    call = next((line for line in reversed(lines) if line.startswith("call ")), f"call {begin}: none yet")
    number = int(call.removeprefix("call ").partition(":")[0])
    return [*found, Finding(kind, call), *(run_batch(seed, number + 1, end, folder) if number + 1 < end else [])]


def run_child(seed: int | None, begin: int, end: int) -> None:
    """Make the calls, printing each before it is made and each finding at once."""
    for finding in fuzz(seed, begin, end, lambda call: print(f"\ncall {call}", flush=True)):
        print(f"\n{json.dumps(finding.__dict__)}", flush=True)


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="each bad value once in each place")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        seed, *numbers = options.child
        run_child(None if seed == "None" else int(seed), *map(int, numbers))
        return 0
    seed = None if options.every else options.seed
    calls = len(every_call()) if options.every else options.calls
    found: list[Finding] = []
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        os.environ["CUDART_PY_CACHE"] = str(Path(cache) / "cache")
        for start in range(0, calls, BATCH):
            found += run_batch(seed, start, min(calls, start + BATCH), folder)
    for finding in found:
        print(f"{finding.kind}: {finding.call}\n    {finding.text}")
    counts = collections.Counter(finding.kind for finding in found)
    print(f"{calls} calls, {'each once' if options.every else f'seed {seed}'}:", end=" ")
    print(*(f"{counts[kind]} {kind}" for kind in KINDS), sep=", ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
