"""Coverage-guided fuzzing of `ToolRegistry.prepare`, bounded: what a model can write must never raise.

    pip install -e ".[fuzz]"
    python tests/fuzz/fuzz_prepare.py -runs=200000 -max_len=2000

A crash is written to a file `crash-...` here; its text becomes a test of its whole kind in tests/test_tools.py.
"""

import json
import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["labkit"]):
    from labkit import P05, PreparedCall, ScriptedModelClient, ToolCall, ToolResult, build_agent, say

LONGEST = 6_000
"""No refusal echoes its input: twenty faults of a shown length, and the words around them."""


def registry():
    """All the built-in tools."""
    agent = build_agent(P05, ScriptedModelClient([say("hi")]), workspace=tempfile.mkdtemp())
    return agent._registry


REGISTRY = registry()
KEYS = ["todos", "content", "status", "path", "old", "new", "pattern", "command", "timeout", "extra", "\u2028"]
LEAVES = ["null", "true", "NaN", "1e400", "5", "-0.0", '"pending"', '"a.txt"', '" "', '"\\ud800"', "9" * 5_000]


def value(provider, depth):
    """JSON, or nearly: the fuzzer's bytes choose its shape, so that coverage leads to the places behind the parser."""
    kind = provider.ConsumeIntInRange(0, 5 if depth else 2)
    if kind == 0:
        return provider.PickValueInList(LEAVES)
    if kind == 1:
        return json.dumps(provider.ConsumeUnicode(20))
    if kind == 2:
        return provider.ConsumeUnicode(20)
    count = provider.ConsumeIntInRange(0, 4) if provider.ConsumeBool() else provider.ConsumeIntInRange(0, 60)
    parts = [value(provider, depth - 1) for _ in range(count)]
    if kind == 3:
        return "[" + ",".join(parts) + "]"
    keys = [json.dumps(provider.PickValueInList(KEYS)) for _ in parts]
    return "{" + ",".join(f"{key}:{part}" for key, part in zip(keys, parts, strict=True)) + "}"


def one(data: bytes) -> None:
    """One text to one tool."""
    provider = atheris.FuzzedDataProvider(data)
    name = provider.PickValueInList([*REGISTRY.names, "made_up"])
    answer = REGISTRY.prepare(ToolCall("c1", name, value(provider, 4)))
    if isinstance(answer, PreparedCall):
        assert type(answer.input) is answer.tool.input
        return
    assert isinstance(answer, ToolResult)
    assert answer.error in ("unknown_tool", "invalid_json", "invalid_arguments")
    assert answer.content.startswith(f"Error [{answer.error}]: ")
    assert len(answer.content.encode()) < LONGEST


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
