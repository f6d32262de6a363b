"""Programs, not tests: `make soak`."""

collect_ignore_glob = ["*.py"]
