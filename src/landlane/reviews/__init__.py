"""Reviews of one commit by one or several reviewers."""
