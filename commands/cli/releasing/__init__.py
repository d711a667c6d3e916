"""The commands about releases."""
