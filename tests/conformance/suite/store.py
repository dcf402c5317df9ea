"""Recorded results: one compressed file for each group, with what they were recorded on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .frame import ROOT, Array, Case

DATA = ROOT / "data"
COMMAND = "python tests/conformance/record.py tests/conformance/data"


class MissingDataError(LookupError):
    """No result was recorded, or not of this code and these inputs. The message names the command that records."""


def save(folder: Path, group: str, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> None:
    """Write a group's arrays and metadata as `folder/<group>.npz`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = np.array(json.dumps(metadata, sort_keys=True))
    np.savez_compressed(folder / f"{group}.npz", allow_pickle=False, metadata=text, **arrays)


def load(group: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read a group's arrays and metadata."""
    path = DATA / f"{group}.npz"
    if not path.is_file():
        raise MissingDataError(f"{path.name} was never recorded: run `{COMMAND}` on a machine with a GPU")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "metadata"}
        return arrays, json.loads(str(file["metadata"]))


def expected(case: Case) -> dict[str, Array]:
    """Return a case's recorded arrays by name; MissingDataError if it is not the case that was recorded."""
    arrays, metadata = load(case.group)
    if metadata["digests"].get(case.id) != case.digest:
        raise MissingDataError(
            f"{case.group}.npz holds no result of {case.id} as it is now: run `{COMMAND}` on a machine with a GPU"
        )
    return {out.name: arrays[f"{case.id}/{out.name}"] for out in case.outs}
