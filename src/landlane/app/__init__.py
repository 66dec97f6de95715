"""Joins the real parts: find the repository, open its store, hand out a context."""
