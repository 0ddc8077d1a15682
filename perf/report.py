"""The report: an HTML page, the pictures, and the tables of notes and documentation, from the newest full records.

The records are copied to `released`, so that pages can be compared with them.
"""

import argparse
import base64
import html
import io
import re
import sys
from pathlib import Path

from perf import plots, record, suite
from perf.text_tables import csv_table, markdown_table

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "perf" / "paper.md",
    *sorted((ROOT / "perf" / "notes").glob("*.md")),
    ROOT / "examples" / "docs" / "measured.rst",
    ROOT / "examples" / "docs" / "standings.rst",
)
PICTURES = ROOT / "perf" / "pictures"
PAGE = "report.html"

_BLOCKS = {
    ".md": re.compile(r"(<!-- perf: ([\w.: ]+) -->\n).*?(<!-- /perf -->)", flags=re.DOTALL),
    ".rst": re.compile(r"(\.\. perf: ([\w.: ]+)\n\n).*?(\.\. /perf)", flags=re.DOTALL),
}
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } th, td { padding: .15em .8em .15em 0; text-align: left }
th { border-bottom: 1px solid #999 } td { border-bottom: 1px solid #eee; font-variant-numeric: tabular-nums }
.missed td { color: #b23a48 } .failed { color: #b23a48; font-weight: bold } img { max-width: 100%; display: block }
small { color: #666 }
"""


def main(
    arguments,
    cases=suite.CASES,
    folder=record.FOLDER,
    released=record.RELEASED,
    pages=PAGES,
    pictures_folder=PICTURES,
):
    parser = argparse.ArgumentParser(prog="python -m perf report", description=__doc__)
    parser.parse_args(arguments)
    records, errors = record.newest(released, folder)
    if not records:
        errors.append(f"there is no full record in {folder}: run python -m perf NAME first.")
    else:
        pictures = _pictures(records, errors, cases)
        try:
            for path in write(records, pictures, folder, pages, pictures_folder):
                print(path)
            record.release(records, released)
        except OSError as error:
            errors.append(f"the report cannot be written: {error}")
    for error in errors:
        print(f"{parser.prog}: {error}", file=sys.stderr)
    return 1 if errors else 0


def _pictures(records, errors, cases):
    """Return the PNG of each picture; failures are appended to `errors`.

    Returns
    -------
    pictures : dict of str to dict of str to bytes
        For each case, and for "reach", file names and contents.
    """
    pictures = {"reach": {"reach.png": _png(plots.reached(_aimed(records)))}}
    for case, kept in records.items():
        try:
            draw = getattr(cases[case.partition(".")[0]], "pictures", None)
            drawn = {} if draw is None else draw(kept.content)
            pictures[case] = {name: _png(figure) for name, figure in drawn.items()}
        except Exception as error:
            errors.append(f"the pictures of {case} cannot be drawn: {type(error).__name__}: {error}")
    return pictures


def _png(figure):
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120, metadata={"Software": None})
    return content.getvalue()


def _aimed(records):
    """Return names and rows of all figures with a goal; missed goals come first."""
    rows = [(f"{case}: {row.what}", row) for case, kept in records.items() for row in kept.rows if row.ok is not None]
    return sorted(rows, key=lambda named: named[1].ok)


def write(records, pictures, folder, pages, pictures_folder):
    """Write the page, the pictures and the tables.

    Parameters
    ----------
    records : dict of str to Record
    pictures : dict of str to dict of str to bytes
    folder, pictures_folder : Path
        Folders of the page and of the pictures.
    pages : iterable of Path
        Files in Markdown or reStructuredText.

    Returns
    -------
    paths : list of Path
        Written files.
    """
    pictures_folder.mkdir(exist_ok=True)
    paths = [folder / PAGE]
    paths[0].write_text(page(records, pictures))
    for name, content in (pair for own in pictures.values() for pair in own.items()):
        paths.append(pictures_folder / name)
        paths[-1].write_bytes(content)
    for path in pages:
        text = path.read_text(encoding="utf-8")
        if (renewed := renew(text, records, path.suffix)) != text:
            path.write_text(renewed, encoding="utf-8")
            paths.append(path)
    return paths


def blocks(text, suffix):
    """Return the names of the cases of each block of a page."""
    return [block[2].split() for block in _BLOCKS[suffix].finditer(text)]


def renew(text, records, suffix, cases=suite.CASES):
    """Return the text of a page with new tables.

    The tables are between ``<!-- perf: CASE ... -->`` and ``<!-- /perf -->`` in Markdown (".md"), and between
    ``.. perf: CASE ...`` and ``.. /perf`` in reStructuredText (".rst"). They contain the rows with a goal of these
    cases. ``reach`` means all cases, and ``CASE:PART`` a part from the `parts` of the case. Tables of cases without a
    record are not changed.
    """
    table = markdown_table if suffix == ".md" else csv_table

    def block(found):
        whole, _, part = found[2].partition(":")
        names = list(records) if whole == "reach" else whole.split()
        if not all(name in records for name in names):
            return found[0]
        own = {name: records[name] for name in names}
        if part:
            text = cases[whole.partition(".")[0]].parts(records[whole].content)[part]
        else:
            text = table(record.HEADER, _cells(_aimed(own)))
        return f"{found[1]}{_origin(own)}\n\n{text}{found[3]}"

    return _BLOCKS[suffix].sub(block, text)


def _cells(rows):
    return [(name, *row.cells[1:]) for name, row in rows]


def _origin(records):
    """Describe the computers and days of the records, one sentence for each."""
    lines = {}
    for case, kept in records.items():
        own = kept.content
        packages = ", ".join(f"{name} {number}" for name, number in own["versions"].items())
        made = f"{own['time'][:10]}, {own['machine']['cores']} cores of {own['machine']['cpu']}, {packages}"
        lines.setdefault(made, []).append(case)
    return "\n".join(f"{', '.join(cases)}: {made}." for made, cases in lines.items())


def page(records, pictures):
    """Return the page, which needs no other file.

    Returns
    -------
    text : str
    """
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>binfeat: measured</title><style>{_STYLE}</style>",
        "<h1>binfeat: measured</h1><p>Times are the minimum of the rounds, with median / minimum in brackets. ",
        "What is measured is our figure, or its ratio to the reference's in the same run.</p>",
        "<h2>Figures to reach</h2>",
        _html_table(_aimed(records)),
        _images(pictures.get("reach", {})),
    ]
    for case, kept in records.items():
        parts += [f"<h2>{case}</h2><p><small>{html.escape(_origin({case: kept}))}</small></p>"]
        parts += [
            f"<p class=failed>{html.escape(f'FAILED {row.what}: {row.error}')}</p>"
            for row in kept.rows
            if row.error is not None
        ]
        parts += [_images(pictures.get(case, {}))]
        parts += [_html_table([(row.what, row) for row in record.misses_first(kept.rows)])]
    return "\n".join(parts)


def _html_table(rows):
    lines = ["<table><tr>" + "".join(f"<th>{title}</th>" for title in record.HEADER) + "</tr>"]
    for (_, row), cells in zip(rows, _cells(rows)):
        kind = " class=missed" if row.ok is False else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _images(pictures):
    return "".join(
        f'<img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(content).decode()}">'
        for name, content in pictures.items()
    )
