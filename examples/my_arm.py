"""A Gymnasium environment of your own, for docs/policies.md."""

import gymnasium
import numpy as np


class Arm(gymnasium.Env):
    """A joint that is to stand still at 0, with gravity and a weak motor."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)  # angle and speed
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)  # torque

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.5, 0.5, 2)
        return self.state.copy(), {}

    def step(self, action):
        angle, speed = self.state
        speed += 0.05 * (np.sin(angle) + float(action[0]) + 0.1 * self.np_random.standard_normal())
        self.state = np.array([angle + 0.05 * speed, speed])
        return self.state.copy(), -float(angle**2 + 0.1 * speed**2), bool(abs(angle) > 1.5), False, {}


gymnasium.register("Arm-v0", Arm, max_episode_steps=100)
