"""What every layer uses: checks, labels, held-out rows, persistence, memory, random words."""
