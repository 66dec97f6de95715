"""Public helpers for tests: a fake clock, scratch repositories, scripted workers."""
