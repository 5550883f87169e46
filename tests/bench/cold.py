"""Start, import, build an agent, answer, exit: run.py times the whole process. Prints the peak size in KiB.

With TIMES, the same conversation that many times (for counting instructions).
"""

from __future__ import annotations

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from workloads import FINAL, Script, responses


def main(name: str, variant: str, workload: str, rounds: str, times: str = "1") -> None:
    adapter = importlib.import_module(f"adapters.{name}")
    script = Script(responses(workload, int(rounds), **getattr(adapter, "SCRIPT", {})))
    built = adapter.build(script, workload, variant)
    for _ in range(int(times)):
        script.rewind()
        raw = built.run()
    assert built.outcome(raw).text == FINAL
    with open("/proc/self/status", encoding="utf-8") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    print(peak)


if __name__ == "__main__":
    main(*sys.argv[1:])
