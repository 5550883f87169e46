"""A served model: any server that speaks OpenAI's Chat Completions, by the `openai` package.

Read `OpenAIModelClient.complete` first. This is the only room that knows keys, addresses and OpenAI's reply fields.
`openai` is imported when a client is made, never before, so that everything scripted works without it.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from labkit.errors import ModelError, SettingsError
from labkit.messages import AssistantMessage
from labkit.model import ModelRequest

API_KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"
MODEL = "OPENAI_MODEL"
SETTINGS = (API_KEY, BASE_URL, MODEL)
"""The three settings of a live model: environment variables, read in `OpenAIModelClient.from_env` and nowhere else."""

Calls = Literal["native", "json_schema", "text"]


class OpenAIModelClient:
    """A model behind an address.

    `timeout` is the most seconds that one request takes in all, retries and a slow server included. `on_text` gets the
    reply's text piece by piece where `stream` is set. `calls` says how the server is made to call tools. `options` joins
    the body of each request (temperature, max_tokens). SettingsError for an address that is none.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str,
        timeout: float = 60,
        stream: bool = False,
        on_text: Callable[[str], object] | None = None,
        calls: Calls = "native",
        late_system_role: Literal["system", "developer", "user"] = "system",
        options: Mapping[str, Any] | None = None,
        retries: int = 2,
    ) -> None:
        if urlsplit(base_url).scheme not in ("http", "https") or not urlsplit(base_url).hostname:
            raise SettingsError(f"{BASE_URL} must be an address such as http://127.0.0.1:8080/v1", ())
        self.model = model
        _sdk()

    @classmethod
    def from_env(cls, **options: Any) -> "OpenAIModelClient":
        """The client that the three settings name. SettingsError names all that are missing or blank, at once."""
        found = {name: os.environ.get(name, "").strip() for name in SETTINGS}
        missing = tuple(name for name in SETTINGS if not found[name])
        if missing:
            raise SettingsError(
                f"a live model needs {', '.join(missing)}: set {'it' if len(missing) == 1 else 'them'} "
                "(`labkit serve` starts a small model here and prints all three), or go on offline with --script FILE",
                missing,
            )
        return cls(api_key=found[API_KEY], base_url=found[BASE_URL], model=found[MODEL], **options)

    def complete(self, request: ModelRequest) -> AssistantMessage:
        """The server's reply. ModelError names the address, the cause and what to do."""
        raise NotImplementedError


def _sdk() -> Any:
    """The `openai` package."""
    try:
        import openai
    except ImportError:
        raise ModelError(
            "a live model needs the openai package: install the extra `live` (agent-loop-lab[live])"
        ) from None
    return openai
