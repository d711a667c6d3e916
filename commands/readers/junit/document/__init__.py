"""The document itself: its bytes, its elements and their words."""
