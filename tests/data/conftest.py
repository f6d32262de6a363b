"""The programs that made the data are not run again, nor looked through for tests: all have the same name."""

collect_ignore_glob = ["*/make.py"]
