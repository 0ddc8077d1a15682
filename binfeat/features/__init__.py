"""Random features: the maps, `transform`, and length scales for them."""
