"""Tunes the PID controller of a motor's position, from noisy experiments.

python pid.py                 # 60 experiments, and a picture of the result
python pid.py 10 5 0.2        # one experiment with the gains kp, ki, kd: prints its cost
python pid.py runs/motor      # makes the experiments that a run begun with gibo init asks for
"""

import os
import random
import sys

import gibo
from gibo.parameters import Parameters, log

DT, SECONDS = 0.002, 1.5
BUDGET = 9 if os.environ.get("GIBO_EXAMPLE_QUICK") else 60
# Gains matter by their ratios, so they are searched on log scales.
PARAMETERS = Parameters(kp=log(1, 100, start=10), ki=log(0.1, 100, start=5), kd=log(0.01, 10, start=0.2))


def step_response(kp, ki, kd, seed=None):
    """Position over time when 1 rad is asked for, with a noisy sensor, friction, and a voltage of at most 24 V."""
    noise = random.Random(seed)
    position = speed = current = integral = filtered = rate = 0.0
    positions = []
    for _ in range(round(SECONDS / DT)):
        measured = position + noise.gauss(0.0, 0.01)
        previous, filtered = filtered, filtered + 0.1 * (measured - filtered)
        rate += 0.1 * ((filtered - previous) / DT - rate)
        error = 1.0 - filtered
        wanted = kp * error + ki * integral - kd * rate
        voltage = max(-24.0, min(24.0, wanted))
        if voltage == wanted:  # the integral waits while the motor cannot give more
            integral += error * DT
        current += DT / 0.004 * ((voltage - 0.3 * speed) / 2.0 - current)
        friction = 0.02 * speed + 0.05 * max(-1.0, min(1.0, 50.0 * speed))
        speed += DT / 0.01 * (0.15 * current - friction)
        position += DT * speed
        positions.append(position)
    return positions


def cost(kp, ki, kd, seed=None):
    """The mean distance to 1 rad in percent, and 2 for each percent of overshoot."""
    positions = step_response(kp, ki, kd, seed)
    distance = sum(abs(1.0 - position) for position in positions) / len(positions)
    return 100.0 * distance + 200.0 * max(0.0, max(positions) - 1.0) + random.Random(seed).gauss(0.0, 0.3)


def main():
    if len(sys.argv) == 4:
        kp, ki, kd = map(float, sys.argv[1:])
        print(f"{cost(kp, ki, kd):.2f}")
    elif len(sys.argv) == 2:
        print(gibo.resume(sys.argv[1], cost, budget=BUDGET))
    else:
        result = gibo.minimize(cost, parameters=PARAMETERS, budget=BUDGET, seed=0)
        print(result)
        picture(result)


def picture(result):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("no picture without matplotlib: pip install matplotlib")
        return
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    with plt.rc_context(dict.fromkeys(inks, "grey")):  # readable on white and on black
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
        time = [DT * i for i in range(round(SECONDS / DT))]
        left.axhline(1.0, color="grey", linestyle=":")
        left.plot(time, step_response(10.0, 5.0, 0.2, seed=1), label="before")
        left.plot(time, step_response(**result.parameters, seed=1), label="after")
        left.set(xlabel="time in s", ylabel="position in rad", title="Step of the motor")
        left.legend(frameon=False)
        values = result.history.value
        right.semilogy(range(1, len(values) + 1), values, "o", markersize=3)
        right.set(xlabel="experiments", ylabel="cost", title="Tuning")
        figure.savefig("pid.png", dpi=150, transparent=True)
    print("picture: pid.png")


if __name__ == "__main__":
    main()
