"""Our git hook scripts, and the hooks the user had before."""
