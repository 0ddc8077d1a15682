"""How a kernel machine chooses each of its settings."""
