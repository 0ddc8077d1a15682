"""What a fitted machine's predictions come from."""
