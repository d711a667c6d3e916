"""The append-only store: `reader` for everything that looks, `writer` for the one loop that appends."""
