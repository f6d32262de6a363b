"""Runs to show, and a browser to show them in."""

import shutil
import threading

import pytest
from watching import PARAMETERS, noisy

import gibo
from gibo.runs.control import held_here

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run that has ended: minimised, with a log and a whole parameter, failures and measured extras."""
    folder = tmp_path_factory.mktemp("finished") / "robot"
    with pytest.warns(gibo.FailedEvaluationWarning):
        gibo.minimize(noisy, parameters=PARAMETERS, budget=60, journal=folder)
    return folder


class Gate:
    """An objective that lets as many evaluations through as it is told to."""

    def __init__(self):
        self.allowed, self.begun, self.done = threading.Semaphore(0), threading.Event(), False

    def __call__(self, x):
        self.begun.set()
        self.allowed.acquire()
        if self.done:
            raise KeyboardInterrupt
        return float(-(x**2).sum())


@pytest.fixture
def running(tmp_path):
    """The folder of a run that goes on in a thread, and the gate that its evaluations wait at."""
    gate, folder = Gate(), tmp_path / "bench"
    thread = threading.Thread(target=gibo.maximize, args=(gate, [1.0, 1.0]), kwargs={"budget": 1000, "journal": folder})
    thread.start()
    assert gate.begun.wait(30)
    yield folder, gate
    gate.done = True
    if (control := held_here(folder)) is not None:
        control.act({"action": "stop"})  # it may be paused
    gate.allowed.release(1000)
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium with an empty profile."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            headless=True,
            args=FLAGS,
            accept_downloads=True,
            viewport={"width": 1280, "height": 900},
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(10_000)
        yield context
        context.close()


@pytest.fixture
def tab(browser):
    """A page that must stay without errors and within this machine."""
    page = browser.new_page()
    page.problems, page.requests = [], []
    page.on("console", lambda message: message.type in ("error", "warning") and page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    yield page
    page.close()
    assert page.problems == []
    allowed = ("http://127.0.0.1:", "file:///", "blob:", "data:")
    assert [url for url in page.requests if not url.startswith(allowed)] == []
