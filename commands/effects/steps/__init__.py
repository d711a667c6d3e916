"""The processes of a release's steps."""
