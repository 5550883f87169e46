"""labkit and the floor by turns in one process, at several lengths: one line of JSON a run. Started by run.py quick.

A machine's speed may change from one second to the next, so what is compared is measured within the same second.
"""

import gc
import importlib
import json
import sys
from time import process_time_ns

from worker import check
from workloads import Script, responses

WHO = {"labkit": "-", "b0": "b0"}  # a peer, and its variant
ADAPTERS = {"labkit": "adapters.labkit", "b0": "adapters.floor"}


def main(workload: str, turns: int, *lengths: int) -> None:
    """Each length in each turn, as often as makes the longest; the first turn warms up and is not told."""
    runs = []
    for rounds in lengths:
        for peer, variant in WHO.items():
            adapter = importlib.import_module(ADAPTERS[peer])
            script = Script(responses(workload, rounds, **getattr(adapter, "SCRIPT", {})))
            runs.append((peer, rounds, script, adapter.build(script, workload, variant)))
    for turn in range(turns + 1):
        for peer, rounds, script, built in runs:
            times = max(lengths) // rounds
            spent = 0
            gc.collect()
            for _ in range(times):
                script.rewind()
                start = process_time_ns()
                raw = built.run()
                spent += process_time_ns() - start
                check(raw, built, script, workload, rounds)
                del raw  # what a run holds is let go off the clock, as in worker.py
            cost = spent / 1e3 / times / rounds
            told = {"peer": peer, "workload": workload, "rounds": rounds, "us_per_round": cost}
            if turn:
                print(json.dumps({"kind": "time", "turn": f"{workload} {turn}"} | told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
