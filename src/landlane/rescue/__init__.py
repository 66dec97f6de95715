"""Save what exists only in one checkout before it is deleted; restore it byte for byte."""
