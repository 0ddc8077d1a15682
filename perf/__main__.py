"""Command line: `python -m perf [NAME ...] [--quick]`."""

import argparse
import pkgutil
import sys
from importlib import import_module

from perf import cases
from perf.data import MissingDataError


def case_names():
    return [module.name for module in pkgutil.iter_modules(cases.__path__)]


def load(name):
    return import_module(f"perf.cases.{name}")


def run(name, quick):
    """Run one case, print its table and keep its record."""
    from perf import record

    rows = load(name).run(quick)
    print(record.table(name, rows, quick))
    print(f"Recorded in {record.save(name, rows, quick)}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m perf", description="Measure binfeat beside its references.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to run; none lists them")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: shows that it runs, not how fast")
    options = parser.parse_args()
    known = case_names()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; there are: {', '.join(known)}")
    for name in known if not options.names else []:
        print(f"{name:12} {load(name).__doc__.splitlines()[0]}")
    try:
        for name in options.names:
            run(name, options.quick)
    except MissingDataError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
