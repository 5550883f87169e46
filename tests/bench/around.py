"""What a user waits for around the loop: a request put on the wire, a press of the stepper, the notebooks' suite.

Started by `run.py around` with a Python that has the extras `lab` and `test`. Wall time, all of it.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai
from workloads import snapshot

from labkit import P05, ScriptedModelClient, build_agent, call, say
from labkit.classroom.stepper import Stepper
from labkit.clients.openai import OpenAIModelClient

ROOT = Path(__file__).resolve().parents[2]
ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
    }
).encode()


class Server(BaseHTTPRequestHandler):
    """Reads a request, says "done"."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = self.headers["Content-Length"]
        if length is not None:
            self.rfile.read(int(length))
        else:  # chunked
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        """Nothing: the report is for the terminal."""


def scripted_run(rounds: int, items: int):
    """A whole run of `rounds` todo rounds: its result, and each request as it was made."""
    replies = [call("todo_write", todos=snapshot(n, items)) for n in range(rounds)]
    model = ScriptedModelClient([*replies, say("done")])
    agent = build_agent(P05, model, workspace=ROOT, max_rounds=rounds + 1)
    return agent.run("Go on."), model.requests


def milliseconds(act: Callable[..., object], *given: object, **named: object) -> float:
    began = time.perf_counter()
    act(*given, **named)
    return (time.perf_counter() - began) * 1e3


def encoding() -> None:
    """The last requests of a run, through labkit's client and through the SDK's typed method, over loopback HTTP."""
    print("\n**A request of W1 on the wire**, ms: the last of a run, median (encoding, loopback HTTP and its answer)\n")
    print(f"| by (openai {openai.__version__}) | after 50 rounds | after 1,000 rounds |\n| --- | ---: | ---: |")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    found: dict[str, list[float]] = {"labkit's client": [], "json.dumps alone": [], "chat.completions.create": []}
    for rounds in (50, 1000):
        _, requests = scripted_run(rounds, 10)
        ours = OpenAIModelClient(model="m", base_url=address, api_key="none")
        # as in a run: each request after the one before it, so that only what is new has to be encoded
        each = [milliseconds(ours.complete, request) for request in requests[-20:]]
        found["labkit's client"].append(statistics.median(each[1:]))
        ours.close()
        body = requests[-1].to_openai()
        found["json.dumps alone"].append(statistics.median(milliseconds(json.dumps, body) for _ in range(5)))
        with openai.OpenAI(base_url=address, api_key="none") as typed:
            each = [milliseconds(typed.chat.completions.create, model="m", **body) for _ in range(4)]
        found["chat.completions.create"].append(statistics.median(each[1:]))
    server.shutdown()
    server.server_close()
    for name, (short, long) in found.items():
        print(f"| {name} | {short:.2f} | {long:.2f} |")


def stepper() -> None:
    """A press of `next`, as a browser's message brings it: the frame made, both panes written."""
    result, _ = scripted_run(200, 50)
    shown = Stepper(result)
    each = [milliseconds(shown.next.click) for _ in range(199)]
    assert shown.at == len(each)
    print("\n**A press of the stepper**, 200 rounds of 50 items: ", end="")
    print(f"{statistics.median(each):.2f} ms, at most {max(each):.2f}")


def suite() -> None:
    """Every notebook and solution, each cell run and compared."""
    print("\n**nbval over every notebook and solution**, one process: ", end="", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "notebooks"]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode or not passed:
        sys.exit(done.stdout[-2000:] + done.stderr[-500:])
    print(f"{passed[1]} cells in {time.perf_counter() - began:.0f} s")


def main() -> None:
    encoding()
    stepper()
    suite()


if __name__ == "__main__":
    main()
