"""What labkit raises. A model reads results; a programmer reads these. This room imports nothing of labkit.

LabkitError
 |-- ToolDefinitionError   a tool that cannot be defined or registered  (also a ValueError)
 |-- WorkspaceError        a path that is not in the workspace, or no plain file there  (also a ValueError)
 |-- PairingError          a history in which calls and results do not match
 |-- ScriptError           a script that ran out, or an entry that is none
 |-- CassetteError         a recording that is damaged, at its end, or of another conversation
 '-- ModelError            a live model that did not answer
      '-- SettingsError    a live model that was not configured
"""


class LabkitError(Exception):
    """The root: catch it to catch all that labkit raises on its own account."""


class ToolDefinitionError(LabkitError, ValueError):
    """A tool with a bad name, an open argument model, or a name that is taken. The message says how to mend it."""


class WorkspaceError(LabkitError, ValueError):
    """A path that was refused. The message says why, in words a model can act on, and names no folder of yours."""


class PairingError(LabkitError):
    """A tool call without its result, or a result without its call. `index` is the message at fault."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class ScriptError(LabkitError):
    """The scripted model has nothing more to say, or an entry it cannot say. `requests` counts those made."""

    def __init__(self, message: str, requests: int) -> None:
        super().__init__(message)
        self.requests = requests


class CassetteError(LabkitError):
    """A cassette that can't be read or does not fit what is asked. The message names the file, and shows a diff."""


class ModelError(LabkitError):
    """A live model did not answer. The message names the address, the cause and what to do, and never a key."""


class SettingsError(ModelError):
    """Settings of the live model are missing. `missing` holds their names."""

    def __init__(self, message: str, missing: tuple[str, ...]) -> None:
        super().__init__(message)
        self.missing = missing
