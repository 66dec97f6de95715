"""Public helpers for tests: a fake clock, throw-away repositories, scripted agents, seeded schedules."""
