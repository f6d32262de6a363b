"""Tuning a controller that is no Gymnasium environment: the PID gains of a cart, from noisy experiments.

python examples/pid.py
"""

import os

import numpy as np

import gibo

dt, T, mass, friction, slope, strongest = 0.01, 4.0, 1.5, 0.8, -2.0, 12.0
time = np.arange(0.0, T, dt)


def step_response(gains, seed):
    """The cart's position when it is told to go from 0 to 1: uphill, and its position sensor is noisy."""
    rng = np.random.default_rng(seed)
    Kp, Ki, Kd = gains
    x = v = integral = force = 0.0
    filtered, rate = 0.0, 0.0  # the measured position and speed, smoothed
    positions, forces = [], []
    for _ in time:
        measured = x + 0.02 * rng.standard_normal()
        rate += 0.2 * ((measured - filtered) / dt * 0.2 - rate)
        filtered += 0.2 * (measured - filtered)
        error = 1.0 - filtered
        wanted = Kp * error + Ki * integral - Kd * rate
        if abs(wanted) < strongest:  # the integral waits while the motor cannot give more
            integral += error * dt
        force += 0.3 * (np.clip(wanted, -strongest, strongest) - force)  # the motor takes its time
        v += (force - friction * v + slope) / mass * dt
        x += v * dt
        positions.append(x)
        forces.append(force)
    return np.array(positions), np.array(forces)


def cost(log_gains, seed):
    """What we want: at 1 soon, and a motor that does not rattle."""
    x, force = step_response(10.0**log_gains, seed)
    return dt * np.sum(np.abs(1.0 - x)) + 0.002 * np.abs(np.diff(force)).sum()


# Gains matter by their ratios, so we search their logarithms; 0.2 is a change of 58 %.
start = np.log10([5.0, 1.0, 1.0])
opt = gibo.GIBO(start, scale=0.2, bounds=(-2.0, 2.5), seed=0)
costs, kinds = [], []
for _ in range(5 if os.environ.get("GIBO_EXAMPLE_QUICK") else 30):
    for query in opt.ask():  # on the real cart: one experiment for each of them
        costs.append(cost(query.x, query.seed))
        kinds.append(query.kind)
        opt.tell(query, -costs[-1])  # gibo maximises

tuned = opt.best.x
before, after = (np.mean([cost(x, seed) for seed in range(10**6, 10**6 + 20)]) for x in (start, tuned))
print("gains Kp, Ki, Kd:", (10.0**start).round(2), "->", (10.0**tuned).round(2))
print(f"cost, mean of 20 further experiments: {before:.3f} -> {after:.3f}, after {len(costs)} evaluations")

try:
    import matplotlib.pyplot as plt
except ImportError:
    print("no picture without matplotlib: pip install matplotlib")
    raise SystemExit from None
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for gains, label in ((start, "before"), (tuned, "after")):
    left.plot(time, step_response(10.0**gains, seed=1)[0], label=label)
left.axhline(1.0, color="grey", linestyle=":")
left.set(xlabel="time in s", ylabel="position", title="step response")
left.legend(frameon=False)
at = np.arange(1, len(costs) + 1)
iterates = np.array(kinds) == "iterate"
right.plot(at, costs, ".", color="grey", markersize=3, label="a query")
right.plot(at[iterates], np.array(costs)[iterates], "o-", markersize=3, label="the iterate")
right.set(xlabel="evaluations", ylabel="cost", title="tuning")
right.legend(frameon=False)
figure.savefig("pid.png", dpi=150)
print("picture: pid.png")
