"""Where a browser of Chromium's family is; where there is none, a user skips and CI fails."""

import os
import shutil
from collections.abc import Iterator

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
# Where Chrome and Edge are on macOS and Windows: no shell finds them there by name.
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
PROGRAMS = ("ProgramFiles", "ProgramFiles(x86)", "LocalAppData")
WITHIN = ("Google/Chrome/Application/chrome.exe", "Microsoft/Edge/Application/msedge.exe")

HOW = (
    "no Chromium was found: install it (Debian: apt install chromium) "
    "or set CHROMIUM to the path of Chromium, Chrome or Edge"
)


def browser_path() -> str:
    """The path of a browser: CHROMIUM in the environment, or the first found. With none, a skip; in CI a failure."""
    path = os.environ.get("CHROMIUM") or next(found(), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(HOW, pytrace=False)
        pytest.skip(HOW)
    return path


def found() -> Iterator[str]:
    """Browsers of this machine: by name, then in the places where installers put them."""
    yield from filter(None, map(shutil.which, NAMES))
    programs = [os.path.join(os.environ[name], within) for name in PROGRAMS if name in os.environ for within in WITHIN]
    yield from filter(os.path.exists, [*APPLICATIONS, *programs])
