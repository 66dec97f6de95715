"""Read, follow, verify and copy the journal."""
