"""The commands that tell what was measured: timing, usage, read."""
