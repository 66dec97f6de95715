"""The command line: parse the arguments, call the packages below, print the result."""
