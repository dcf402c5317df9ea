"""Going back through the recorded history, and forward in it: the values of memory, and the work that this takes."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.debugging import recorder
from cudart_py.simulator.debugging.moments import Change, Moment

pytestmark = pytest.mark.needs("debugger")

SUMS = """extern "C" __global__ void sums(int* x, int turns) {
    __shared__ int tile[64];
    tile[threadIdx.x] = 0;
    for (int turn = 1; turn <= turns; turn++) {
        tile[threadIdx.x] += turn;
        if (threadIdx.x == 0) x[turn % 2] += turn;
    }
    x[threadIdx.x + 2] = tile[threadIdx.x];
}
"""


LAST_LINE = 7


@pytest.mark.parametrize("expression", ["x[1]", "tile[0]"])
def test_memory_has_its_earlier_values_on_the_way_back_and_its_later_ones_on_the_way_forward(debugged, expression):
    turns = 9
    steps = range(1, turns + 1, 2 if expression == "x[1]" else 1)
    values = [0, *np.cumsum(steps).tolist()]
    forwards = list(itertools.pairwise(values))
    backwards = [(after, before) for before, after in reversed(forwards)]
    commands = ["break 4", "run", "delete", f"break {LAST_LINE}", "continue", "delete"]
    commands += ["reverse-continue", "next", f"watch {expression}"]
    for command in ("continue", "reverse-continue", "continue"):
        commands += [command] * len(steps)
    commands.append(f"print {expression}")
    shown = debugged("\n".join(commands), "sums", cuda.zeros(66, np.int32), turns, source=SUMS)
    changes = re.findall(r"changes from (\d+) to (\d+)", shown)
    assert [(int(before), int(after)) for before, after in changes] == forwards + backwards + forwards
    assert shown.after(commands[-1]) == f"{values[-1]}\n"


def test_a_search_with_a_watchpoint_applies_each_recorded_change_once(debugged, monkeypatch):
    counts = Counter()

    class Counted(Change):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            counts["made"] += 1

        def __getattribute__(self, name):
            counts[name] += 1
            return super().__getattribute__(name)

    monkeypatch.setattr(recorder, "Change", Counted)
    commands = f"break {LAST_LINE}\nrun\nwatch x[2]\nreverse-continue\n"
    shown = debugged(commands, "sums", cuda.zeros(66, np.int32), 40, source=SUMS)
    assert "changes from 0 to -" in shown.after("reverse-continue"), "the search must reach the load of x"
    # Each turn changes x, tile, the writers of tile, and the local variable.
    assert counts["made"] > 4 * 40
    assert counts["before"] <= counts["made"]


@pytest.mark.parametrize("command", ["reverse-stepi", "reverse-step"])
def test_a_step_back_looks_only_at_the_moments_up_to_its_end(debugged, monkeypatch, command):
    steps, looked, recorded = 30, [], []
    runs, initialise = Moment.runs, Moment.__init__

    def counted_runs(self, lane):
        looked.append(self.number)
        return runs(self, lane)

    def counted_init(self, number, *arguments):
        recorded.append(number)
        initialise(self, number, *arguments)

    monkeypatch.setattr(Moment, "runs", counted_runs)
    monkeypatch.setattr(Moment, "__init__", counted_init)
    commands = f"break {LAST_LINE}\nrun\n{command} {steps}\nprint turn\n"
    shown = debugged(commands, "sums", cuda.zeros(66, np.int32), 40, source=SUMS)
    assert 0 < int(shown.after("print turn")) <= 40
    # One step looks at some moments at the end of the history, and not at each of its moments.
    assert len(looked) < len(recorded)
