"""The store behind its port: SQLite and PostgreSQL, their SQL files and their migrations."""
