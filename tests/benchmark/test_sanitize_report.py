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
    check_report(pytester.path, done.outlines, "warning")


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("off", ["--sanitize-report=out.sarif"], "--sanitize-report needs the simulator's checks"),
        ("0", ["--sanitize-report=-"], "--sanitize-report needs the simulator's checks"),
        ("warn", ["--sanitize-format=github"], "--sanitize-format is the format of --sanitize-report"),
        ("warn", ["--sanitize-report=no/out.sarif"], "no/out.sarif cannot be written: the folder no does not exist"),
        ("warn", ["--counters-markdown=."], ". cannot be written: it is a folder"),
    ],
)
def test_options_that_cannot_have_an_effect_are_usage_errors_before_any_test(
    run, pytester, monkeypatch, mode, options, message
):
    monkeypatch.setenv("CUDART_PY_SANITIZER", mode)
    done = run("def test_any():\n    open('ran', 'w').close()", *options, benchmark=False)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert message in "".join(done.errlines)
    assert not (pytester.path / "ran").exists()
