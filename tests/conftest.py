"""Puts this folder on the path, so that tests in any folder find `optimizer_helpers`."""

# There are no doctests in them, and two that are looked at for some would be taken for one module.
collect_ignore_glob = ["*/conftest.py"]
