"""What a role may write and do."""
