"""Decisions: a message and the views it needs give events, nothing, or a refusal. Pure."""
