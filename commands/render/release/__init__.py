"""Releases as text for people."""
