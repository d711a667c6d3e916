"""The commands that look back and prove: show, replay, diff, verify, recover."""
