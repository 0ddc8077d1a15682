"""Length scales learned from targets, alone and for random features."""
