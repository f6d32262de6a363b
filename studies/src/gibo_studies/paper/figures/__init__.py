"""The studies' results as figures; never runs an optimiser."""
