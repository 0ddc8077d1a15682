"""What the displays draw."""
