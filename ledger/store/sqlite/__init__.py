"""The SQLite engine of the store: its tables, its connections and its recorder."""
