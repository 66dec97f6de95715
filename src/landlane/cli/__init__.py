"""The command line: reads arguments, asks the operations, writes to the terminal."""
