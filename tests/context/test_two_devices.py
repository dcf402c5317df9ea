"""Run the tests that need two devices, which are skipped on a machine with only one, on two simulated devices."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    "tests/libraries/test_lifetimes.py": "another_device or second_device",
    "tests/launch/test_launch.py": "own_devices_default_stream",
    "tests/streams/test_stream.py": "borrowed_default_stream",
}


@pytest.mark.unsanitized("it runs on the simulator, in a process of its own")
def test_they_pass_on_two_simulated_devices(forks):
    pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")
    options = ["-n", "0", "-v", "-rs", "-p", "no:cacheprovider", "-k", " or ".join(TESTS.values())]
    # The process that forks has imported the package, for whose asserts pytest would rewrite its modules.
    options += ["-W", "ignore:Module already imported"]
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_DEVICES": "2"}
    done = forks.run("pytest:console_main", [*options, *TESTS], environment, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout
    for path in TESTS:
        assert re.search(rf"{path}::\S+ PASSED", done.stdout), done.stdout
