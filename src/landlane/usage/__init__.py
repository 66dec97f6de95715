"""Cost and budgets."""
