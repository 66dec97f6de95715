"""Hand a task from one owner to the next."""
