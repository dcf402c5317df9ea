"""The magics of IPython: kernels in cells, their errors, and the reports below them."""

import re
import subprocess
import sys

import numpy as np
import pytest

import cudart_py as cuda
from tests.browser import check_width
from tests.forks import own_environment

interactive = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython is not installed (the dependency group notebook)"
)
capture = pytest.importorskip("IPython.utils.capture", reason="as above")

REVERSE = """extern "C" __global__ void reverse(float* x)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    SYNC
    x[threadIdx.x] = s[63 - threadIdx.x];
}
template <class T> __global__ void halve(T* x, int n)
{
    if (threadIdx.x < n)
        x[threadIdx.x] /= 2;
}
"""
RIGHT = REVERSE.replace("SYNC", "__syncthreads();")


def make_shell(folder):
    """Return a shell with the extension loaded, which keeps its history in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        one = interactive.InteractiveShell.instance()
    one.history_manager.enabled = False
    one.run_line_magic("load_ext", "cudart_py")
    return one


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    yield make_shell(tmp_path_factory.mktemp("ipython"))
    interactive.InteractiveShell.clear_instance()


@pytest.fixture
def x(shell):
    """Return 64 numbers on the device, in the shell's variable `x`."""
    shell.user_ns["x"] = cuda.to_device(np.arange(64, dtype=np.float32))
    return shell.user_ns["x"]


def run(shell, line, cell=None):
    """Run a magic; return its result and the captured output."""
    name, _, rest = line.partition(" ")
    with capture.capture_output() as output:
        if cell is None:
            return shell.run_line_magic(name, rest), output
        return shell.run_cell_magic(name, rest, cell), output


def failed(shell, code):
    """Run a cell that fails; return its output without colours, as a terminal shows it."""
    with capture.capture_output() as output:
        result = shell.run_cell(code)
    assert not result.success
    return result.error_in_exec, without_colors(output.stdout)


def without_colors(text):
    return re.sub(r"\033\[[\d;]*m", "", text)


def test_a_cell_defines_its_kernels_and_prints_their_signatures(shell, x):
    _, output = run(shell, 'cuda --names "halve<float>" --module both', RIGHT)
    assert output.stdout.splitlines() == ["void halve<float>(float*, int)", "void reverse(float*)"]
    shell.user_ns["reverse"][1, 64](x)
    shell.user_ns["both"]["halve<float>"][1, 64](x, 32)
    expected = np.arange(64, dtype=np.float32)[::-1].copy()
    expected[:32] /= 2
    np.testing.assert_array_equal(x.to_host(), expected)


def test_an_error_marks_the_line_of_the_cell_and_has_no_traceback(shell):
    error, shown = failed(shell, "%%cuda\n" + RIGHT.replace("s[threadIdx.x] =", "t[threadIdx.x] ="))
    assert isinstance(error, cuda.CompileError)
    assert "Traceback" not in shown
    # The notebook counts the line of the magic as line 1.
    at = shown.splitlines().index("---->    5     t[threadIdx.x] = x[threadIdx.x];")
    assert shown.splitlines()[at - 3] == 'line 5: error: identifier "t" is undefined'
    assert shown.splitlines()[at + 1].index("^") == "---->    5     t".index("t")


def test_a_mark_shows_only_lines_of_the_cell(shell):
    _, shown = failed(shell, "%%cuda\n__global__ void one() {\n    return 1 +;\n}")
    numbered = re.findall(r"^(?:---->)? +(\d+) (.*)$", shown, re.MULTILINE)
    assert numbered == [("2", "__global__ void one() {"), ("3", "    return 1 +;"), ("4", "}")]


def test_a_warning_marks_its_line_and_the_kernel_is_defined(shell):
    _, output = run(shell, "cuda", RIGHT.replace("SYNC", "").replace("__shared__", "int unused; __shared__"))
    assert "warning" in output.stderr
    shown = without_colors(output.stderr)
    assert "---->    4     int unused; __shared__ float s[64];" in shown
    assert re.search(r"^ {19}\^$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("%%cuda --profile\nint i;", "--run"),
        ("%%cuda --arhc=sm_90\nint i;", "--arhc=sm_90"),
        ("%cuda_time", "no code"),
        ("%cuda_time --bytes", "--bytes"),
        ('%%cuda --run "reverse[1, 64](x)\nint i;', "quotation"),
        ('%%cuda --run "a[1,"\nnot C++', "--run 'a[1,' is not valid Python"),
    ],
)
def test_a_misused_magic_says_so_in_a_sentence(shell, code, words):
    with capture.capture_output() as output:
        assert not shell.run_cell(code).success
    assert words in output.stderr
    assert "Traceback" not in output.stdout + output.stderr


@pytest.mark.needs("profile")
@pytest.mark.parametrize(
    "code",
    [
        "%cuda_time reverse[1, 64](x)",
        "%%cuda_time\nreverse[1, 64](x)",
        "%cuda_run --profile reverse[1, 64](x)",
        "with cuda.profile():\n    reverse[1, 64](x)",
    ],
)
def test_a_warning_names_the_cell_whose_launch_was_checked(shell, x, code):
    shell.user_ns["cuda"] = cuda
    run(shell, "cuda", REVERSE.replace("SYNC", ""))
    with pytest.warns(cuda.errors.SimulatorWarning) as found, capture.capture_output():
        assert shell.run_cell(code).success
    (warning,) = found
    assert warning.filename.startswith("<ipython-input-")


@pytest.mark.needs("profile")
def test_the_text_of_a_report_has_estimates_and_advice_and_no_empty_parts(shell, x):
    _, output = run(shell, 'cuda --profile --run "reverse[1, 64](x)"', RIGHT)
    text = output.outputs[0].data["text/plain"]
    assert "Estimated cost of the most expensive lines" in text
    assert "dvice" in text
    _, output = run(shell, "cuda_run 1 + 1")
    assert "\n\n\n" not in output.outputs[0].data["text/plain"]


def test_help_lists_the_options(shell):
    _, output = run(shell, "cuda_run --help")
    assert "--sanitize" in output.stdout


@pytest.mark.needs("profile")
def test_a_cell_shows_its_line_profile_findings_and_diagrams_below(shell, x):
    racing = REVERSE.replace("SYNC", "")
    _, output = run(shell, 'cuda --profile --sanitize --draw --run "reverse[1, 64](x)"', racing)
    assert "SimulatorWarning" not in output.stderr
    (report,) = output.outputs
    html, text = report.data["text/html"], report.data["text/plain"]
    # Line 7 of the cell reads what other threads wrote.
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    at = next(index for index, row in enumerate(rows) if "<strong>7</strong>" in row)
    assert "x[threadIdx.x] = s[63 - threadIdx.x];" in rows[at]
    assert "<strong>race</strong>: it reads 4 bytes" in rows[at + 1]
    assert html.count("<img ") == text.count("bytes per lane (cell.cu") == 4
    assert re.search(r"4\.0 +100\.0 +0 +32\.0 +5 +s\[threadIdx\.x\] = x\[threadIdx\.x\];", text)
    assert "race: it reads 4 bytes" in text


@pytest.mark.needs("profile")
def test_a_report_with_a_long_line_fits_a_window_that_is_narrower_than_its_diagrams(shell, x, chromium):
    wide = RIGHT.replace("{", "{ // " + 40 * "long ", 1)
    _, output = run(shell, 'cuda --profile --draw --run "reverse[1, 64](x)"', wide)
    (answers,) = chromium.look([(output.outputs[0].data["text/html"], 700)])
    check_width(answers, 700)


@pytest.mark.needs("profile")
def test_a_run_returns_its_value_and_a_correct_kernel_has_no_findings(shell, x):
    run(shell, "cuda", RIGHT)
    value, output = run(shell, "cuda_run --sanitize", "for _ in range(2):\n    reverse[1, 64](x)\nx.shape")
    assert value == (64,)
    assert output.outputs[0].data["text/plain"] == "No findings: the simulator's checks found no mistakes."


@pytest.mark.needs("profile")
def test_a_run_that_fails_still_shows_its_report(shell, x):
    run(shell, "cuda", RIGHT)
    with capture.capture_output() as output:
        assert not shell.run_cell("%%cuda_run --profile\nreverse[1, 64](x)\n1 / 0").success
    assert "reverse" in output.outputs[0].data["text/html"]


def print_fault():
    """Print the error of a cell with a fault, and the report below it."""
    shell = make_shell(".")
    shell.user_ns["x"] = cuda.zeros(64, np.float32)
    run(shell, "cuda", 'extern "C" __global__ void beyond(float* x) {\n    x[1 << 28] = 1;\n}')
    with capture.capture_output() as output:
        result = shell.run_cell("%cuda_run --sanitize beyond[1, 1](x)")
    print(type(result.error_in_exec).__name__, output.outputs[0].data["text/html"])


@pytest.mark.needs("profile", "reset")
def test_a_fault_is_in_the_findings_and_is_raised(forks, tmp_path):
    found = forks.run(f"{__name__}:print_fault", [], own_environment(), tmp_path).stdout
    assert "IllegalAddressError <" in found
    assert "<strong>bounds</strong> in beyond" in found


def test_a_time_is_a_measurement_of_the_code_after_the_options(shell, x):
    run(shell, "cuda", RIGHT)
    measured, _ = run(shell, 'cuda_time --bytes "2 * x.nbytes" reverse[1, 64](x)')
    assert measured.bytes == 512
    assert measured.timed is ("gpu_timing" in cuda.capabilities())
    host, _ = run(shell, "cuda_time --host", "reverse[1, 64](x)")
    assert host.bytes == 0


@pytest.mark.parametrize("used", ["", "cuda.capabilities()"], ids=["imported", "used"])
def test_the_package_alone_imports_neither_notebooks_nor_the_debugger_nor_traces(used):
    code = f"import sys, cudart_py as cuda\n{used}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tools = ("cudart_py.notebook", "cudart_py.debugging", "cudart_py.profiling.trace", "IPython", "textual", "pytest")
    assert [name for name in done.stdout.split() if name.startswith(tools)] == []
