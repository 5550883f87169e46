"""What the comparison of outputs says of one cell: for the lesson that shows why an output can be trusted.

The real thing is run: a notebook of one cell with this stored output, compared by nbval in a process of its own.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat


def ci_says(source: str, stored: str) -> str:
    """Run this code, compare what it prints with what is stored, and return the verdict in a few lines."""
    cell = nbformat.v4.new_code_cell(source, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=stored)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "one_cell.ipynb")
        file.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])), encoding="utf-8")
        # As in regenerate, the import of a grammar that notebooks never need is left out.
        start = "import sys; sys.modules['rfc3987_syntax'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
        command = [sys.executable, "-c", start, "-p", "nbval.plugin", "--nbval", "--nbval-current-env"]
        command += ["--nbval-cell-timeout=60", "-q", "--color=no", "-p", "no:cacheprovider", "-c", os.devnull]
        env = {
            name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS")
        }
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        done = subprocess.run(
            [*command, "--rootdir", folder, str(file)],
            cwd=folder,
            env=env,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode not in (0, 1):
        return "the comparison could not be run: is nbval installed? `python lab.py` sets up all that is needed"
    if done.returncode == 0:
        return "passed: the output is what is stored"
    told = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in done.stdout.splitlines()]
    wanted = [line for line in told if line.startswith("mismatch ") or " == " in line]
    return "\n".join(["failed:", *wanted])
