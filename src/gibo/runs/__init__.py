"""Running an optimiser on an objective."""
