"""One module per case, with a function `run(quick)` that returns the rows of its table."""
