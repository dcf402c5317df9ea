import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext

import pytest

from cudart_py.host.programs import Program
from library_tour import processes
from library_tour.__main__ import main
from library_tour.runner import Outcome
from library_tour.stop import Result
from tests.forks import own_environment

pytestmark = pytest.mark.unsanitized("the stops run in other processes")

NAMES = ["memset", "daxpy", "device_query"]


def tour(*arguments: str) -> list[str]:
    """Return the command that runs stops, two at a time if there is no GPU."""
    program = (
        "import sys; from library_tour import __main__, processes\n"
        "if __name__ == '__main__':\n"
        "    processes.processors = lambda: 2\n"
        "    sys.exit(__main__.main())"
    )
    return [sys.executable, "-c", program, "run", *arguments]


@contextmanager
def started(*arguments: str):
    """Start a tour without a GPU, as a shell starts it, in a process group of its own."""
    pipe = subprocess.PIPE
    command = tour(*arguments)
    environment = {**own_environment(), "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("CUDART_PY_DRIVER", None)
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_stops_that_run_beside_each_other_are_reported_in_their_order():
    with started(*NAMES, "--driver", "simulator") as running:
        out, err = running.communicate(timeout=100)
    assert re.findall(f"^({'|'.join(NAMES)}): ", out, re.MULTILINE) == NAMES
    assert out.endswith(f"{len(NAMES)} stops: {len(NAMES)} passed\n")
    assert (running.returncode, err) == (0, "")


def test_only_one_process_says_that_there_is_no_gpu():
    with started(*NAMES) as running:
        _, err = running.communicate(timeout=100)
    assert running.returncode == 0
    assert len(err.splitlines()) == 1


def test_ctrl_c_ends_all_processes_and_prints_one_line():
    with started("--driver", "simulator") as running:
        while "device_query: " not in running.stdout.readline():
            pass
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=30)
        assert re.fullmatch(r"library-tour: interrupted in \w+; \d+ of \d+ stops have run\n", err)
        assert running.returncode == 130
        end = time.monotonic() + 20
        while has_members(running.pid):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_end_of_a_process_that_runs_stops_is_reported_in_one_line(monkeypatch, capsys):
    def found():
        yield Outcome("memset", "", None, "", 0.1, "passed", Result([]))
        raise BrokenProcessPool

    monkeypatch.setattr(processes, "outcomes_of", lambda *arguments: nullcontext(found()))
    assert main(["run", *NAMES]) == 1
    assert re.search("process .* killed.* in daxpy; 1 of 3 stops have run\n$", capsys.readouterr().err)


def refuse(*arguments: object, **named: object) -> None:
    raise AssertionError("a pool was opened")


@pytest.mark.parametrize("reason", ["timed", "watched", "ranks", "one processor", "one stop"])
def test_stops_run_in_this_process_if(reason, monkeypatch):
    monkeypatch.setattr(processes, "pool", refuse)
    monkeypatch.setattr(processes, "processors", lambda: 1 if reason == "one processor" else 2)
    monkeypatch.setattr(Program, "running", reason == "watched")
    monkeypatch.setattr(processes, "started_by_mpi", lambda: reason == "ranks")
    capabilities = {"gpu_timing"} if reason == "timed" else set()
    monkeypatch.setattr(processes.cuda, "capabilities", lambda: capabilities)
    monkeypatch.setattr(processes, "run_stop", lambda name, device, size: name)
    names = NAMES[:1] if reason == "one stop" else NAMES
    with processes.outcomes_of(names, None, None) as found:
        assert list(found) == names


SERVED = """
import os, signal
from library_tour.forks import Forks

if __name__ == "__main__":
    print(Forks([]).run("os:getpid", [], os.environ, seconds=60).returncode, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_of_forks_leaves_nothing_behind_even_if_its_process_is_killed(tmp_path):
    environment = {**own_environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SERVED], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "0\n")
    end = time.monotonic() + 20
    while any(tmp_path.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.05)
