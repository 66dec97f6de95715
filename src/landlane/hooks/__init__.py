"""What a coding client's hooks call on every edit; the quickest road to a yes or a no."""
