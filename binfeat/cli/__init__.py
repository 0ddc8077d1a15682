"""The command: fits a kernel model to a table in files, predicts, checks tables, and writes reports."""
