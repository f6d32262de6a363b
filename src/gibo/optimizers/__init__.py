"""Optimisers, all with the same face: ask for queries, tell their values."""
