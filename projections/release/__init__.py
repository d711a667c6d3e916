"""Views of releases: their steps, their commit, what was let pass, and what resuming would do."""
