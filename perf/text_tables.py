"""Tables of text in Markdown and in reStructuredText."""


def markdown_table(header, lines):
    """Return a table in Markdown."""
    whole = [header, ("---",) * len(header), *lines]
    return "".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |\n" for line in whole)


def csv_table(header, lines):
    """Return a table in reStructuredText, and an empty line."""
    quoted = [", ".join('"' + str(cell).replace('"', '""') + '"' for cell in line) for line in (header, *lines)]
    return "\n".join([f".. csv-table::\n   :header: {quoted[0]}\n", *(f"   {line}" for line in quoted[1:])]) + "\n\n"
