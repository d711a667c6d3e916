"""What was measured, and what is planned by it, as text."""
