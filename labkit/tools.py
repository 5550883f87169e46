"""What a tool is, and the border where a model's text becomes a checked value.

Read `ToolRegistry.prepare` first: it turns a `ToolCall` (text, untrusted) into a `PreparedCall` (typed, checked) or
into a `ToolResult` that says what was wrong. `invoke` takes only what `prepare` gave, runs the handler, and checks
what came back. Whether a call *may* run is not asked here (`labkit.permissions`), nor when (`labkit.loop`).
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError
from pydantic_core import from_json
from pydantic_core.core_schema import ErrorType

from labkit.errors import ToolDefinitionError
from labkit.messages import Effect, ToolCall, ToolResult, sendable

MAX_FAULTS = 20
"""So many faults of one call are named; of the rest the number is given."""

_SHOWN = 80
"""So many characters of a name that the model made up are shown back to it."""

INVALID_JSON = "the arguments are not JSON that can be read. Send one JSON object, complete and plainly nested."


class ToolInput(BaseModel):
    """The base of every argument model: strict, closed, frozen, and no number is infinite.

    Nested models stand on it too. What its JSON Schema shows is what validation enforces.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )


class OpenInput(BaseModel):
    """Any JSON object, for a tool that checks by itself. Only the published designs do; see `ToolDefinition.schema`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", frozen=True, defer_build=True)

    @property
    def given(self) -> dict[str, Any]:
        """The object as it came."""
        return self.__pydantic_extra__ or {}


@dataclass(frozen=True, slots=True, eq=False)
class ToolDefinition:
    """A tool: its name and description, the model of its arguments, its kind of effect, and the function that does it.

    The handler gets a validated `input` and returns a `ToolResult`. `path` says where in its input a tool finds the
    path that it has an effect on, so that a policy can judge it. `schema` is sent in place of the input's own, and
    only beside `OpenInput`. Raises ToolDefinitionError for a bad name and for a model that leaves anything open.
    """

    name: str
    description: str
    input: type[BaseModel]
    effect: Effect
    handler: Callable[[Any], ToolResult]
    path: Callable[[Any], str] | None = None
    schema: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise ToolDefinitionError(f"{self.name!r} is no tool name: use 1 to 64 letters, digits, '_' and '-'")
        if self.effect not in get_args(Effect):
            raise ToolDefinitionError(f"{self.name}: {self.effect!r} is no effect; use one of {get_args(Effect)}")
        if self.schema is not None:
            if self.input is not OpenInput:
                raise ToolDefinitionError(f"{self.name}: a schema of its own goes with OpenInput only")
        elif not (isinstance(self.input, type) and issubclass(self.input, ToolInput)):
            raise ToolDefinitionError(f"{self.name}: the input must be a class that stands on labkit.ToolInput")
        else:
            input_schema(self.input)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema that is sent. Yours to change: it is a copy."""
        return copy.deepcopy(self.schema if self.schema is not None else input_schema(self.input))

    def to_openai(self, *, strict: bool = False) -> dict[str, Any]:
        """The wire form. `strict` is set where it was asked for and the schema is one that strict mode takes."""
        parameters = self.parameters
        function: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": parameters}
        if strict and _fits_strict_mode(parameters):
            function["strict"] = True
        return {"type": "function", "function": function}


class PreparedCall(NamedTuple):
    """Checked, not yet run: the call, its tool, and the `input` that the handler will get."""

    call: ToolCall
    tool: ToolDefinition
    input: Any


class ToolRegistry:
    """The set of tools of one agent, in the order registered."""

    def __init__(self, tools: tuple[ToolDefinition, ...] = ()) -> None:
        self._by_name: dict[str, ToolDefinition] = {}
        self.tools: tuple[ToolDefinition, ...] = ()
        for tool in tools:
            self.register(tool)

    def register(self, tool: ToolDefinition, *, replace: bool = False) -> None:
        """Add a tool. A name that is taken raises ToolDefinitionError, unless `replace` says that this is meant."""
        if tool.name in self._by_name and not replace:
            raise ToolDefinitionError(
                f"a tool named {tool.name!r} is registered already; pass replace=True to put this one in its place"
            )
        self._by_name[tool.name] = tool
        self.tools = tuple(self._by_name.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order registered."""
        return tuple(self._by_name)

    def openai_tools(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """The tools as a request sends them."""
        return [tool.to_openai(strict=strict) for tool in self.tools]

    def prepare(self, call: ToolCall) -> PreparedCall | ToolResult:
        """The call with its arguments checked, or why not: `unknown_tool`, `invalid_json`, `invalid_arguments`.

        A check of the tool's author that breaks is a `tool_execution_error`, as a handler's is.
        """
        tool = self._by_name.get(call.name)
        if tool is None:
            known = ", ".join(self.names) or "none"
            return ToolResult.refusal(
                "unknown_tool", f"there is no tool {_shown(call.name)!r}; the tools are: {known}."
            )
        try:
            try:
                return PreparedCall(call, tool, tool.input.__pydantic_validator__.validate_json(call.arguments))
            except ValidationError as error:
                return _refused(tool, call.arguments, error)
        except Exception as error:  # of a validator that the tool's author wrote
            words = f"the arguments could not be checked ({words_of(error)}); the tool was not run."
            return ToolResult.refusal("tool_execution_error", words)

    def invoke(self, prepared: PreparedCall) -> ToolResult:
        """Run the handler. What it raises becomes `tool_execution_error`, what it returns is checked."""
        try:
            result = prepared.tool.handler(prepared.input)
        except Exception as error:
            return ToolResult.refusal("tool_execution_error", words_of(error))
        return checked_result(result)


def checked_result(result: object) -> ToolResult:
    """A result as it is if it can be sent; else one with the code `invalid_tool_result` that says what was wanted."""
    if (
        type(result) is ToolResult
        and type(result.content) is str
        and (result.error is None or type(result.error) is str)
    ):
        content = result.content
        if content.isascii() or sendable(content) is content:
            return result
    return ToolResult.refusal(
        "invalid_tool_result",
        "the tool ran, but gave back no ToolResult whose content is text that UTF-8 can hold. "
        "Its effect may have happened; whoever wrote the tool has to return ToolResult(text).",
    )


def words_of(error: Exception) -> str:
    """What an exception says, without the folders of this machine; its kind alone where it cannot even say that."""
    kind = type(error).__name__
    try:
        words = sendable(error.strerror if isinstance(error, OSError) and error.strerror else str(error))
    except Exception:
        return kind
    if isinstance(error, ImportError) and error.path:
        words = words.replace(f" ({error.path})", "")
    return f"{kind}: {words}" if words else kind


# ---- from a ValidationError to words that a model can act on; the same words on every pydantic ----


def _refused(tool: ToolDefinition, arguments: str, error: ValidationError) -> ToolResult:
    found = error.errors(include_url=False)
    if found[0]["type"] == "json_invalid":
        return ToolResult.refusal("invalid_json", INVALID_JSON)
    schema = tool.schema if tool.schema is not None else input_schema(tool.input)
    faults: list[str] = []
    overlong: dict[_Place, bool] = {}
    for fault in found:
        where = fault["loc"]
        schemas = _schemas_along(schema, where)
        for end, part in enumerate(where):
            if type(part) is not int:
                continue
            crowd = where[:end]
            if crowd not in overlong:
                words = _overlong(schemas[end], arguments, crowd)
                overlong[crowd] = words is not None
                if words:
                    faults.append(f"{_place(crowd)}: {words}")
            if overlong[crowd]:
                break
        else:
            faults.append(f"{_place(where)}: {_wanted(fault, schemas)}")
    if len(faults) > MAX_FAULTS:
        faults[MAX_FAULTS:] = [f"and {len(faults) - MAX_FAULTS} more"]
    return ToolResult.refusal("invalid_arguments", f"{tool.name} was not run. " + "; ".join(faults) + ".")


_Place = tuple[int | str, ...]


def _place(where: _Place) -> str:
    """`todos[1].status`, as one would write it."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += ("." if text else "") + _shown(part)
        else:
            text += f"[{_shown(part)!r}]"
    return text or "arguments"


def _shown(name: str) -> str:
    return name if len(name) <= _SHOWN else name[:_SHOWN] + "..."


def _schemas_along(schema: dict[str, Any], where: _Place) -> list[dict[str, Any]]:
    """The schema, and its parts that speak of each step on the way to a place; {} where it says nothing."""
    along = [schema]
    for part in where:
        schema = schema.get("items", {}) if type(part) is int else schema.get("properties", {}).get(part, {})
        if "anyOf" in schema:
            parts = [one for one in schema["anyOf"] if one.get("type") != "null"]
            schema = parts[0] if len(parts) == 1 else schema  # `X | None` speaks of X
        along.append(schema)
    return along


def _overlong(schema: dict[str, Any], arguments: str, where: _Place) -> str | None:
    """What to say of a list longer than its schema allows: pydantic would name all its wrong items, not the list."""
    limit = schema.get("maxItems")
    if limit is None or arguments.count(",") < limit:  # that many items would take that many commas
        return None
    value = from_json(arguments)
    for part in where:
        value = value[part]
    return _TOO_LONG.format(len(value), limit) if len(value) > limit else None


_TOO_LONG = "has {} items; {} are allowed at the most"

_KINDS = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "an object",
    "dict_type": "an object",
    "none_required": "null",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
    "string_too_long": ("no longer, in characters, than", "max_length"),
    "string_too_short": ("no shorter, in characters, than", "min_length"),
    "too_short": ("no shorter, in items, than", "min_length"),
}


def _wanted(fault: Any, schemas: list[dict[str, Any]]) -> str:
    """What is allowed at the place of a fault, at the end of the way; of an error of the author's own, its words."""
    try:
        return _lab_words(fault, schemas)
    except LookupError:  # the author named the kind, maybe as one of pydantic's but without what comes with that
        return str(fault["msg"])[:200]


def _lab_words(fault: Any, schemas: list[dict[str, Any]]) -> str:
    """Our words for a fault that pydantic found. Raises LookupError for any other."""
    kind, context, here = fault["type"], fault.get("ctx", {}), schemas[-1]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        known = schemas[-2].get("properties")  # None inside of a choice, whose parts have no place of their own
        return "is not a known field" + ("" if known is None else f"; the fields are: {', '.join(known) or 'none'}")
    if kind in _KINDS:
        text = f"must be {_KINDS[kind]}"
        if isinstance(fault["input"], str) and kind in ("list_type", "tuple_type", "model_type", "dict_type"):
            text += f", not text: send the {_KINDS[kind].split()[-1]} itself, not JSON inside a string"
        return text
    if kind in ("literal_error", "enum"):
        if "enum" in here:
            return f"must be one of {', '.join(map(repr, here['enum']))}"
        return f"must be {context['expected']}"
    if kind in ("string_pattern_mismatch", "string_too_short") and "pattern" not in here and here.get("minLength") == 1:
        return "must not be blank"
    if kind == "string_pattern_mismatch":
        return f"must match the pattern {context['pattern']}"
    if kind == "too_long":
        return _TOO_LONG.format(context["actual_length"], context["max_length"])
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"must be {words} {context[key]}"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])[:200]
    if kind in get_args(ErrorType):
        return f"does not fit the schema ({kind})"
    raise LookupError


# ---- what is shown is what is enforced ----


@cache
def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of an argument model, all in one piece, made once for a class.

    Raises ToolDefinitionError where the model leaves anything open: an Any, a free object, a part that is not strict.
    """
    try:
        model.model_rebuild()
        raw = model.model_json_schema()
    except PydanticUserError as error:
        raise ToolDefinitionError(f"{model.__name__}: no JSON Schema can be made of it: {error.message}") from None
    schema = _closed(_undescribed(raw), raw.get("$defs", {}), model.__name__, ())
    _must_be_strict(model)
    return schema


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the class's docstring, which speaks to readers of the code; what models should read, fields describe."""
    return {key: value for key, value in schema.items() if key != "description"}


def _must_be_strict(model: type[BaseModel]) -> None:
    """Look through the whole core schema: each model in it on the one base, nothing loosened on the way."""
    stack: list[Any] = [model.__pydantic_core_schema__]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if node.get("type") in ("model", "typed-dict", "dataclass"):
                cls = node["cls"]
                config = getattr(cls, "model_config" if issubclass(cls, ToolInput) else "__pydantic_config__", {})
                if any(config.get(key) != wanted for key, wanted in ToolInput.model_config.items()):
                    raise ToolDefinitionError(
                        f"{model.__name__}: {cls.__name__} must stand on labkit.ToolInput and keep its settings"
                    )
            if node.get("type") in ("any", "json"):
                raise ToolDefinitionError(f"{model.__name__}: a field's schema is narrower than the Any behind it")
            if node.get("strict") is False or node.get("allow_inf_nan") is True:
                raise ToolDefinitionError(f"{model.__name__}: a field loosens what labkit.ToolInput demands")
            stack.extend(value for key, value in node.items() if key != "metadata")
        elif isinstance(node, list | tuple):
            stack.extend(node)


def _closed(node: Any, defs: dict[str, Any], path: str, inside: tuple[str, ...]) -> dict[str, Any]:
    """One schema node without references and titles; open nodes raise."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        if name in inside:
            raise ToolDefinitionError(f"{path}: {name} holds itself; a tool's arguments need an end")
        beside = {key: value for key, value in node.items() if key != "$ref"}
        node = {**_undescribed(defs[name]), **beside}
        inside = (*inside, name)
    out = {key: value for key, value in node.items() if key not in ("title", "$defs", "properties", "items", "anyOf")}
    if not {"type", "enum", "const", "anyOf"} & node.keys():
        raise ToolDefinitionError(f"{path}: may be anything; give it a type, since a tool takes only what it names")
    # subtle: to pydantic 1, 1.0 and true are one literal
    if not all(isinstance(value, str | None) for value in (*node.get("enum", ()), node.get("const"))):
        raise ToolDefinitionError(f"{path}: only texts can be listed; give it a type and bounds instead")
    if node.get("type") == "object":
        if node.get("additionalProperties") is not False:
            raise ToolDefinitionError(f"{path}: an open object; name its fields in a model on labkit.ToolInput")
        out["properties"] = {
            name: _closed(part, defs, f"{path}.{name}", inside) for name, part in node.get("properties", {}).items()
        }
    if node.get("type") == "array":
        if "items" not in node:
            raise ToolDefinitionError(f"{path}: a list of anything; say of what, as in tuple[str, ...]")
        out["items"] = _closed(node["items"], defs, f"{path}[]", inside)
    if "anyOf" in node:
        out["anyOf"] = [_closed(part, defs, path, inside) for part in node["anyOf"]]
    return out


def _fits_strict_mode(schema: dict[str, Any]) -> bool:
    """OpenAI's strict mode wants every object closed and all of its fields required."""
    properties = schema.get("properties", {})
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(properties) - set(schema.get("required", ()))
    ):
        return False
    parts = [*properties.values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    return all(_fits_strict_mode(part) for part in parts)
