"""The report on a kernel model: one HTML page."""
