"""The command: fits a kernel machine to a table in files, predicts with the machine, and reports about it."""
