"""Decisions on attempts: what may be started and may take what, and what is tried again."""
