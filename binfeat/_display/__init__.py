"""Values that the displays draw."""
