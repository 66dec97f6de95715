"""One folder per coding client: its hooks, its setup, and how to run it as a worker."""
