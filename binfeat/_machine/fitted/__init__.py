"""What a fit leaves."""
