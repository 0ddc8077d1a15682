"""The report of a kernel machine: one HTML page."""
