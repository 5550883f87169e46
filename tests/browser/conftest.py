"""A real JupyterLab on loopback and a headless Chromium, for the few things that Python can't see."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from finding import browser_path

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / ".artifacts" / "browser"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """A browser, closed in the end."""
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def lab(browser, tmp_path_factory):
    """A JupyterLab with settings of its own: its folder of notebooks, and the address of one of them."""
    work = tmp_path_factory.mktemp("lab")
    books = work / "notebooks"
    books.mkdir()
    quiet = work / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8"
    )
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "run",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    env = os.environ | {name: str(work / place) for name, place in places.items()}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    log = work / "server.log"
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True"),
        *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={books}"),
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT, cwd=work)
        try:
            for _ in range(600):
                assert server.poll() is None, log.read_text(encoding="utf-8")
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={token}", timeout=2).close()
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                pytest.fail(f"JupyterLab gave no answer: {log.read_text(encoding='utf-8')}")
            yield books, f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}&reset"
        finally:
            server.terminate()
            try:
                server.wait(60)
            finally:
                server.kill()


RUN_ALL = """async () => {
    const app = window.jupyterapp, panel = app.shell.currentWidget;
    await app.restored; await panel.context.ready; await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    await app.commands.execute('notebook:run-all-cells');
}"""
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
# A wait for what a script leaves in the window has a bound; a wait for the script's own answer has none.
TO_ITS_END = """() => {
    window.ended = '';
    (%s)().then(() => { window.ended = 'well'; }, error => { window.ended = String(error); });
}"""


class Notebook:
    """An opened notebook: the page, and what can be done with it besides clicking."""

    def __init__(self, page, shots: Path) -> None:
        self.page = page
        self._shots = shots

    def run_all(self) -> None:
        """Run all cells, once the kernel's connection is up: the indicator is idle before that."""
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext", timeout=60_000)
        self._to_its_end(RUN_ALL)

    def save(self) -> None:
        """The notebook to its file."""
        self._to_its_end("() => window.jupyterapp.commands.execute('docmanager:save')")

    def restart_kernel(self) -> None:
        """A fresh kernel behind the same page."""
        self._to_its_end(RESTART)

    def _to_its_end(self, script: str) -> None:
        self.page.evaluate(TO_ITS_END % script)
        assert self.page.wait_for_function("window.ended", timeout=120_000).json_value() == "well"

    def content(self) -> nbformat.NotebookNode:
        """The notebook as it is in the page, outputs and all."""
        found = self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.model.toJSON()")
        return nbformat.from_dict(found)

    def shot(self, name: str) -> None:
        """A picture to look at, the last stepper in it."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        for status in self.page.locator(".jp-NotebookPanel .lab-status").all()[-1:]:
            status.evaluate("e => e.scrollIntoView({block: 'center'})")
        self.page.screenshot(path=str(ARTIFACTS / f"{name}.png"))


@pytest.fixture
def open_notebook(lab, browser, request):
    """Open a notebook of these cells (or a copy of a file), run it all, and keep a picture of how it ended."""
    books, address = lab
    opened = []

    def open_and_run(name: str, source: list[str] | Path, *, width: int = 1280) -> Notebook:
        path = books / f"{name}.ipynb"
        if isinstance(source, Path):
            shutil.copy(source, path)
        else:
            cells = [nbformat.v4.new_code_cell(cell, id=f"cell-{at}") for at, cell in enumerate(source)]
            kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
            nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
        page = browser.new_page(viewport={"width": width, "height": 1000})
        page.set_default_timeout(90_000)
        book = Notebook(page, ARTIFACTS)
        opened.append((name, book))
        page.goto(address.format(path.name))
        book.run_all()
        return book

    yield open_and_run
    for name, book in opened:
        book.shot(f"{name}_at_the_end")
        book.page.close()
