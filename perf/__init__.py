"""The performance suite: ours beside its reference, measured in one run. See README.md here."""
