"""Stops that run in the ranks of an MPI program, and the end of the program when one of them fails."""

import re
import sys
import time
from pathlib import Path

import pytest

from library_tour import lesson, ranks
from library_tour.__main__ import main
from library_tour.ranks import Place

FAIL = """
import os, signal, sys, time
from library_tour import ranks
from library_tour.__main__ import main
from library_tour.course import halo

def fail(self, copy):
    print("failed at", time.time(), flush=True)
    {}

if ranks.world().rank == 1:
    halo.RankStrip.exchange = fail
sys.exit(main(["run", "halo", "--size", "32"]))
"""
SAME_DEVICE = """
import sys
from library_tour import ranks
from library_tour.__main__ import main
ranks.place = lambda rank, device: ranks.Place(rank, "a host", "GPU-1", "device 0")
sys.exit(main(["run", "halo", "--size", "32"]))
"""
# Runs a rank like Open MPI: its standard output is a pseudo-terminal, from which another process reads.
IN_TERMINAL = """
import os, sys
terminal, end = os.openpty()
if os.fork():
    os.dup2(end, 1)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
os.close(end)
while True:
    try:
        text = os.read(terminal, 2**16)
    except OSError:  # the other end is closed
        break
    os.write(1, text)
"""


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.exhaustive
def test_three_ranks_run_all_stops_for_several_devices(mpiexec):
    done = mpiexec("-m", "library_tour", "run", "--size", "61", count=3)
    assert done.returncode == 0, done.stderr
    assert "4 stops: 4 passed" in done.stdout
    of_three = [rf"{name} .*\b3" for name in ("MPI, through the host", "SUMMA", "strong scaling", "weak scaling")]
    for name in ("sequential", "overlapped", *of_three):
        assert len(re.findall(rf"^{name} .*right", done.stdout, re.MULTILINE)) == 1, done.stdout


@pytest.mark.exhaustive
def test_a_lesson_is_shown_once_by_all_ranks_together(mpiexec):
    done = mpiexec("-m", "library_tour", "show", "halo", "--size", "61", count=2)
    assert done.returncode == 0, done.stderr
    for heading in (lesson.LEARN, "On this machine", "Exercise"):
        assert len(re.findall(rf"^{heading}$", done.stdout, re.MULTILINE)) == 1, done.stdout
    assert len(re.findall(r"^sequential .*right", done.stdout, re.MULTILINE)) == 1, done.stdout


def check_that_all_ended(done) -> None:
    assert time.time() - float(re.search(r"failed at (\S+)", done.stdout)[1]) < 10
    assert done.returncode


def test_all_ranks_end_with_the_one_that_is_killed(mpiexec):
    done = mpiexec("-c", FAIL.format("os.kill(os.getpid(), signal.SIGKILL)"), count=2)
    check_that_all_ended(done)
    assert re.search("Killed|signal 9", done.stdout + done.stderr)


@pytest.fixture
def terminal(monkeypatch):
    """Make programs believe that their terminal supports colours, which nobody has asked for."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_ranks_on_one_device_are_named_once_and_write_plain_text_to_a_pseudo_terminal(mpiexec, terminal):
    done = mpiexec("-c", IN_TERMINAL, "-c", SAME_DEVICE, count=2)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^halo: ", done.stdout, re.MULTILINE)) == 1
    assert "\x1b" not in done.stdout
    assert done.stderr.count("ranks 0, 1 share device 0 (GPU-1) of a host") == 1


def test_all_ranks_end_with_one_that_raises_and_a_pseudo_terminal_gets_colours_that_are_asked_for(
    mpiexec, terminal, monkeypatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = mpiexec("-c", IN_TERMINAL, "-c", FAIL.format("raise RuntimeError('the wheels came off')"), count=2)
    check_that_all_ended(done)
    assert "\x1b" in done.stdout
    assert "rank 1 of 2 on " in done.stderr
    assert "ends all ranks: halo: RuntimeError: the wheels came off" in words(done.stderr)


def test_devices_are_the_same_only_on_one_host():
    places = [Place(0, "a", "x", "device 0"), Place(1, "b", "x", "device 0"), Place(2, "a", "y", "device 1")]
    assert ranks.same_devices(places) == []
    [line] = ranks.same_devices([*places, Place(7, "b", "x", "device 0")])
    assert line.startswith("ranks 1, 7 share device 0 (x) of b and")


@pytest.fixture
def as_a_rank(monkeypatch):
    """Make this process look as if mpiexec had started it."""
    monkeypatch.setenv("PMI_RANK", "0")
    ranks.world.cache_clear()
    yield
    ranks.world.cache_clear()


def test_a_missing_mpi4py_is_named(as_a_rank, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "halo"])
    assert "pip install 'cudart-py[mpi]'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["run", "halo", "daxpy"], ["show", "daxpy"]], ids=str)
def test_a_stop_of_one_process_is_refused_in_ranks(as_a_rank, capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "daxpy runs in one process: start it without mpiexec" in words(capsys.readouterr().err)


BUFFERS = """
from mpi4py import MPI
import numpy as np
import cudart_py as cuda
from library_tour.ranks import Ranks
ranks = Ranks(MPI.COMM_WORLD)
with ranks.own_device():
    mine, sums = cuda.managed_empty(5, np.float32), cuda.pinned_empty(5, np.float32)
    mine[:] = ranks.rank + 1
    ranks.comm.Allreduce(mine, sums)
    assert (sums == 3).all()
    array = cuda.to_device(mine)
    if ranks.takes_device_memory():
        array.stream.synchronize()
        ranks.comm.Allreduce(MPI.IN_PLACE, array)
        assert (array.to_host() == 3).all()
print("done")
"""


def test_the_guides_program_runs_and_arrays_are_buffers_where_mpi_says_so(mpiexec):
    page = Path(__file__).parents[2] / "docs" / "many-devices.md"
    [program] = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    done = mpiexec("-c", program + BUFFERS, count=2)
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"rank (\d) has the elements of rank (\d)", done.stdout)) == {("0", "1"), ("1", "0")}
    assert done.stdout.count("done") == 2
