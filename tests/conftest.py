"""What pytest needs before the tests: how hypothesis searches, and a workspace with one file."""

import os
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "lab",
    deadline=None,  # no test asserts seconds
    max_examples=100,
    derandomize="CI" in os.environ,  # the same examples on each run there; new ones at home
    # the shared folder is only read from where hypothesis runs
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "mutation", settings.get_profile("lab"), max_examples=25, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("lab")

# What a shell starts in the background has Ctrl-C ignored, and so has all that it starts; here it is heard again.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def folder(tmp_path):
    """A workspace that holds a.txt."""
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "a.txt").write_bytes(b"hello\n")
    return place
