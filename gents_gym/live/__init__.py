"""One agent in use: decisions and late outcomes, kept in SQLite."""
