"""What a worker returns, checked outside of its sandbox: check, apply, commit, save."""
