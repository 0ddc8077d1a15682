"""Arguments of the command, and its errors as one line."""

import argparse
import math
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from binfeat._common.printable import printable
from binfeat._common.termination import Terminated, require_running, terminable
from binfeat.cli.messages import one_line, printed_warnings, say
from binfeat.cli.streams import drop_output, escape_unknown_characters, open_closed_streams

# Errors of files, their contents, types of Arrow, missing packages and memory. Any other error is a bug of the command.
_FAILURES = OSError, ValueError, TypeError, NotImplementedError, ImportError, MemoryError

_OUT = "output file (.csv, .tsv, also with .gz, .parquet or .pq), replaced if it exists; default: standard output"
_TABLE = (
    "a CSV, TSV, Parquet or Arrow file, or a folder of files; CSV and TSV may be compressed (.gz); several files are "
    "read block by block"
)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code.

    The code is 0, 1 after an error, 3 if `check` finds differences, 130 after Ctrl-C, and 128 plus the number of a
    signal that ends the process. Wrong arguments exit with 2.
    """
    is_closed = sys.stdout is None
    open_closed_streams()
    escape_unknown_characters()
    arguments = vars(_parser().parse_args(argv))
    name = arguments.pop("command")
    with printed_warnings():
        try:
            if is_closed and arguments.get("out", name) is None:
                raise ValueError("standard output is closed. Pass an output file by --out.")
            with terminable():
                return _run(name, arguments)
        except BrokenPipeError:  # the reader of the output has closed it
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


def _run(name: str, arguments: dict[str, Any]) -> int:
    arguments["text"] = {option: arguments.pop(option) for option in ("delimiter", "decimal", "encoding")}
    from binfeat.cli import commands  # late, so that --help is fast

    require_running()
    code = getattr(commands, name)(**arguments) or 0
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
        raise
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser() -> _Parser:
    parser = _Parser(prog="binfeat", description="Fit kernel models to tables in files, and use the models.")
    parser.add_argument("--version", action="version", version=f"binfeat {version('binfeat')}")
    commands = parser.add_subparsers(
        required=True, dest="command", metavar="{fit,predict,check,explain,report,outliers}"
    )
    _add_fit(commands)
    words = "Write a prediction for each row of a table, and class probabilities for a classifier."
    predict = commands.add_parser("predict", help="predict the rows of a table", description=words)
    words = (
        "Print differences between a table and the training rows: new categories, new missing values, numbers outside "
        "the training range, and a test for drift. The exit code is 3 if there are differences, otherwise 0."
    )
    check = commands.add_parser("check", help="compare a table with the training rows", description=words)
    words = (
        "Write the Shapley values of the rows of a table: how much each input moves the prediction away from the "
        "average. Values have the unit of the target, or of its logarithm if the model transforms it. For a classifier "
        "they refer to the score of each class, or of the second class if there are two."
    )
    explain = commands.add_parser("explain", help="explain predictions", description=words)
    words = "Write an HTML report on a model next to its file: model.html for model.skops."
    report = commands.add_parser("report", help="write a report on a model", description=words)
    for command in (predict, check, explain, report):
        command.add_argument("model", type=Path, metavar="MODEL", help="a file written by fit")
    for command in (predict, check, explain):
        command.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    for command in (predict, explain):
        command.add_argument("--out", type=Path, metavar="FILE", help=_OUT)
    words = (
        "rows with the average prediction that Shapley values are relative to (at most 300 are used); default: "
        "training rows; required for classifiers on random features, which store no rows"
    )
    explain.add_argument("--background", type=Path, metavar="TABLE", help=words)
    words = "test rows with the target column, for errors on new rows; more than 100,000 rows are sampled"
    report.add_argument("paths", nargs="*", type=Path, metavar="TABLE", help=words)
    _add_outliers(commands)
    for command in commands.choices.values():
        _add_text_options(command)
    return parser


def _add_outliers(commands: "argparse._SubParsersAction[_Parser]") -> None:
    words = (
        "Find outliers in a table. For each row write its score (lower for more unusual rows), whether it is an "
        "outlier, and the input that contributes most."
    )
    outliers = commands.add_parser("outliers", help="find outliers in a table", description=words)
    outliers.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    outliers.add_argument("--out", type=Path, metavar="FILE", help=_OUT)


def _add_fit(commands: "argparse._SubParsersAction[_Parser]") -> None:
    words = "Fit a kernel model to a table. Columns of strings are categories; empty cells are missing values."
    fit = commands.add_parser("fit", help="fit a model to a table", description=words)
    fit.add_argument("paths", nargs="+", type=Path, metavar="TABLE", help=_TABLE)
    fit.add_argument("--target", required=True, metavar="NAME", help="the column to predict")
    words = (
        "default: classification if the target contains strings, booleans, or at most 20 different integers; "
        "otherwise regression"
    )
    fit.add_argument("--task", choices=("regression", "classification"), help=words)
    fit.add_argument(
        "--model",
        default=Path("model.skops"),
        type=Path,
        metavar="FILE",
        help="output file (.skops), replaced if it exists; default: %(default)s",
    )
    fit.add_argument("--seconds", type=_seconds, metavar="S", help="time limit for the fit; default: none")


def _add_text_options(command: _Parser) -> None:
    text = command.add_argument_group(
        "CSV files", "By default, these options are detected from the first lines of the first file."
    )
    text.add_argument("--delimiter", metavar="C", help="character between columns, or 'tab'")
    text.add_argument("--decimal", choices=(".", ","), help="decimal separator")
    words = "encoding, such as utf-8, utf-16, windows-1252 or latin-1"
    text.add_argument("--encoding", metavar="NAME", help=words)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return seconds
