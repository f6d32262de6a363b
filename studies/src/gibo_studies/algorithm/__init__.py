"""Studies of the default algorithm, reported in docs/algorithm.md: `gibo reproduce ablations`, `noise` and `order`."""
