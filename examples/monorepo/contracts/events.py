"""What packages say to each other."""
