"""Our entries in files of other programs: written with a manifest, removed without a trace."""
