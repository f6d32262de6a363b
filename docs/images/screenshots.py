"""Takes the pictures of the page that docs/watch.md shows, anew: ``python docs/images/screenshots.py [FOLDER]``.

Needs chromium and playwright, and for the trials gymnasium, pygame and pillow.
"""

import shutil
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import gibo
from gibo.runs.control import control_of
from gibo.runs.manual import Description
from gibo.runs.spec import RunSpec
from gibo.training.training import Training, train
from gibo.web.watch import Watch

NAMES = ["kp", "ki", "kd", "filter", "feedforward", "deadband"]
BEST = np.array([1.4, 0.5, 0.2, 0.8, 1.1, 0.1])


def bench(x, seed):
    """A controller on a noisy test bench: damping matters most, the deadband hardly."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.04:
        raise RuntimeError("emergency stop: current limit")
    weights = np.array([1.0, 0.6, 2.5, 0.4, 0.8, 0.05])
    return float(9.0 - (weights * (x - BEST) ** 2).sum() + 0.1 * rng.standard_normal())


def held_after(count, gate, reached):
    """The same, which goes no further than this many evaluations until the gate is open."""
    calls = []

    def objective(x, seed):
        calls.append(seed)
        if len(calls) > count:
            reached.set()
            gate.wait()
        return bench(x, seed)

    return objective


def picture(context, address, path, dark=False, width=1280, height=900, replay=False):
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(address)
    page.wait_for_selector("canvas")
    if replay:
        page.click("#replay-show")
        page.wait_for_selector("#replay-picture:visible", timeout=120_000)
    page.wait_for_timeout(700)
    page.screenshot(path=path)
    page.close()


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            Path(base) / "profile", executable_path=shutil.which("chromium"), headless=True, args=["--no-sandbox"]
        )
        folder, gate, reached = Path(base) / "press-3", threading.Event(), threading.Event()
        description = Description(NAMES, [0.6] * 6, [0.2] * 6, [0.0] * 6, [3.0] * 6)
        spec = RunSpec.of(description.optimizer(), names=NAMES)
        gibo.Journal.create(folder, spec).close()
        objective = held_after(148, gate, reached)
        run = threading.Thread(target=gibo.resume, args=(folder, objective), kwargs={"budget": 300}, daemon=True)
        run.start()
        reached.wait()
        control_of(folder).remark("oil at 60 degrees from here on")
        with Watch(folder, control=control_of) as watch:
            picture(context, watch.page_address, out / "watch-running.png")
            picture(context, watch.page_address, out / "watch-dark.png", dark=True)
            picture(context, watch.page_address, out / "watch-narrow.png", width=390, height=844)
        control_of(folder).stop()
        gate.set()
        run.join()
        trained = Path(base) / "CartPole-v1"
        for seed in range(3):
            train(Training("CartPole-v1", "linear"), trained / f"trial-{seed:02d}", budget=60, seed=seed)
        with Watch(trained) as watch:
            picture(context, watch.page_address, out / "watch-trials.png")
            picture(context, f"{watch.address}/?trial=trial-01", out / "watch-trained.png", replay=True)
        context.close()


if __name__ == "__main__":
    main()
