"""Lets tests in any folder find the helpers of gibo's own tests, and each other's."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "paper"), str(HERE.parents[1] / "tests")]
