"""Arguments of the command, and its failures in one line."""

import argparse
import math
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from binfeat._common.printable import printable
from binfeat.cli.messages import one_line, say, spoken_warnings
from binfeat.cli.streams import Terminated, drop_output, open_closed_streams, terminable

# Failures of files, of their contents, of missing packages, of memory. Any other error is a bug of the command.
_FAILURES = OSError, ValueError, TypeError, ImportError, MemoryError

_TABLE = (
    "a CSV, TSV (either may be .gz), Parquet or Arrow file; several files, or a folder of them, are read block by block"
)


def main(argv: list[str] | None = None) -> int:
    """Run the command; 0, 1 for a failure, 3 if `check` finds anything. Wrong arguments exit with 2.

    Ctrl-C is 130, and a signal that ends the process 128 and its number.
    """
    is_closed = sys.stdout is None
    open_closed_streams()
    arguments = vars(_parser().parse_args(argv))
    name = arguments.pop("command")
    with spoken_warnings():
        try:
            if is_closed and arguments.get("out", name) is None:
                raise ValueError("standard output is closed; name a file by --out.")
            with terminable():
                return _run(name, arguments)
        except BrokenPipeError:  # nobody reads the output
            drop_output()
            return 1
        except _FAILURES as error:
            say(f"error: {one_line(error)}")
            return 1
        except KeyboardInterrupt:
            say("interrupted; no file was written.")
            return 130
        except Terminated as error:
            say("terminated; no file was written.")
            return 128 + error.args[0]


def _run(name, arguments):
    arguments["text"] = {option: arguments.pop(option) for option in ("delimiter", "decimal", "encoding")}
    command = getattr(import_module(f"binfeat.cli.{name}"), name)  # late: help waits for no package
    code = command(**arguments) or 0
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
        raise
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        super().error(printable(message))


def _parser():
    parser = _Parser(prog="binfeat", description="Kernel machines for tables in files.")
    parser.add_argument("--version", action="version", version=f"binfeat {version('binfeat')}")
    commands = parser.add_subparsers(
        required=True, dest="command", metavar="{fit,predict,check,explain,report,outliers}"
    )
    _add_fit(commands)
    words = "Write a prediction for each row of a table, and probabilities of classes."
    predict = commands.add_parser("predict", help="predict the rows of a table", description=words)
    words = "Print what a table has that the machine had not seen in fit. Exit code: 3 if there is anything, else 0."
    check = commands.add_parser("check", help="compare a table with that of fit", description=words)
    words = (
        "Write what each input adds to the predictions for the rows of a table: Shapley values, in units of the "
        "target, or of its logarithm where a machine learns that, or of the scores of classes (of two, the second)."
    )
    explain = commands.add_parser("explain", help="explain predictions", description=words)
    words = "Write a page about a machine, beside its file: model.html for model.skops."
    report = commands.add_parser("report", help="write a page about a machine", description=words)
    for command in (predict, check, explain, report):
        command.add_argument("model", type=Path, metavar="MODEL", help="a file that fit has written")
    words = "CSV, TSV (either may be .gz) or Parquet (.parquet, .pq), replaced if it is there; default: standard output"
    for command in (predict, check, explain):
        command.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    for command in (predict, explain):
        command.add_argument("--out", type=Path, metavar="FILE", help=words)
    words = "rows that values are relative to, 300 at most; default: rows of fit, which machines of grids do not keep"
    explain.add_argument("--background", type=Path, metavar="TABLE", help=words)
    words = "rows that the machine has not seen, with the target; of more than 100,000 rows, 100,000 are drawn"
    report.add_argument("paths", nargs="*", type=Path, metavar="TABLE", help=words)
    _add_outliers(commands)
    for command in commands.choices.values():
        _add_text_options(command)
    return parser


def _add_outliers(commands):
    words = "Write a score for each row of a table, lower for more abnormal rows, and whether it is an outlier."
    outliers = commands.add_parser("outliers", help="find outliers in a table", description=words)
    outliers.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    words = "CSV (packed if it ends in .gz), or Parquet (.parquet, .pq); default: standard output"
    outliers.add_argument("--out", type=Path, metavar="FILE", help=words)


def _add_fit(commands):
    words = "Fit a kernel machine to a table. Columns of strings are categories; empty cells are missing values."
    fit = commands.add_parser("fit", help="fit a machine to a table", description=words)
    fit.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    fit.add_argument("--target", required=True, metavar="NAME", help="the column to predict")
    words = "default: classification of strings, booleans, or up to 20 different whole numbers; else regression"
    fit.add_argument("--task", choices=("regression", "classification"), help=words)
    fit.add_argument(
        "--model",
        default=Path("model.skops"),
        type=Path,
        metavar="FILE",
        help="default: %(default)s, which is replaced",
    )
    fit.add_argument("--seconds", type=_seconds, metavar="S", help="time limit of the fit; default: none")


def _add_text_options(command):
    text = command.add_argument_group(
        "text files", "By default these are detected from the first lines of the first file."
    )
    text.add_argument("--delimiter", metavar="C", help="the character between columns of CSV files; tab is a tab")
    text.add_argument("--decimal", choices=(".", ","), help="the decimal sign of CSV files")
    words = "the encoding of CSV files, such as utf-8, utf-16, windows-1252 or latin-1"
    text.add_argument("--encoding", metavar="NAME", help=words)


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return seconds
