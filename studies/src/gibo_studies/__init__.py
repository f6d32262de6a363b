"""The studies of gibo: the paper's experiments, the leaderboard and the rivals."""
