"""Views of a run: its state and what is still owed."""
