"""Acquisition functions: Gradient Information, and their maximisation."""
