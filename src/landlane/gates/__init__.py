"""Questions that only a person may answer."""
