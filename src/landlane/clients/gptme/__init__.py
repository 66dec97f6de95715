"""gptme as a worker."""
