"""Compare speeds with those of other programs, and judge the figures by bars.

    python -m tests.benchmarks.peers host --json host.json
    python -m tests.benchmarks.peers host --recorded host.json --markdown docs/host-cost.md
    python -m tests.benchmarks.peers course --only reduction heat

`--json` saves the report, and `--recorded` reads a saved report instead of measuring. `--markdown` writes the report
into a page, below its line `## Measured`. The exit status is 1 if a bar is missed, and otherwise 2 if a bar could not
be judged.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from .report import Report, write_page

BENCHMARKS = ("host", "copies", "course", "libraries", "measuring", "simulator", "programs", "devices", "estimates")


def main(arguments: Sequence[str] | None = None) -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.benchmarks.peers", description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in BENCHMARKS}
    for name, module in modules.items():
        text = module.__doc__ or ""
        command = commands.add_parser(name, help=text.splitlines()[0], description=text, formatter_class=raw)
        command.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
        command.add_argument("--recorded", type=Path, metavar="FILE", help="measure nothing: take what --json wrote")
        command.add_argument("--markdown", type=Path, metavar="PAGE", help="write the tables into this page")
        module.add_options(command)
    options = parser.parse_args(arguments)
    report = Report.read(options.recorded) if options.recorded else modules[options.benchmark].measure(options)
    print(report)
    if options.json:
        report.write(options.json)
    if options.markdown:
        write_page(options.markdown, str(report))
    return report.status


if __name__ == "__main__":
    sys.exit(main())
