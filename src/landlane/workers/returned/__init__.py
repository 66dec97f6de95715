"""What a worker hands back: check, apply, commit, save."""
