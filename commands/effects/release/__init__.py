"""What a release does to the world: its branch on the remote, and its archive."""
