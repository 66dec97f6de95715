"""Split a task into parts and join their results."""
