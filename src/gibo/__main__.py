"""`python -m gibo`: the command line if the command `gibo` is not on the path."""

from gibo.cli import entry

if __name__ == "__main__":
    entry()
