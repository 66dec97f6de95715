"""Split a task into branches and join their results."""
