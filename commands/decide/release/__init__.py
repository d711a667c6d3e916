"""Decisions about releases."""
