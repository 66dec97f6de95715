"""Structural three-way merge and semantic checks: pure functions on texts and trees."""
