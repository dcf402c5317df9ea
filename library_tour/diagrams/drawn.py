"""The diagrams of a stop, drawn on the simulator: in this process if it runs on the simulator, else in a new process.

python -m library_tour.diagrams.drawn STOP     print them as JSON
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import cudart_py as cuda
from cudart_py.pages.diagram import Diagram

SECONDS = 120


@dataclasses.dataclass(frozen=True)
class StepDiagram:
    """A diagram that belongs to a step of a lesson; `step` is the step's name.

    `says` is a sentence that says what to look at. `text` is the diagram for a terminal, `svg` is the drawing, and
    `described` is what it shows, for those who cannot see it. `kernel` names the kernel that it was drawn from, and is
    "" for a timeline.
    """

    step: str
    says: str
    described: str
    text: str
    svg: str
    kernel: str

    @classmethod
    def of(cls, step: str, says: str, kernel: str, diagram: Diagram) -> StepDiagram:
        """Return a diagram with the step that it belongs to and the kernel that it was drawn from."""
        return cls(step, says, f"{diagram.title}. {diagram.caption}", str(diagram), diagram.svg(), kernel)


def diagrams_of(stop: str) -> Sequence[StepDiagram]:
    """Return the diagrams of a stop's steps in order; none for a stop that has no diagrams."""
    from . import table  # it imports all stops that have diagrams

    if stop not in table.DIAGRAMS:
        return ()
    if "profile" in cuda.capabilities():
        with cuda.sanitizer("off"):
            return list(table.DIAGRAMS[stop]())
    return _elsewhere(stop)


def _elsewhere(stop: str) -> Sequence[StepDiagram]:
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", __name__, stop]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=True)
    return [StepDiagram(**fields) for fields in json.loads(done.stdout)]


def main() -> None:
    """Print the diagrams of the stop that is named on the command line."""
    with cuda.Device(0):
        found = diagrams_of(sys.argv[1])
    sys.stdout.write(json.dumps([dataclasses.asdict(diagram) for diagram in found]))


if __name__ == "__main__":
    main()
