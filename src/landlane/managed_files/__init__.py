"""Landlane's entries in files of other programs: add with a manifest, remove without a trace."""
