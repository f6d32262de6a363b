"""The leaderboard: tasks × methods × trials, one noisy evaluation per value, judged by the recommended points."""
