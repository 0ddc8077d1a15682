"""Ridge models: the normal equations of rows in memory, files or on Dask, and their solvers."""
