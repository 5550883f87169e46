"""Benchmark runner. Standard library only; each peer runs in its own virtual environment. See README.md.

run.py quick                labkit beside the floor, with this Python, in under two minutes: the report at once
run.py peers  [PEER ...]    the same rounds on every framework whose environment is there: the report at once
run.py setup  [PEER ...]    make environments and install requirements/ENV.txt
run.py time   [PEER ...]    processor time a round, memory, scaling; one fresh process a measurement
run.py start  [PEER ...]    import, first answer, number and size of installed packages
run.py around               a request on the wire, a press of the stepper, the notebooks' suite, with this Python
run.py count  [PEER ...]    instructions a round under valgrind, which repeat exactly; for cheap peers
run.py report FILE          Markdown tables from what `time` and `start` wrote
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("BENCH_HOME", Path(tempfile.gettempdir()) / "bench"))


class Peer(NamedTuple):
    """Where a peer lives: an adapter's name, its variant, and the environment it runs in."""

    adapter: str
    variant: str
    env: str


PEERS = {
    "b0": Peer("floor", "b0", "floor"),
    "b1": Peer("floor", "b1", "floor"),
    "b2": Peer("floor", "b2", "floor"),
    "b2k": Peer("floor", "b2k", "floor"),
    "h1": Peer("floor", "h1", "floor"),
    "h2": Peer("floor", "h2", "floor"),
    "h3": Peer("floor", "h3", "floor"),
    "labkit": Peer("labkit", "-", "labkit"),
    "openai-sdk": Peer("openai_sdk", "-", "openai_agents"),
    "langchain": Peer("langchain", "-", "langchain"),
    "deepagents": Peer("deepagents", "-", "deepagents"),
    "pydantic-ai": Peer("pydantic_ai", "plain", "pydantic_ai"),
    "pydantic-ai-function": Peer("pydantic_ai", "function", "pydantic_ai"),
    "openai-agents": Peer("openai_agents", "plain", "openai_agents"),
    "openai-agents-scripted": Peer("openai_agents", "scripted", "openai_agents"),
    "smolagents": Peer("smolagents", "-", "smolagents"),
    "agno": Peer("agno", "-", "agno"),
    "llama-index": Peer("llama_index", "-", "llama_index"),
    "mini-swe-agent": Peer("mini_swe_agent", "plain", "mini_swe_agent"),
    "mini-swe-agent-deterministic": Peer("mini_swe_agent", "deterministic", "mini_swe_agent"),
}

# What a process may see: no keys, no telemetry, nothing written outside BENCH_HOME.
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": str(HOME / "home"),
    "LANG": "C.UTF-8",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_GLOBAL_CONFIG_DIR": str(HOME / "home" / "mini-swe-agent"),
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "AGNO_TELEMETRY": "false",
    "LANGSMITH_TRACING": "false",
    "DO_NOT_TRACK": "1",
}
NOT_COUNTED = re.compile(r"^(pip|setuptools|wheel|_distutils_hack|distutils-precedence|pkg_resources)\b", re.I)


def python(peer: Peer) -> Path:
    """The peer's Python: of its environment, and for labkit and the floors this one where none was made."""
    own = HOME / "venv" / peer.env / "bin" / "python"
    return Path(sys.executable) if peer.env in ("floor", "labkit") and not own.exists() else own


def chosen(names: list[str]) -> dict[str, Peer]:
    unknown = [n for n in names if n not in PEERS]
    if unknown:
        raise SystemExit(f"unknown peer {', '.join(unknown)}; known: {', '.join(PEERS)}")
    return {n: PEERS[n] for n in (names or [n for n in PEERS if python(PEERS[n]).exists()])}


def offline(command: list[str]) -> list[str]:
    """In a network namespace of its own, where this machine lets us make one: nothing can leave the process."""
    if shutil.which("unshare") and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0:
        return ["unshare", "-n", *command]
    return command


# ---------------------------------------------------------------- setup


def setup(args: argparse.Namespace) -> None:
    envs = {PEERS[n].env for n in args.peers} if args.peers else {p.env for p in PEERS.values()}
    for env in sorted(envs):
        requirements = HERE / "requirements" / f"{env}.txt"
        wanted = ["-r", str(requirements)]
        if env == "labkit":
            wanted = ["-e", str(HERE.parents[1])]
        target = HOME / "venv" / env
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        subprocess.run([str(target / "bin" / "pip"), "install", "-q", *wanted], check=True)
        subprocess.run([str(target / "bin" / "python"), "-m", "compileall", "-q", str(target / "lib")], check=False)
        print(f"{env}: ready")


# ---------------------------------------------------------------- time


def measure(name: str, workload: str, rounds: int, args: argparse.Namespace, prefix: list[str]) -> dict:
    peer = PEERS[name]
    command = [str(python(peer)), str(HERE / "worker.py"), peer.adapter, peer.variant, workload, str(rounds)]
    command += ["--budget", str(args.budget), "--max-runs", str(args.max_runs)]
    if args.trace:
        command.append("--trace")
    record = {"kind": "time", "peer": name, "workload": workload, "rounds": rounds, "trace": args.trace}
    try:
        done = subprocess.run(prefix + command, capture_output=True, text=True, timeout=args.limit, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        return record | {"error": f"over {args.limit} s"}
    if done.returncode:
        return record | {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    return record | json.loads(done.stdout.strip().splitlines()[-1])


def time_rounds(args: argparse.Namespace) -> None:
    peers = [n for n in chosen(args.peers) if n != "b0"]
    prefix = offline([])
    (HOME / "home").mkdir(parents=True, exist_ok=True)
    given_up: set[tuple[str, str, int]] = set()
    with open(args.out, "a", encoding="utf-8") as out:
        for turn in range(args.repeats):
            for workload in args.workloads:
                for rounds in args.rounds:
                    # Each turn starts at another peer, with the floor before and after: the ratio is taken in the turn.
                    at = turn % max(1, len(peers))
                    for name in ["b0", *peers[at:], *peers[:at], "b0"]:
                        if (name, workload, rounds) in given_up:
                            continue
                        record = {"turn": f"{args.label}{turn}"} | measure(name, workload, rounds, args, prefix)
                        if "error" in record:
                            given_up.add((name, workload, rounds))
                        out.write(json.dumps(record) + "\n")
                        out.flush()
                        shown = record.get("error") or f"{record['us_per_round']:.1f} us/round"
                        print(f"{record['turn']} {workload} {rounds:5d} {name:30s} {shown}", flush=True)


# ---------------------------------------------------------------- start


def process(command: list[str]) -> tuple[float, str, str]:
    """Milliseconds of processor time of one process, and what it printed on both ways out."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, env=ENVIRONMENT, cwd=HERE)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        printed, complained = out.read(), err.read()
    if child.returncode:
        raise RuntimeError((complained.strip().splitlines() or ["no message"])[-1][:200])
    return (usage.ru_utime + usage.ru_stime) * 1e3, printed, complained


def import_line(peer: Peer) -> str:
    """The adapter's IMPORT, read without importing the adapter."""
    text = (HERE / "adapters" / f"{peer.adapter}.py").read_text()
    found = re.search(r'^IMPORT = (?:\(\s*)?"(.+)"', text, re.M)
    assert found, peer.adapter
    return found.group(1)


def modules(line: str, exe: str) -> int:
    """How many modules an import loads that a bare interpreter does not."""

    def loaded(code: str) -> set[str]:
        log = process([exe, "-X", "importtime", "-c", code])[2]
        return set(re.findall(r"import time:\s+\d+ \|\s+\d+ \| +(\S+)", log))

    return len(loaded(line) - loaded("pass"))


def installed(peer: Peer) -> tuple[int, float] | tuple[None, None]:
    """Number of distributions and their size in MB on disk, without pip and its like; None for a shared environment."""
    site = next((HOME / "venv" / peer.env / "lib").glob("python*/site-packages"), None)
    if site is None:
        return None, None
    dists = [d for d in site.glob("*.dist-info") if not NOT_COUNTED.match(d.name)]
    size = 0
    for top in site.iterdir():
        if NOT_COUNTED.match(top.name):
            continue
        for path in [top, *top.rglob("*")] if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                size += path.stat().st_size
    return len(dists), size / 1e6


def version(peer: Peer) -> str:
    """What its requirements pin (for labkit, this project), and the version that is installed."""
    pinned = HERE / "requirements" / f"{peer.env}.txt"
    name = pinned.read_text(encoding="utf-8").split()[-1].partition("==")[0] if pinned.exists() else "agent-loop-lab"
    name = "openai" if peer.adapter == "openai_sdk" else name  # it comes with openai-agents
    site = next((HOME / "venv" / peer.env / "lib").glob("python*/site-packages"), None)
    found = importlib.metadata.distributions(name=name, path=[str(site)] if site else sys.path)
    return f"{name} {next((one.version for one in found), '?')}"


def start(args: argparse.Namespace) -> None:
    """Each turn: a bare interpreter, the import and a first answer, of all peers one behind the other."""
    (HOME / "home").mkdir(parents=True, exist_ok=True)
    records: dict[str, dict] = {name: defaultdict(list) for name in chosen(args.peers)}
    failed: dict[str, str] = {}
    for turn in range(args.repeats + 1):
        for what in ("bare", "import", "cold"):
            for name in [name for name in records if name not in failed]:
                peer = PEERS[name]
                exe = str(python(peer))
                command = {
                    "bare": [exe, "-c", "pass"],
                    "import": [exe, "-c", import_line(peer)],
                    "cold": [exe, str(HERE / "cold.py"), peer.adapter, peer.variant, "W1", "1"],
                }[what]
                try:
                    cpu, printed, _ = process(command)
                except (RuntimeError, FileNotFoundError) as error:
                    failed[name] = str(error)
                    continue
                if turn:  # the first one fills caches
                    records[name][what].append(cpu)
                    if what == "cold":
                        records[name]["cold_rss_mb"].append(int(printed) / 1024)
    for name, why in failed.items():
        print(f"{name:30s} {why}")
        del records[name]
    for record in records.values():
        record["import"] = [full - bare for full, bare in zip(record["import"], record.pop("bare"), strict=True)]
    floor = records.get("b0", {})
    with open(args.out, "a", encoding="utf-8") as out:
        for name, record in records.items():
            peer = PEERS[name]
            row = {"kind": "start", "peer": name, "import": record["import"], "cold": record["cold"]}
            row["to_b0"] = {
                what: [a / b for a, b in zip(record[what], floor[what], strict=True)]
                for what in ("import", "cold")
                if floor
            }
            row["modules"] = modules(import_line(peer), str(python(peer)))
            row["cold_rss_mb"] = statistics.median(record["cold_rss_mb"])
            row["dists"], row["size_mb"] = installed(peer)
            out.write(json.dumps(row) + "\n")


# ---------------------------------------------------------------- quick


def peers(args: argparse.Namespace) -> None:
    """All peers whose environments are there, and the report."""
    HOME.mkdir(parents=True, exist_ok=True)
    out = str(Path(tempfile.mkdtemp(prefix="peers", dir=HOME)) / "results.jsonl")
    fixed = {"workloads": ["W1", "W2", "W3", "W4"], "budget": 0.5, "max_runs": 25, "trace": False, "label": "t"}
    time_rounds(argparse.Namespace(**fixed, **vars(args), out=out))
    report(argparse.Namespace(files=[out]))


def around(args: argparse.Namespace) -> None:
    """In a process of its own, which may import labkit, openai and ipywidgets."""
    sys.exit(subprocess.run([sys.executable, str(HERE / "around.py")], cwd=HERE).returncode)


def quick(args: argparse.Namespace) -> None:
    """Every workload at 100, 1,000 and 3,000 rounds, by turns in one process; then memory and the start."""
    (HOME / "home").mkdir(parents=True, exist_ok=True)
    out = Path(tempfile.mkdtemp(prefix="quick", dir=HOME)) / "results.jsonl"
    prefix = offline([])
    once = argparse.Namespace(budget=0, max_runs=1, trace=False, limit=240.0)
    with out.open("w", encoding="utf-8") as records:
        for workload in ("W1", "W2", "W3", "W4"):
            print(f"{workload}: {args.turns} turns ...", flush=True)
            command = [str(python(PEERS["labkit"])), str(HERE / "turns.py"), workload, str(args.turns)]
            subprocess.run(
                [*prefix, *command, "3000", "1000", "100"], stdout=records, check=True, env=ENVIRONMENT, cwd=HERE
            )
            for name in ("b0", "labkit"):
                memory = measure(name, workload, 3000, once, prefix) | {"kind": "memory"}
                print(json.dumps(memory), file=records, flush=True)
    start(argparse.Namespace(peers=["b0", "labkit"], out=str(out), repeats=15))
    report(argparse.Namespace(files=[str(out)]))


# ---------------------------------------------------------------- count


def instructions(peer: Peer, workload: str, rounds: int, times: int) -> int:
    command = [str(python(peer)), str(HERE / "cold.py"), peer.adapter, peer.variant, workload, str(rounds), str(times)]
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(valgrind + command, capture_output=True, text=True, env=ENVIRONMENT | {"PYTHONHASHSEED": "0"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(done.stderr[-500:])
    return int(found.group(1))


def count(args: argparse.Namespace) -> None:
    """A process that runs 11 conversations less one that runs 1 leaves ten, without start, import and script."""

    def conversation(name: str, workload: str, rounds: int) -> float:
        one, eleven = (instructions(PEERS[name], workload, rounds, times) for times in (1, 11))
        return (eleven - one) / 10

    for workload in args.workloads:
        floor = None
        for name in ["b0", *[n for n in args.peers if n != "b0"]]:
            short = conversation(name, workload, 100)
            floor = floor or short
            line = f"{workload} {name:12s} {short / 100:10,.0f} instructions a round, {short / floor:.2f} of b0"
            if args.growth:
                early = conversation(name, workload, 200) - short
                late = conversation(name, workload, 1000) - conversation(name, workload, 900)
                line += f"; rounds 900 to 1000 cost {late / early:.3f} of rounds 100 to 200"
            print(line, flush=True)


# ---------------------------------------------------------------- report


def report(args: argparse.Namespace) -> None:
    versions = (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    print(f"{time.strftime('%Y-%m-%d')}; {versions}, {os.cpu_count()} cores, {platform.processor() or processor()}")
    rows = [json.loads(line) for file in args.files for line in Path(file).read_text(encoding="utf-8").splitlines()]
    timed = [r for r in rows if r["kind"] == "time" and "error" not in r]
    done = {(r["peer"], r["workload"], r["rounds"]) for r in timed}
    failed = {(r["peer"], r["workload"], r["rounds"]): r["error"] for r in rows if r.get("error")}
    errors = {key: why for key, why in failed.items() if key not in done}
    floors: dict[tuple, list[float]] = defaultdict(list)
    for r in timed:
        if r["peer"] == "b0":
            floors[r["turn"], r["workload"], r["rounds"]].append(r["us_per_round"])
    cells: dict[tuple, list[dict]] = defaultdict(list)
    for r in timed:
        r["ratio"] = r["us_per_round"] / statistics.median(floors[r["turn"], r["workload"], r["rounds"]])
        cells[r["peer"], r["workload"], r["rounds"]].append(r)
    names = [n for n in PEERS if any(key[0] == n for key in cells)]
    columns = sorted({(key[1], key[2]) for key in cells})
    print("; ".join(dict.fromkeys(f"{name}: {version(PEERS[name])}" for name in names)))

    def middle(key: tuple, field: str) -> float | None:
        return statistics.median(r[field] for r in cells[key]) if key in cells else None

    def number(value: float | None, key: tuple) -> str:
        if value is None:
            return "failed" if key in errors else "–"
        return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"

    for title, field in (("Ratio to b0", "ratio"), ("Processor µs a round", "us_per_round")):
        print(f"\n**{title}** (median of turns)\n")
        print("| peer | " + " | ".join(f"{w} N={n}" for w, n in columns) + " |")
        print("| --- |" + " ---: |" * len(columns))
        for name in names:
            keys = [(name, w, n) for w, n in columns]
            print(f"| {name} | " + " | ".join(number(middle(k, field), k) for k in keys) + " |")

    lengths = sorted({n for _, n in columns})
    held: dict[tuple, list[float]] = defaultdict(list)
    for r in rows:
        if "rss_peak_kib" in r:
            held[r["peer"], r["workload"], r["rounds"]].append((r["rss_peak_kib"] - r["rss_before_kib"]) / r["rounds"])
    if len(lengths) > 1:
        print("\n**Growth**: exponent of a run's time in its rounds, from one length to another in the same turn")
        print("(median; 1: each round costs the same); memory a round, from the start of the first run to its peak\n")
        pairs = [*itertools.pairwise(lengths), *([(lengths[0], lengths[-1])] if len(lengths) > 2 else [])]
        heads = [f"{a} to {b}" for a, b in pairs] + ["KiB a round"]
        print("| peer, workload | " + " | ".join(heads) + " |")
        print("| --- |" + " ---: |" * len(heads))
    for name, workload in sorted({key[:2] for key in cells}) if len(lengths) > 1 else ():
        out = []
        for pair in pairs:
            short, long = ({r["turn"]: r["us_per_round"] for r in cells[name, workload, n]} for n in pair)
            step = math.log(pair[1] / pair[0])
            exponents = [1 + math.log(long[turn] / short[turn]) / step for turn in long if turn in short]
            out.append(f"{statistics.median(exponents):.2f}" if exponents else "–")
        kib = held[name, workload, lengths[-1]]
        out.append(f"{statistics.median(kib):.1f}" if kib else "–")
        print(f"| {name}, {workload} | " + " | ".join(out) + " |")

    traced = {r["peer"]: r["stretches_us"] for r in timed if r["workload"] == "W1" and r.get("stretches_us")}
    if traced:
        print("\n**Within a run of W1**: a round's cost in its first and last tenth, µs\n")
        print("| peer | first | last | growth |\n| --- | ---: | ---: | ---: |")
        for name, stretches in traced.items():
            first, last = stretches[0], stretches[-1]
            print(f"| {name} | {first:,.1f} | {last:,.1f} | {last / first:.2f} |")

    started = {r["peer"]: r for r in rows if r["kind"] == "start"}
    if started:
        print("\n**Start** (processor ms, median of turns: import above a bare interpreter; a process that answers)\n")
        print("| peer | import | to b0 | first answer | to b0 | modules | peak MB | packages | MB on disk |")
        print("| --- |" + " ---: |" * 8)
        for name in PEERS:
            if name in started:
                r = started[name]
                line = f"| {name} |"
                for what in ("import", "cold"):
                    ratios = r["to_b0"].get(what)
                    line += f" {statistics.median(r[what]):.0f} |"
                    line += f" {statistics.median(ratios):.2f} |" if ratios else " – |"
                size = ["–", "–"] if r["dists"] is None else [r["dists"], f"{r['size_mb']:.0f}"]
                print(f"{line} {r['modules']} | {r['cold_rss_mb']:.0f} | {size[0]} | {size[1]} |")
    if errors:
        print("\nNot measured:")
        for (name, workload, rounds), why in sorted(errors.items()):
            print(f"- {name} {workload} N={rounds}: {why}")


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        return "processor unknown"
    return found.group(1) if found else "processor unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    results = str(HOME / "results.jsonl")

    sub = commands.add_parser("quick")
    sub.add_argument("--turns", type=int, default=9)
    sub.set_defaults(call=quick)

    sub = commands.add_parser("peers")
    sub.add_argument("peers", nargs="*")
    sub.add_argument("--rounds", type=lambda s: [int(n) for n in s.split(",")], default=[100])
    sub.add_argument("--repeats", type=int, default=3)
    sub.add_argument("--limit", type=float, default=240, help="seconds after which a process is given up")
    sub.set_defaults(call=peers)

    sub = commands.add_parser("around")
    sub.set_defaults(call=around)

    sub = commands.add_parser("setup")
    sub.add_argument("peers", nargs="*")
    sub.set_defaults(call=setup)

    sub = commands.add_parser("time")
    sub.add_argument("peers", nargs="*")
    sub.add_argument("--workloads", type=lambda s: s.split(","), default=["W1", "W2", "W3", "W4"])
    sub.add_argument("--rounds", type=lambda s: [int(n) for n in s.split(",")], default=[100])
    sub.add_argument("--repeats", type=int, default=3)
    sub.add_argument("--budget", type=float, default=0.5, help="seconds of timed runs a process")
    sub.add_argument("--max-runs", type=int, default=25)
    sub.add_argument("--limit", type=float, default=240, help="seconds after which a process is given up")
    sub.add_argument("--trace", action="store_true", help="time each round (adds about half a microsecond to each)")
    sub.add_argument("--label", default="t", help="prefix of the turn's name; differs between runs in one file")
    sub.add_argument("--out", default=results)
    sub.set_defaults(call=time_rounds)

    sub = commands.add_parser("start")
    sub.add_argument("peers", nargs="*")
    sub.add_argument("--repeats", type=int, default=7)
    sub.add_argument("--out", default=results)
    sub.set_defaults(call=start)

    sub = commands.add_parser("count")
    sub.add_argument("peers", nargs="+")
    sub.add_argument("--workloads", type=lambda s: s.split(","), default=["W1"])
    sub.add_argument("--growth", action="store_true", help="also how the cost of a round grows; takes minutes a peer")
    sub.set_defaults(call=count)

    sub = commands.add_parser("report")
    sub.add_argument("files", nargs="+")
    sub.set_defaults(call=report)

    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
