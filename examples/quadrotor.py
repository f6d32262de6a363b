"""A planar quadrotor in plain NumPy: eight gains of its controller, tuned from noisy flights in gusty wind.

python examples/quadrotor.py
"""

import os

import numpy as np

import gibo

dt, T, mass, inertia, arm, gravity = 0.02, 4.0, 1.0, 0.02, 0.2, 9.81
steps = round(T / dt)
names = ("x", "vx", "z", "vz", "tilt", "turning", "lead x", "lead z")


def flight(gains, seed):
    """The positions of a flight from (0, 0) to (1, 1), in gusts of wind; both rotors push at most twice the weight."""
    rng = np.random.default_rng(seed)
    kx, kvx, kz, kvz, ktilt, kturn, lead_x, lead_z = gains
    x = z = vx = vz = tilt = turning = gust = 0.0
    path = []
    for _ in range(steps):
        gust += dt * (-2.0 * gust + 6.0 * rng.standard_normal() / np.sqrt(dt) * 0.2)
        ahead_x, ahead_z = 1.0 - x - lead_x * vx, 1.0 - z - lead_z * vz
        wanted = np.clip(-(kx * ahead_x - kvx * vx), -0.6, 0.6)  # to fly right, tilt right, which is negative here
        lift = mass * (gravity + kz * ahead_z - kvz * vz)
        torque = ktilt * (wanted - tilt) - kturn * turning
        left, right = np.clip([(lift - torque / arm) / 2, (lift + torque / arm) / 2], 0.0, mass * gravity)
        vx += dt * (-(left + right) * np.sin(tilt) / mass + gust)
        vz += dt * ((left + right) * np.cos(tilt) / mass - gravity)
        turning += dt * (right - left) * arm / inertia
        x, z, tilt = x + dt * vx, z + dt * vz, tilt + dt * turning
        path.append((x, z))
        if abs(tilt) > 1.5:
            break  # it has tipped over
    return np.array(path)


def cost(log_gains, seed):
    """The mean distance to the goal; after a fall it counts as 2 m for the rest of the time."""
    path = flight(np.exp(log_gains), seed)
    return float(np.hypot(*(path - 1.0).T).clip(0.0, 2.0).sum() + 2.0 * (steps - len(path))) / steps


# Gains matter by their ratios, so we search their logarithms; 0.3 is a change of 35 %.
start = np.log([0.1, 0.1, 1.0, 1.0, 0.3, 0.1, 0.05, 0.05])
budget = 20 if os.environ.get("GIBO_EXAMPLE_QUICK") else 150
result = gibo.minimize(cost, start, budget=budget, scale=0.3, seed=0)
before, after = (np.mean([cost(x, seed) for seed in range(10**6, 10**6 + 20)]) for x in (start, result.x))
for name, old, new in zip(names, np.exp(start), np.exp(result.x), strict=True):
    print(f"gain on {name:8s} {old:5.2f} -> {new:5.2f}")
print(f"mean distance, 20 further flights: {before:.3f} m -> {after:.3f} m, after {result.evaluations} flights")

try:
    import matplotlib.pyplot as plt
except ImportError:
    print("no picture without matplotlib: pip install matplotlib")
    raise SystemExit from None
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for gains, label, color in ((start, "before", "#D55E00"), (result.x, "after", "#0072B2")):
    for seed in range(5):
        path = flight(np.exp(gains), seed)
        left.plot(*path.T, color=color, linewidth=1, label=label if seed == 0 else None)
left.plot(1.0, 1.0, "k+", markersize=12)
left.set(xlabel="x in m", ylabel="z in m", title="five flights to the cross")
left.legend(frameon=False)
history = result.history
at = np.arange(1, len(history) + 1)
right.plot(at, history.value, ".", color="grey", markersize=3, label="a query")
right.plot(
    at[history.is_iterate], history.value[history.is_iterate], "o-", color="#0072B2", markersize=3, label="the iterate"
)
right.set(xlabel="flights", ylabel="mean distance in m", title="tuning")
right.legend(frameon=False)
figure.savefig("quadrotor.png", dpi=130)
print("picture: quadrotor.png")
