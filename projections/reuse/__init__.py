"""What of earlier measurements still counts."""
