"""Command line: `python -m perf [NAME ...] [--quick]`, `python -m perf report`, `python -m perf gate BASE`."""

import argparse
import signal
import sys
from importlib import import_module

from perf import record, suite

COMMANDS = {
    "report": "one HTML page, the pictures and the tables of notes and documentation, from the newest full records",
    "gate": "the micro cases of a base revision and of this tree side by side; fails if this one is slower",
}


def main(arguments=None, cases=suite.CASES, folder=record.FOLDER):
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in COMMANDS:
        return import_module(f"perf.{arguments[0]}").main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m perf", description="Measure binfeat and its references.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run, or all; without names, list the cases")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: check that cases run")
    own = [name for name in cases if name in arguments and suite.has_options(name, cases)]
    own = own if len(own) == 1 else []  # options of several cases can have the same names
    for name in own:
        cases[name].add_options(parser)
    options = parser.parse_intermixed_args(arguments)
    unknown = [name for name in options.names if name not in (*cases, "all")]
    if unknown:
        parser.error(
            f"unknown case {', '.join(unknown)}; there are: {', '.join(cases)}, all; and first, the commands "
            f"{', '.join(COMMANDS)}"
        )
    if not options.names:
        _list(cases)
    names = list(cases) if "all" in options.names else options.names
    more = {key: value for key, value in vars(options).items() if key not in ("names", "quick")}
    failed = suite.run(names, options.quick, dict.fromkeys(own, more), cases, folder)
    if failed:
        print(f"{parser.prog}: failed, in part or in whole: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _list(cases):
    for name in cases:
        print(f"{name:16} {cases.summary(name)}")
    for name, what in COMMANDS.items():
        print(f"{name:16} {what}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that worktrees and folders are removed
    sys.exit(main())
