"""The performance suite: binfeat and its references, measured in the same run. See README.md in this folder."""
