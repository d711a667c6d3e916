"""Views as rows, for tables and for other programs."""
