"""Takes the pictures of the page in docs/watch.md and docs/tune.md: ``python docs/images/screenshots.py [FOLDER]``.

Needs chromium, playwright and pillow, and for the trials gymnasium and pygame.
"""

import shutil
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import pid

import gibo
from gibo.parameters import Parameters, integer, linear, log
from gibo.runs import manual
from gibo.runs.control import control_of
from gibo.training.training import Training, train
from gibo.web.watch import Watch

PARAMETERS = Parameters(
    kp=log(0.1, 30, start=1),
    ki=log(0.01, 10, start=0.1),
    kd=linear(0, 3, start=0.6),
    filter=integer(1, 12),
    feedforward=linear(-1, 1),
    deadband=linear(0, 1),
)


def bench(kp, ki, kd, filter, feedforward, deadband, seed=1):
    """The settling time of a drive: the gain matters most, the deadband hardly."""
    rng = np.random.default_rng(seed)
    if seed != 1 and rng.random() < 0.05:
        raise RuntimeError("emergency stop: current limit")
    time = 3.0 + 2.0 * np.log(kp / 6.0) ** 2 + 0.5 * np.log(ki / 0.5) ** 2 + 2.5 * (kd - 1.2) ** 2
    time += 0.1 * (filter - 4) ** 2 + 3.0 * (feedforward - 0.3) ** 2 + 0.05 * deadband
    return gibo.Outcome(time + 0.2 * rng.standard_normal(), info={"overshoot": 10.0 + 2.0 * kp})


def held_after(count, gate, reached):
    """The same, which goes no further than this many evaluations until the gate is open."""
    calls = []

    def objective(seed, **parameters):
        calls.append(seed)
        if len(calls) > count:
            reached.set()
            gate.wait()
        return bench(**parameters, seed=seed)

    return objective


def picture(context, address, path, dark=False, width=1280, height=900, replay=False, whole=False):
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(address)
    page.wait_for_selector(".uplot canvas:visible")
    if replay:
        page.click("#replay-show")
        page.wait_for_selector("#replay-picture:visible", timeout=120_000)
    page.wait_for_timeout(900)
    page.screenshot(path=path, full_page=whole)
    page.close()
    with Image.open(path) as whole_colours:
        whole_colours.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            Path(base) / "profile", executable_path=shutil.which("chromium"), headless=True, args=["--no-sandbox"]
        )
        folder, gate, reached = Path(base) / "press-3", threading.Event(), threading.Event()
        options = {"parameters": PARAMETERS, "budget": 150, "journal": folder, "seed": 1}
        run = threading.Thread(target=gibo.minimize, args=(held_after(88, gate, reached),), kwargs=options, daemon=True)
        run.start()
        reached.wait()
        control_of(folder).act({"action": "remark", "text": "oil at 60 degrees from here on"})
        with Watch(folder, control=control_of) as watch:
            picture(context, watch.address_with_token, out / "watch-running.png", whole=True)
            picture(context, watch.address_with_token, out / "watch-dark.png", dark=True)
            picture(context, watch.address_with_token, out / "watch-narrow.png", width=390, height=844)
        control_of(folder).act({"action": "stop"})
        gate.set()
        run.join()
        hand = Path(base) / "drive"
        manual.create(hand, manual.Description.of(PARAMETERS, minimize=True))
        for _ in range(5):
            batch = manual.ask(hand)
            for query in batch.queries:
                manual.tell(hand, query.id, bench(**batch.naming(query.x)).value)
        manual.ask(hand)
        with Watch(hand, control=control_of) as watch:
            picture(context, watch.address_with_token, out / "watch-hand.png", width=390, height=844)
        motor = Path(base) / "motor"  # the run of the tutorial, examples/pid.sh
        manual.create(motor, manual.Description.of(pid.PARAMETERS, minimize=True, budget=60))
        manual.ask(motor)
        manual.tell(motor, 0, 108.07)
        gibo.resume(motor, pid.cost, budget=60)
        with Watch(motor) as watch:
            picture(context, watch.address_with_token, out / "pid-watch.png", width=1100, height=820)
        trained = Path(base) / "CartPole-v1"
        for seed in range(3):
            train(Training("CartPole-v1", "linear"), trained / f"trial-{seed:02d}", budget=60, seed=seed)
        with Watch(trained) as watch:
            picture(context, watch.address_with_token, out / "watch-trials.png")
            picture(context, f"{watch.address}/?trial=trial-01", out / "watch-trained.png", replay=True)
        context.close()


if __name__ == "__main__":
    main()
