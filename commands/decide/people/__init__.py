"""Decisions about what people are asked and what they say."""
