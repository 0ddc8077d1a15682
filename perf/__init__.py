"""The performance suite: binfeat beside what it is compared with, measured in one run. See README.md here."""
