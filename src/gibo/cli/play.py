"""`gibo play`: a trained policy in a window, or as a video."""

from __future__ import annotations

import argparse
import importlib
import io
import math
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibo._checks import describe_error, natural, positive_int
from gibo.cli import ALLOW_MODULE, like_ctrl_c, look_here, say, trial_folders
from gibo.errors import InputError, MissingExtraError, missing_extra
from gibo.runs.loop import Interrupts

if TYPE_CHECKING:
    from gibo.policies.task import Task

# The modules that write a video and their packages, by the ending of its name.
WRITERS = {".gif": {"PIL": "pillow"}, ".mp4": {"imageio": "imageio", "imageio_ffmpeg": "imageio-ffmpeg"}}
# Frames per second; most programs show a faster GIF slowly.
FASTEST_GIF = 50.0
# Largest size in bytes, so that a page or a mail can contain it.
MOST_FRAMES, LARGEST_GIF = 300, 3_000_000
# Settings for rendering without a display: MuJoCo uses EGL, with its log turned off, and pygame the dummy driver.
WITHOUT_DISPLAY = {"MUJOCO_GL": "egl", "EGL_LOG_LEVEL": "fatal", "SDL_VIDEODRIVER": "dummy"}


def add_commands(commands: Any) -> None:
    """Add this command to the command line."""
    play = commands.add_parser(
        "play",
        help="show a trained policy in a window, or write a video of it",
        description="Show the policy of a run of gibo train in a window or as a video. The run does not "
        "change and may be in progress.",
    )
    play.set_defaults(run=_play)
    play.add_argument("folder", type=Path, metavar="RUN", help="a folder of gibo train, or one of its trials")
    play.add_argument("--trial", type=int, metavar="N", help="number of the trial, from 0 (default: the first trial)")
    play.add_argument("--episodes", type=int, default=1, metavar="N", help="(default: 1)")
    text = "the same episodes as gibo evaluate --seed N (default: 0)"
    play.add_argument("--seed", type=int, default=0, metavar="N", help=text)
    play.add_argument("--last", action="store_true", help="replay the last recorded episode of the run's iterates")
    play.add_argument("--allow-module", **ALLOW_MODULE)
    play.add_argument("--video", type=Path, metavar="FILE", help=".mp4 or .gif: write a video, open no window")


def _play(arguments: argparse.Namespace) -> int:
    from gibo.policies.environment import rollout
    from gibo.policies.task import episode_seed
    from gibo.training.training import last_episode, read_trial

    episodes, first = positive_int("--episodes", arguments.episodes), natural("--seed", arguments.seed)
    if arguments.last and (episodes, first) != (1, 0):
        raise InputError("--last: shows one recorded episode; omit --episodes and --seed")
    if arguments.allow_module:
        look_here(":")
    within = () if arguments.trial is None else (f"trial-{arguments.trial:02d}",)
    folder = trial_folders(arguments.folder.joinpath(*within))[0]
    if arguments.last:
        last = last_episode(folder, arguments.allow_module)
        training, policy = last.training, last.policy
        seeds = {f"evaluation {last.evaluation.id} ({last.evaluation.kind})": last.seed}
    else:
        trial = read_trial(folder, arguments.allow_module)
        training, policy = trial.training, trial.policy
        seeds = {f"episode {e + 1}": episode_seed((first, e, 1)) for e in range(episodes)}  # as in Task.evaluate
    with (
        like_ctrl_c(),
        Interrupts(notice="") as interrupts,
        training.task() as task,
        closing(_Screen(task, arguments.video, interrupts)) as screen,
    ):
        for name, seed in seeds.items():
            try:
                episode = rollout(screen, policy, seed=seed, max_steps=task.max_steps)
            except _WindowClosedError:
                say("the window was closed")
                break
            say(f"{name}: return {episode.value:.1f} in {episode.steps} steps", flush=True)
    return 0


# -- what is seen -----------------------------------------------------------------------------------------------------


class _WindowClosedError(Exception):
    """The window was closed."""


class _Screen:
    """An environment that shows each of its states: in its window, or as a frame of a video.

    Ctrl-C ends it between two frames, so that a video has the frames until then.
    """

    def __init__(self, task: Task, video: Path | None, interrupts: Interrupts) -> None:
        self._path, self._interrupts = video, interrupts
        self._film: Any = None
        self._count = 0  # states so far
        if video is not None and sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
            for name, value in WITHOUT_DISPLAY.items():
                os.environ.setdefault(name, value)
        elif video is None and sys.platform.startswith("linux") and not _display():
            raise InputError("there is no display for a window (DISPLAY is not set); write a video: --video FILE.mp4")
        mode = "human" if video is None else "rgb_array"
        self._environment = task.make(render_mode=mode)
        self._is_mujoco = any("mujoco" in kind.__module__ for kind in type(self._environment.unwrapped).__mro__)
        modes = self._environment.metadata.get("render_modes", [])
        if mode not in modes and not (mode == "human" and "rgb_array" in modes):  # Gymnasium makes one from the latter
            raise InputError(f"this environment cannot be shown with {mode!r}; it has {', '.join(modes) or 'nothing'}")
        if mode == "human" and self._is_mujoco:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = importlib.import_module("glfw").init()
            if not answers:  # MuJoCo's viewer would end the whole process
                raise InputError(f"the display {_display()} does not answer; write a video instead: --video FILE.mp4")
        rate = float(self._environment.metadata.get("render_fps") or 30.0)
        is_gif = video is not None and video.suffix.lower() == ".gif"
        self._every = math.ceil(rate / FASTEST_GIF) if is_gif else 1
        self._rate = rate / self._every

    def reset(self, seed: int | None) -> Any:
        first = self._rendering(lambda: self._environment.reset(seed=seed))
        self._show()
        return first

    def step(self, action: Any) -> Any:
        after = self._environment.step(action)
        self._show()
        return after

    def _show(self) -> None:
        if self._interrupts.received is not None:
            raise KeyboardInterrupt
        if self._path is None:  # the environment does it itself
            if self._window_closed():
                raise _WindowClosedError
            return
        if self._count % self._every == 0:
            frame = self._rendering(self._environment.render)
            if self._film is None:
                self._film = _film(self._path, self._rate)
            self._film.append_data(frame)
        self._count += 1

    def _window_closed(self) -> bool:
        """Whether the user closed the window: Gymnasium ignores that, and MuJoCo's viewer breaks at the next frame."""
        if self._is_mujoco:
            glfw = importlib.import_module("glfw")
            window = glfw.get_current_context()
            return bool(window) and bool(glfw.window_should_close(window))
        pygame = sys.modules.get("pygame")  # most other environments draw with pygame
        return pygame is not None and pygame.display.get_init() and bool(pygame.event.peek(pygame.QUIT))

    def _rendering(self, call: Callable[[], Any]) -> Any:
        """Call a function that renders; an error becomes one line."""
        from gibo.policies.environment import gl_advice

        hook = sys.unraisablehook
        sys.unraisablehook = lambda _: None  # if MuJoCo's viewer cannot be created, it raises again on deletion
        try:
            return call()
        except Warning:  # the user made warnings errors
            raise
        except Exception as error:  # OpenGL, pygame, MuJoCo or the environment may raise anything
            text = f"it cannot be shown: {' '.join(describe_error(error).split())[:200]}"
            lacks = type(error).__name__ == "DependencyNotInstalled"
        finally:
            sys.unraisablehook = hook
        if lacks:
            raise MissingExtraError(text)
        raise InputError(f"{text} ({gl_advice()})" if self._is_mujoco else text)

    def close(self) -> None:
        """Close the video and the environment."""
        try:
            if self._film is not None:
                self._film.close()
                say(f"video: {self._path}")
        finally:
            self._environment.close()


def _display() -> str | None:
    return os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")


# -- videos -----------------------------------------------------------------------------------------------------------


def _film(path: Path, rate: float) -> Any:
    """A new video, to which frames are appended."""
    ending = path.suffix.lower()
    if ending not in WRITERS:
        raise InputError(f"--video: expected a file that ends in .mp4 or .gif, got {path.name!r}")
    for module, package in WRITERS[ending].items():
        try:
            importlib.import_module(module)
        except ImportError:
            raise missing_extra(f"a {ending} video needs {package}", "video") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("ab").close()  # raises the system's error if it cannot be written; imageio's errors are long
    if ending == ".gif":
        return _GIF(path, rate)
    # The codec needs even sizes; imageio would stretch frames to multiples of 16.
    return importlib.import_module("imageio.v2").get_writer(path, format="FFMPEG", fps=rate, macro_block_size=2)


class _GIF:
    """A GIF, in memory until it is closed. A long film keeps every second, fourth, … frame; large frames shrink."""

    def __init__(self, path: Path, rate: float) -> None:
        self._path, self._rate = path, rate
        self._frames: list[Any] = []  # Pillow images with a palette each, which take a third of the memory
        self._count, self._every = 0, 1

    def append_data(self, frame: Any) -> None:
        if self._count % self._every == 0:
            if len(self._frames) == MOST_FRAMES:  # an even number, so that the present frame is still due
                del self._frames[1::2]
                self._every *= 2
            self._frames.append(importlib.import_module("PIL.Image").fromarray(frame).quantize(256))
        self._count += 1

    def close(self) -> None:
        data, factor = self._encoded(1.0), 1.0
        while len(data) > LARGEST_GIF:
            factor *= 0.95 * math.sqrt(LARGEST_GIF / len(data))
            data = self._encoded(factor)
        self._path.write_bytes(data)

    def _encoded(self, factor: float) -> bytes:
        frames = self._frames
        if factor < 1.0:
            size = [max(1, round(factor * n)) for n in frames[0].size]
            frames = [frame.convert("RGB").resize(size).quantize(256) for frame in frames]
        # In ms, in multiples of 10 as in the format. Rounded times, not durations, so that errors do not add up.
        times = [min(i * self._every, self._count) * 100.0 / self._rate for i in range(len(frames) + 1)]
        durations = [10 * (round(after) - round(before)) for before, after in pairwise(times)]
        file = io.BytesIO()
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
        return file.getvalue()
