"""pytest's option --sanitize-report, which writes what the simulator's checks find."""

import pytest

from tests.findings.test_findings import PROGRAM, check_report

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.needs("profile")  # the simulator alone checks kernels


def test_the_findings_are_written_even_if_their_warnings_are_hidden(run, pytester, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    (pytester.path / "test_reverse.py").write_text(PROGRAM)
    hidden = ["-W", "ignore::cudart_py.errors.SimulatorWarning"]
    done = run("", "test_reverse.py", *hidden, "--sanitize-report=out.sarif", benchmark=False)
    assert done.ret == 0
    check_report(pytester.path, done.outlines)
