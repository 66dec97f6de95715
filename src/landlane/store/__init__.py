"""SQLite and PostgreSQL behind one interface; the journal chain; the schema."""
