"""The command: a kernel machine of a table in files, its predictions and its report."""
