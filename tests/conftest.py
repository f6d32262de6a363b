"""Puts this folder on the path, so that tests in any folder find `optimizer_helpers`."""
