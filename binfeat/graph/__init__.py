"""The graph of similar rows that a feature map makes, its eigenvectors, and how labels spread over it."""
