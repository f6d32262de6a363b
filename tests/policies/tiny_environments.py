"""Small environments for the tests, in a module of their own so that other processes can import them."""

import threading

import gymnasium
import numpy as np
from gymnasium import spaces


class Drift(gymnasium.Env):
    """x ← x + 0.1·a + noise; the reward is −|x|². It terminates beyond 2 and keeps what it was told."""

    def __init__(self, shape=(2,), actions=None, noise=0.1, length=30):
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, shape, np.float32) if actions is None else actions
        self.noise, self.length = noise, length
        self.seeds, self.taken, self.seen = [], [], []
        self.closed = 0
        self.port = threading.Lock()  # cannot be pickled, as a window or a port

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.taken, self.seen = [], []
        self.x = self.np_random.normal(size=self.observation_space.shape)
        self.seen.append(self.x.copy())
        return self.x.copy(), {}

    def step(self, action):
        self.taken.append(action)
        self.x = self.x + 0.1 * np.asarray(action, dtype=float)
        self.x = self.x + self.noise * self.np_random.normal(size=self.x.shape)
        self.seen.append(self.x.copy())
        terminated = bool(np.abs(self.x).max() > 2.0)
        truncated = len(self.taken) >= self.length
        return self.x.copy(), -float((self.x**2).sum()), terminated, truncated, {}

    def close(self):
        self.closed += 1


class Scripted(gymnasium.Env):
    """Gives the rewards it was made with, one per step; then it terminates. Its observations are the step's number."""

    def __init__(self, rewards=(1.0, 2.0, 4.0), observation_space=None, action_space=None):
        self.observation_space = observation_space or spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = action_space or spaces.Discrete(2)
        self.rewards = rewards

    def observation(self):
        return np.full(self.observation_space.shape, self.t, dtype=self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation(), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise ValueError(f"not an action: {action!r}")
        reward = self.rewards[self.t]
        self.t += 1
        return self.observation(), reward, self.t == len(self.rewards), False, {}


class Broken(Scripted):
    """Raises in the first episode's second step, and works after that only in a new object."""

    made = 0

    def __init__(self, **options):
        super().__init__(**options)
        type(self).made += 1
        self.number = type(self).made
        self.closed = 0

    def step(self, action):
        if self.number == 1 and self.t == 1:
            raise RuntimeError("the cable came off")
        return super().step(action)

    def close(self):
        self.closed += 1
