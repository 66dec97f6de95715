"""The task queue: add, pick, finish with evidence, attempts, retries."""
