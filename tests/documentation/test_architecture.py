"""The picture of the architecture shows the rooms of the contracts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What only starts programs, and what no other room asks for.
UNDRAWN = {"__main__", "version"}


def test_the_picture_has_each_room_of_the_contracts():
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r"\w+", " ".join(re.findall(r"<text(?! class)[^>]*>([^<]+)<", picture))))
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [
        layer
        for contract in contracts
        if contract.get("containers") in (["cudart_py"], ["cudart_py.simulator"])
        for layer in contract["layers"]
    ]
    assert {room for layer in layers for room in re.findall(r"\w+", layer)} - UNDRAWN <= drawn
