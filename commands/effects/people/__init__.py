"""What is gathered of the world for what people decided."""
