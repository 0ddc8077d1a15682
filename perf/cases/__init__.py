"""One module per case, with `run(quick)`, which returns the rows of its table."""
