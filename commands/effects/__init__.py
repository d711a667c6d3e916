"""The outside world: git, worktrees, environment, locks, clock. Named only in the wiring."""
