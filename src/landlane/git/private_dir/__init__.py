"""A private git directory over a checkout, so that its own index and settings are not touched."""
