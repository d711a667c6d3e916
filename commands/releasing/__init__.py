"""Releases as they are run: their driver, what each step does, and how they are started and taken up again."""
