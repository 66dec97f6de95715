"""What the hooks of coding clients and of git decide: edits, shell commands, commits, pushes, briefings."""
