"""The magics `%%cuda`, `%cuda_run`, `%%cuda_run`, `%cuda_time` and `%%cuda_time` of IPython.

They are plain functions that the shell registers, so this module uses only IPython's shell.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import keyword
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from .. import errors
from ..benchmark import measure, measure_host
from ..compilation.compiler import compile_image
from ..compilation.diagnostics import explain
from ..context.device import current_device
from ..driver.capabilities import capabilities
from ..driver.sanitizer import sanitizer
from ..findings.records import collected
from ..launch.loading import load_compiled
from ..launch.module import Module
from ..profiling.profiles import profile
from .cell_errors import CellError, marked
from .cell_report import CellReport

_NAME = "cell.cu"
# A word of a line, which may have parts in quotation marks, and the blanks after it.
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+\s*""")


def register(shell: Any) -> None:
    """Register the magics in a shell."""
    magics = Magics(shell)
    shell.register_magic_function(magics.cuda, "cell", "cuda")
    shell.register_magic_function(magics.cuda_run, "line_cell", "cuda_run")
    shell.register_magic_function(magics.cuda_time, "line_cell", "cuda_time")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions: a wrong option must not end the notebook's process."""

    def error(self, message: str) -> NoReturn:
        _refuse(f"{self.prog}: {message}. {self.prog} --help lists the options")


def _refuse(why: str) -> NoReturn:
    """Raise IPython's error for a misused magic, which it shows without a traceback."""
    from IPython.core.error import UsageError  # imported late: the package itself does not need IPython

    raise UsageError(why)


def _parser(name: str, description: str) -> _Parser:
    parser = _Parser(prog=name, description=description, add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this help")
    return parser


def _add_reports(parser: _Parser) -> None:
    parser.add_argument("--profile", action="store_true", help="show what the launches did, line by line")
    parser.add_argument("--sanitize", action="store_true", help="show the mistakes that the simulator's checks find")
    parser.add_argument("--draw", action="store_true", help="draw the first warp's accesses to memory, line by line")


def _cell_parser() -> _Parser:
    parser = _parser("%%cuda", "Compile the CUDA C++ in this cell, and define its kernels as Python names.")
    parser.add_argument("--name", default=_NAME, help=f"the name of the source in messages (default: {_NAME})")
    parser.add_argument("--module", metavar="VARIABLE", help="also define this variable as the module")
    parser.add_argument("--names", action="append", default=[], metavar="EXPRESSION", help="a template to instantiate")
    parser.add_argument("--arch", help="the architecture to compile for (default: the device's)")
    parser.add_argument("--std", help="the C++ standard, such as c++20")
    parser.add_argument("--fast-math", action="store_true", help="compile with --use_fast_math")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER", help="a folder with headers")
    parser.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro")
    parser.add_argument("--option", action="append", default=[], help="a further option for NVRTC: --option=-G")
    parser.add_argument(
        "--run", action="append", default=[], metavar="STATEMENT", help="Python to run afterwards, such as a launch"
    )
    _add_reports(parser)
    return parser


def _run_parser() -> _Parser:
    parser = _parser("%cuda_run", "Run a Python statement or cell, and show a report on the kernels that it launches.")
    _add_reports(parser)
    return parser


def _time_parser() -> _Parser:
    parser = _parser("%cuda_time", "Measure the device time of the work that a Python statement or cell queues.")
    parser.add_argument("--host", action="store_true", help="measure the host time of the calls instead")
    parser.add_argument("--bytes", default="0", metavar="EXPRESSION", help="the bytes that the work moves")
    parser.add_argument("--flops", default="0", metavar="EXPRESSION", help="the operations that it performs")
    parser.add_argument("--stream", default="None", metavar="EXPRESSION", help="the stream of the work")
    return parser


class Magics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def cuda(self, line: str, cell: str) -> None:
        """Compile the CUDA C++ in this cell, and define its kernels as Python names; %%cuda --help lists the options.

        %%cuda --profile --run "saxpy[4, 256](2.0, x, y, n)"
        """
        options = _parsed(_cell_parser(), line)
        if options is None:
            return
        reports = _reports(options)
        if reports and not options.run:
            _refuse(
                f"%%cuda: --{reports[0]} reports on launches, and the cell launches nothing. Add --run "
                f'"kernel[grid, block](...)", or put %%cuda_run --{reports[0]} above a cell that launches'
            )
        for statement in options.run:
            self._check_syntax(statement)
        module = self._compiled(options, cell)
        defined: dict[str, Any] = {
            name: module[name] for name in module.kernels if name.isidentifier() and not keyword.iskeyword(name)
        }
        if options.module:
            defined[options.module] = module
        self._shell.push(defined)
        if module.log:
            # The lines of the cell are counted from the line with the magic, as the notebook numbers them.
            lines = ["", *cell.split("\n")]
            text = explain(module.log, lambda *_: None)
            shown = marked(text, options.name, lines, colored=self._is_colored)
            print(shown, file=sys.stderr)  # noqa: T201  # as a compiler
        for name in module.kernels:
            print(module[name].signature)  # noqa: T201  # the result of the cell
        if options.run:
            with self._reporting(options):
                for statement in options.run:
                    self._run(statement)

    def cuda_run(self, line: str, cell: str | None = None) -> Any:
        """Run Python, and show a profile, findings or diagrams below; %cuda_run --help lists the options.

        %cuda_run --profile --sanitize saxpy[4, 256](2.0, x, y, n)
        """
        options, code = _with_code(_run_parser(), line, cell)
        if options is None:
            return None
        if not _reports(options):
            options.profile = options.sanitize = True
        with self._reporting(options):
            return self._run(code)

    def cuda_time(self, line: str, cell: str | None = None) -> Any:
        """Return the device time of the work that Python code queues; %cuda_time --help lists the options.

        On the simulator, which has no times, the code runs once, and the result has counters.

        %cuda_time --bytes 12*n saxpy[4, 256](2.0, x, y, n)
        """
        options, code = _with_code(_time_parser(), line, cell)
        if options is None:
            return None
        space = self._shell.user_ns
        compiled = compile(self._shell.transform_cell(code), self._cached(code), "exec")
        stream = eval(options.stream, space)
        if options.host:
            return measure_host(lambda: exec(compiled, space), stream=stream)
        moved, performed = (float(eval(text, space)) for text in (options.bytes, options.flops))
        return measure(lambda: exec(compiled, space), stream=stream, bytes=moved, flops=performed)

    @property
    def _is_colored(self) -> bool:
        return str(self._shell.colors).lower() != "nocolor"

    def _compiled(self, options: argparse.Namespace, cell: str) -> Module:
        # The magic's own line is line 1 of the cell, as the notebook numbers the lines.
        source = "\n" + cell
        try:
            image = compile_image(
                source,
                names=options.names,
                arch=options.arch or current_device().compute_capability,
                std=options.std,
                fast_math=options.fast_math,
                include=options.include,
                define=dict(map(_macro, options.define)),
                options=options.option,
                name=options.name,
                call="%%cuda",
            )
        except errors.CompileError as error:
            raise CellError(error, options.name, source.split("\n"), colored=self._is_colored) from None
        # `In` has the text of each cell, and that of this one last.
        return load_compiled("%%cuda", image, f"In [{len(self._shell.user_ns.get('In', ())) - 1}]")

    @contextlib.contextmanager
    def _reporting(self, options: argparse.Namespace) -> Iterator[None]:
        """After a block that launches kernels, show the requested reports, even if the block fails."""
        counts = options.profile or options.draw
        if (counts or options.sanitize) and "profile" not in capabilities():
            raise errors.NotSupportedError(
                "reports on launches come from the simulator, and this process uses a GPU: set CUDART_PY_DRIVER="
                "simulator before the first CUDA call. On a GPU, use Nsight Compute and compute-sanitizer"
            )
        counted = profile(0 if options.draw else None) if counts else None
        with contextlib.ExitStack() as stack:
            found = stack.enter_context(collected()) if options.sanitize else None
            if found is not None:
                stack.enter_context(sanitizer("warn"))
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore", errors.SimulatorWarning)  # the report shows them
            try:
                with counted or contextlib.nullcontext():
                    yield
                    # Launches run, and are checked, when something waits for them.
                    current_device().synchronize()
            finally:
                launches = counted.launches if counted is not None else None
                if launches is not None or found is not None:
                    _show(CellReport(launches, found, drawn=options.draw))

    def _check_syntax(self, statement: str) -> None:
        try:
            ast.parse(self._shell.transform_cell(statement))
        except SyntaxError as error:
            _refuse(f"%%cuda: --run {statement!r} is not valid Python: {error.msg}")

    def _run(self, code: str) -> Any:
        """Run Python code in the notebook's variables; return the value if it ends with an expression."""
        name = self._cached(code)
        tree = ast.parse(self._shell.transform_cell(code), name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self._shell.user_ns)
        if last is None:
            return None
        return eval(compile(ast.Expression(last.value), name, "eval"), self._shell.user_ns)

    def _cached(self, code: str) -> str:
        """Return a file name for code, under which tracebacks find its lines."""
        name: str = self._shell.compile.cache(code)
        return name


def _show(report: CellReport) -> None:
    from IPython.display import display  # imported late, as above

    display(report)


def _reports(options: argparse.Namespace) -> list[str]:
    return [name for name in ("profile", "sanitize", "draw") if getattr(options, name)]


def _macro(text: str) -> tuple[str, str | None]:
    name, mark, value = text.partition("=")
    return name, value if mark else None


def _parsed(parser: _Parser, line: str) -> argparse.Namespace | None:
    """Return the parsed options of a line; None if they ask for help, which is printed."""
    try:
        words = shlex.split(line)
    except ValueError as error:  # an open quotation mark
        parser.error(str(error))
    options = parser.parse_args(words)
    if options.help:
        print(parser.format_help())  # noqa: T201  # shown below the cell
        return None
    return options


def _with_code(parser: _Parser, line: str, cell: str | None) -> tuple[argparse.Namespace | None, str]:
    """Return the options at the beginning of a line, and the code: the rest of the line, or the cell."""
    if cell is not None:
        return _parsed(parser, line), cell
    options_of_line, rest = _options_before(parser, line)
    options = _parsed(parser, options_of_line)
    if options is not None and not rest.strip():
        parser.error("there is no code to run")
    return options, rest


def _options_before(parser: _Parser, line: str) -> tuple[str, str]:
    """Split a line into its options and the code that follows."""
    with_value = {text for action in parser._actions if action.nargs is None for text in action.option_strings}
    rest = line.lstrip()
    while rest.startswith("-"):
        for _ in range(2 if rest.split(maxsplit=1)[0] in with_value else 1):
            if word := _WORD.match(rest):
                rest = rest[word.end() :]
    return line.removesuffix(rest), rest
