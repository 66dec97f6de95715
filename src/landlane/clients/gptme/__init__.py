"""gptme: running it as a worker."""
