"""Save what exists only in one checkout before deleting it; restore it byte for byte."""
