"""The table of commands, one file per noun."""
