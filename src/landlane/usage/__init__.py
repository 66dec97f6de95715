"""Costs and budgets."""
