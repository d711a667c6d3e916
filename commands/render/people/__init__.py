"""What people decided, as text."""
