"""One measurement in one fresh process; prints one line of JSON. Started by run.py with a peer's own Python."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import sys
from itertools import pairwise
from time import perf_counter, perf_counter_ns, process_time_ns

CLOCK_MATTERS = 100e-6  # seconds a round below which reading the clock at each round would show
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from workloads import FINAL, Script, TimedScript, expected, responses  # noqa: E402


def memory_kib() -> tuple[int, int]:
    """Resident size now and at its peak. (ru_maxrss would also count the parent before exec.)"""
    now = peak = 0
    with open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                now = int(line.split()[1])
            elif line.startswith("VmHWM:"):
                peak = int(line.split()[1])
    return now, peak


def check(raw, built, script, workload: str, rounds: int) -> None:
    """End the measurement where the history does not hold what was played."""
    outcome = built.outcome(raw)
    want = expected(workload, rounds)
    got = {"model_calls": script.at, "reads": outcome.reads, "writes": outcome.writes, "errors": outcome.errors}
    if got != want or outcome.text != FINAL:
        raise SystemExit(f"{workload}: wanted {want} and {FINAL!r}, got {got} {outcome.text!r}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("adapter")
    parser.add_argument("variant")
    parser.add_argument("workload")
    parser.add_argument("rounds", type=int)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timed runs to aim at")
    parser.add_argument("--max-runs", type=int, default=25)
    parser.add_argument("--trace", action="store_true", help="note the clock at each model call")
    args = parser.parse_args()

    adapter = importlib.import_module(f"adapters.{args.adapter}")
    names = getattr(adapter, "SCRIPT", {})

    def script_for(rounds: int, kind: type[Script] = Script) -> Script:
        return kind(responses(args.workload, rounds, **names))

    warm = script_for(8)
    built = adapter.build(warm, args.workload, args.variant)
    check(built.run(), built, warm, args.workload, 8)

    # Processor time of the whole process (all its threads) is the measure: it leaves out the time in which
    # other processes had the core. Wall time is kept beside it.
    cpu: list[float] = []
    wall: list[float] = []
    gaps: list[list[int]] = []
    memory: list[int] = []
    build_ms = 0.0

    def play(script: Script, budget: float, most: int) -> None:
        nonlocal build_ms
        began = perf_counter()
        built = adapter.build(script, args.workload, args.variant)
        build_ms = (perf_counter() - began) * 1e3
        cpu.clear()
        wall.clear()
        while not cpu or (sum(cpu) < budget and len(cpu) < most):
            script.rewind()
            gc.collect()
            if not memory:
                memory.append(memory_kib()[0])
            wall_start = perf_counter_ns()
            cpu_start = process_time_ns()
            raw = built.run()
            cpu.append((process_time_ns() - cpu_start) / 1e9)
            wall.append((perf_counter_ns() - wall_start) / 1e9)
            if len(memory) == 1:
                memory.append(memory_kib()[1])
            check(raw, built, script, args.workload, args.rounds)
            if isinstance(script, TimedScript):
                gaps.append([b - a for a, b in pairwise(script.ticks)])
            del raw

    if args.trace:
        play(script_for(args.rounds, TimedScript), args.budget, 5)
    if not args.trace or statistics.median(cpu) / args.rounds < CLOCK_MATTERS:
        play(script_for(args.rounds), args.budget, args.max_runs)

    result = {
        "us_per_round": statistics.median(cpu) / args.rounds * 1e6,
        "us_min": min(cpu) / args.rounds * 1e6,
        "us_wall": statistics.median(wall) / args.rounds * 1e6,
        "us_wall_min": min(wall) / args.rounds * 1e6,
        "runs": len(cpu),
        "build_ms": build_ms,
        "rss_before_kib": memory[0],
        "rss_peak_kib": memory[1],
    }
    if gaps:
        # The best gap seen for each round; the median of ten equal stretches of the run.
        best = [min(column) for column in zip(*gaps, strict=True)]
        step = max(1, len(best) // 10)
        result["stretches_us"] = [
            statistics.median(best[i : i + step]) / 1e3 for i in range(0, len(best) - step + 1, step)
        ]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
