"""The commands for other programs and other machines: query, schema, export, import, backup."""
