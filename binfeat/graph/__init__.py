"""The graph of similar rows, its eigenvectors, and label spreading."""
