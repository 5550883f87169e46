"""Tools: what is shown is what is enforced, and a refusal alone is enough to mend a call."""

import dataclasses
import enum
import json
import os
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    WithJsonSchema,
    create_model,
    model_validator,
    with_config,
)
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from labkit import (
    P05,
    PreparedCall,
    ScriptedModelClient,
    ToolCall,
    ToolDefinition,
    ToolDefinitionError,
    ToolInput,
    ToolRegistry,
    ToolResult,
    build_agent,
    say,
)
from labkit.tools import MAX_FAULTS, OpenInput, input_schema


class Line(ToolInput):
    """One line; this sentence is for readers of the code."""

    text: str
    mood: Literal["glad", "sad"] = "glad"


class Order(ToolInput):
    """A bit of everything; this sentence is for readers of the code."""

    name: str = "x"
    count: Annotated[int, Field(ge=1, le=9)] = 1
    price: Annotated[float, Field(gt=0, lt=100)] = 1.0
    sure: bool = True
    kind: Literal["a", "b"] = "a"
    only: Literal["z"] = "z"
    short: Annotated[str, Field(max_length=3)] = ""
    long: Annotated[str, Field(min_length=2)] = "xx"
    full: Annotated[str, Field(min_length=1)] = "x"
    shaped: Annotated[str, Field(pattern="^a+$")] = "a"
    three: Annotated[tuple[int, ...], Field(max_length=3)] = ()
    some: Annotated[tuple[int, ...], Field(min_length=2)] = (1, 2)
    even: Annotated[int, Field(multiple_of=2)] = 2
    lines: Annotated[tuple[Line, ...], Field(max_length=50)] = ()
    line: Line | None = None
    mood: Literal["glad", "sad"] | None = None
    ids: Annotated[tuple[int, ...], Field(max_length=2)] | None = None


FIELDS = ", ".join(Order.model_fields)


def fine(given):
    """A handler that works."""
    return ToolResult("fine")


def tool(name="order", input=Order, handler=fine, **parts):
    """A tool with what a test does not name left ordinary."""
    return ToolDefinition(name, "Takes an order.", input, "read", handler, **parts)


def holding(annotation, default=...):
    """An argument model with one field of this type."""
    return create_model("Held", __base__=ToolInput, x=(annotation, default))


def prepare(arguments, one=None):
    """What a registry with one tool makes of an arguments text."""
    one = one or tool()
    return ToolRegistry((one,)).prepare(ToolCall("c1", one.name, arguments))


def faults(arguments, one=None):
    """The faults named in an `invalid_arguments` refusal, as one text."""
    one = one or tool()
    result = prepare(arguments, one)
    assert isinstance(result, ToolResult), result
    assert result.error == "invalid_arguments"
    opening = f"Error [invalid_arguments]: {one.name} was not run. "
    assert result.content.startswith(opening)
    assert result.content.endswith(".")
    return result.content[len(opening) : -1]


def nodes(schema):
    """Each node of a JSON Schema, the root first."""
    yield schema
    for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]:
        yield from nodes(part)
    if "items" in schema:
        yield from nodes(schema["items"])


# ---- what is sent ----


def builtin(folder):
    """All built-in tools, as P05 sends them."""
    model = ScriptedModelClient([say("done")])
    build_agent(P05, model, workspace=folder).run("go")
    return model.requests[0].tools


def test_every_sent_schema_is_closed_whole_and_plain(folder):
    """Root object, closed at every object, no reference, no title, nothing beside properties that JSON Schema lacks."""
    names = []
    for one in (*builtin(folder), tool()):
        names.append(one.name)
        schema = one.parameters
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & schema.keys()
        for node in nodes(schema):
            assert "$ref" not in node
            assert "$defs" not in node
            assert type(node.get("title")) is not str
            assert {"type", "enum", "const", "anyOf"} & node.keys()
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert "properties" in node
                assert set(node.get("required", ())) <= set(node["properties"])
            assert node.get("type") != "array" or "items" in node
        assert "$ref" not in json.dumps(schema)
    assert names == ["read_file", "write_file", "edit_file", "glob", "shell", "todo_write", "order"]


def test_docstrings_are_not_sent_and_field_descriptions_are():
    """A class's docstring speaks to readers of the code; a model reads the description of a field."""

    class Told(ToolInput):
        """Not for the model."""

        line: Annotated[Line, Field(description="For the model.")]

    schema = tool(input=Told).parameters
    assert "description" not in schema
    assert schema["properties"]["line"]["description"] == "For the model."
    assert "readers of the code" not in json.dumps([schema, tool().parameters])
    assert "Not for the model" not in json.dumps(schema)


def test_a_field_may_be_called_like_a_word_of_json_schema():
    """A field named title, items or description stays: it is a name and no annotation."""
    model = create_model("Named", __base__=ToolInput, title=(str, ...), items=(str, ...), description=(str, ...))
    schema = tool(input=model).parameters
    assert list(schema["properties"]) == schema["required"] == ["title", "items", "description"]
    sent = '{"title":"t","items":"i","description":"d"}'
    assert isinstance(prepare(sent, tool(input=model)), PreparedCall)


@pytest.mark.parametrize(
    "annotation",
    [Literal["a", None], Literal[None], None, Annotated[str, Field(json_schema_extra={"examples": [{"type": "any"}]})]],
)
def test_what_names_all_it_takes_is_taken(annotation):
    """A choice of texts or null has no type and is closed; what a schema tells beside its rules loosens nothing."""
    assert "x" in tool(input=holding(annotation)).parameters["properties"]


def test_parameters_are_yours_to_change():
    """Each reading of a schema is a copy."""
    one = tool()
    one.parameters["properties"].clear()
    assert list(one.parameters["properties"]) == list(Order.model_fields)


def test_the_wire_form_of_a_tool():
    """Name, description, parameters; strict only if asked for and possible."""
    one = tool(input=Line)
    assert one.to_openai() == {
        "type": "function",
        "function": {"name": "order", "description": "Takes an order.", "parameters": one.parameters},
    }
    assert "strict" not in one.to_openai(strict=True)["function"]
    assert tool(input=holding(str)).to_openai(strict=True)["function"]["strict"] is True
    assert tool(input=holding(tuple[Line, ...])).to_openai(strict=True)["function"].get("strict") is None


# ---- what a definition refuses ----


class Loose(BaseModel):
    """A nested model that is closed and not strict."""

    model_config = ConfigDict(extra="forbid")
    n: int


class Open(BaseModel):
    """A nested model that takes anything beside its fields."""

    n: int


class Lax(ToolInput):
    """On the base, and then loosened."""

    model_config = ConfigDict(strict=False)
    n: int


class Infinite(ToolInput):
    """On the base, and numbers may be infinite again."""

    model_config = ConfigDict(allow_inf_nan=True)
    n: float


class Node(ToolInput):
    """A model that holds itself."""

    inner: "Node | None" = None


@checked_dataclass(config=ConfigDict(extra="forbid"))
class Record:
    """A dataclass: closed, and not strict."""

    n: int


@with_config(ConfigDict(extra="forbid"))
class Wire(TypedDict):
    """A dict with names: closed, and not strict."""

    n: int


class Pair(NamedTuple):
    """A list in disguise."""

    n: int


class Grade(enum.IntEnum):
    """Numbers by name."""

    good = 1


REFUSED = [
    (Any, "Held.x: may be anything"),
    (object, "Held.x: may be anything"),
    (list, "Held.x[]: may be anything"),
    (tuple, "Held.x[]: may be anything"),
    (tuple[Any, ...], "Held.x[]: may be anything"),
    (dict, "Held.x: an open object"),
    (dict[str, str], "Held.x: an open object"),
    (list[dict[str, int]], "Held.x[]: an open object"),
    (dict[str, str] | None, "Held.x: an open object"),
    (Open, "Held.x: an open object"),
    (tuple[Open, ...], "Held.x[]: an open object"),
    (Loose, "Held: Loose must stand on labkit.ToolInput"),
    (Loose | None, "Held: Loose must stand on labkit.ToolInput"),
    (Lax, "Held: Lax must stand on labkit.ToolInput"),
    (Infinite, "Held: Infinite must stand on labkit.ToolInput"),
    (Record, "Held: Record must stand on labkit.ToolInput"),
    (Wire, "Held: Wire must stand on labkit.ToolInput"),
    (Pair, "Held.x: a list of anything"),
    (tuple[int, str], "Held.x: a list of anything"),
    (Annotated[int, Field(strict=False)], "Held: a field loosens"),
    (tuple[Annotated[int, Field(strict=False)], ...], "Held: a field loosens"),
    (Annotated[float, Field(allow_inf_nan=True)], "Held: a field loosens"),
    (Node, "Held.x.inner: Node holds itself"),
    (Literal[1, 2], "Held.x: only texts can be listed"),
    (Literal[True], "Held.x: only texts can be listed"),
    (Grade, "Held.x: only texts can be listed"),
    (Json, "Held: a field's schema is narrower"),
    (Annotated[Any, WithJsonSchema({"type": "string"})], "Held: a field's schema is narrower"),
    (type, "Held: no JSON Schema can be made of it"),
]


@pytest.mark.parametrize(("annotation", "words"), REFUSED, ids=[str(one) for one, _ in REFUSED])
def test_a_model_that_leaves_anything_open_is_refused(annotation, words):
    """Open, loose and endless arguments are refused when the tool is defined, with the place where it can be told."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool(input=holding(annotation))
    assert str(caught.value).startswith(words)


def test_a_recursive_or_loose_root_is_refused_too():
    """The argument model itself obeys the rules of what it holds."""
    for model, words in ((Node, "Node holds itself"), (Lax, "must stand on"), (Infinite, "must stand on")):
        with pytest.raises(ToolDefinitionError, match=words):
            tool(input=model)


@pytest.mark.parametrize("name", ["", "a b", "read.file", "x" * 65, "工具", "a/b", "a\n"])
def test_a_bad_name_is_refused(name):
    """A tool's name is 1 to 64 letters, digits, '_' and '-': what servers take."""
    with pytest.raises(ToolDefinitionError, match="is no tool name"):
        tool(name)


@pytest.mark.parametrize("name", ["a", "Z", "ReadFile", "x" * 64, "read-file_2"])
def test_a_good_name_is_taken(name):
    """The bounds of a name are inside."""
    assert tool(name).name == name


@pytest.mark.parametrize("model", [Loose, Record, dict, None, "Line", Line(text="an instance"), OpenInput])
def test_the_input_is_a_class_on_the_one_base(model):
    """Anything but a class on ToolInput is refused; OpenInput goes only with a schema that is sent in its place."""
    with pytest.raises(ToolDefinitionError, match=r"must be a class that stands on labkit\.ToolInput"):
        tool(input=model)


def test_effect_and_schema_are_checked():
    """An unknown effect, and a sent schema beside an ordinary model, are refused."""
    known = r"is no effect; use one of \('read', 'write', 'execute', 'external'\)$"
    with pytest.raises(ToolDefinitionError, match=known):
        ToolDefinition("t", "d", Line, "reads", fine)
    with pytest.raises(ToolDefinitionError, match="goes with OpenInput only"):
        tool(schema={"type": "object"})


def test_a_schema_of_its_own_is_sent_beside_an_open_input():
    """The published designs send their own schema and get the object as it came."""
    own = {"type": "object", "properties": {"todos": {"type": "array"}}}
    one = tool(input=OpenInput, schema=own)
    assert one.parameters == own
    assert prepare('{"todos":"[]","more":1}', one).input.given == {"todos": "[]", "more": 1}
    assert prepare("[1]", one).error == "invalid_arguments"
    assert prepare("{", one).error == "invalid_json"


# ---- the texts of faults; notebooks compare them ----

FAULTS = [
    ('{"name":1}', "name: must be a string"),
    ('{"name":null}', "name: must be a string"),
    ('{"count":"5"}', "count: must be an integer"),
    ('{"price":"5"}', "price: must be a number"),
    ('{"sure":1}', "sure: must be true or false"),
    ('{"kind":"c"}', "kind: must be one of 'a', 'b'"),
    ('{"kind":1}', "kind: must be one of 'a', 'b'"),
    ('{"only":"y"}', "only: must be 'z'"),
    ('{"count":0}', "count: must be at least 1"),
    ('{"count":10}', "count: must be at most 9"),
    ('{"price":0}', "price: must be greater than 0.0"),
    ('{"price":100}', "price: must be less than 100.0"),
    ('{"even":3}', "even: must be a multiple of 2"),
    ('{"short":"abcd"}', "short: must be no longer, in characters, than 3"),
    ('{"long":"a"}', "long: must be no shorter, in characters, than 2"),
    ('{"full":""}', "full: must not be blank"),
    ('{"shaped":"b"}', "shaped: must match the pattern ^a+$"),
    ('{"some":[1]}', "some: must be no shorter, in items, than 2"),
    ('{"three":{}}', "three: must be a list"),
    ('{"three":[1,2,3,4]}', "three: has 4 items; 3 are allowed at the most"),
    ('{"three":["a","b","c","d"]}', "three: has 4 items; 3 are allowed at the most"),
    ('{"three":["a","b"]}', "three[0]: must be an integer; three[1]: must be an integer"),
    ('{"three":["a,,,,"]}', "three[0]: must be an integer"),
    (
        '{"three":["a,,,","b","c"]}',
        "three[0]: must be an integer; three[1]: must be an integer; three[2]: must be an integer",
    ),
    ('{"some":["a",2,3]}', "some[0]: must be an integer"),
    ('{"three":"[1]"}', "three: must be a list, not text: send the list itself, not JSON inside a string"),
    ('{"lines":[{}]}', "lines[0].text: is required"),
    ('{"lines":[5]}', "lines[0]: must be an object"),
    (
        '{"lines":["{}"]}',
        "lines[0]: must be an object, not text: send the object itself, not JSON inside a string",
    ),
    ('{"lines":[{"text":"a"},{"text":"a","mood":"odd"}]}', "lines[1].mood: must be one of 'glad', 'sad'"),
    (
        '{"lines":[{"text":"a","colour":"red"}]}',
        "lines[0].colour: is not a known field; the fields are: text, mood",
    ),
    ('{"line":5}', "line: must be an object"),
    ('{"line":{}}', "line.text: is required"),
    ('{"line":{"text":"a","odd":1}}', "line.odd: is not a known field; the fields are: text, mood"),
    ('{"mood":"odd"}', "mood: must be one of 'glad', 'sad'"),
    ('{"ids":["a","b","c"]}', "ids: has 3 items; 2 are allowed at the most"),
    ('{"nmae":"a"}', f"nmae: is not a known field; the fields are: {FIELDS}"),
    ('{"line":{"text":"a","two words":1}}', "line['two words']: is not a known field; the fields are: text, mood"),
    ('{"two words":1}', f"['two words']: is not a known field; the fields are: {FIELDS}"),
    ("null", "arguments: must be an object"),
    ("[]", "arguments: must be an object"),
    ("7", "arguments: must be an object"),
    (
        '"{}"',
        "arguments: must be an object, not text: send the object itself, not JSON inside a string",
    ),
    ('{"name":1,"count":0}', "name: must be a string; count: must be at least 1"),
]


@pytest.mark.parametrize(("arguments", "text"), FAULTS)
def test_a_fault_says_where_what_and_what_is_allowed(arguments, text):
    """Each kind of fault has these very words, on every pydantic."""
    assert faults(arguments) == text


@with_config(ToolInput.model_config)
class Closed(TypedDict):
    """A dict with names, as strict as a model."""

    n: int


TOLD = "3 is odd; " + "give an even one, " * 20


def be_even(number):
    """A check of somebody's own."""
    if number == 5:
        raise AssertionError("5 is no number to give")
    if number % 2:
        raise ValueError(TOLD)
    return number


class Misleading(ToolInput):
    """A field called as the other part of a choice is."""

    Line: "Named"
    rows: tuple[int, ...] = ()


class Shapes(ToolInput):
    """Parts that are no model and no tuple, and a choice of two models."""

    rows: list[int] = Field(default=[])
    named: Closed | None = None
    one: "Line | Named | None" = None
    other: Misleading | Line | None = None
    begun: Annotated[str, Field(min_length=1, pattern="^a")] = "a"
    even: Annotated[int, AfterValidator(be_even)] = 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"rows":{}}', "rows: must be a list"),
        ('{"rows":"[]"}', "rows: must be a list, not text: send the list itself, not JSON inside a string"),
        ('{"named":5}', "named: must be an object"),
        ('{"named":"{}"}', "named: must be an object, not text: send the object itself, not JSON inside a string"),
        ('{"named":{}}', "named.n: is required"),
        (
            '{"one":{"odd":1}}',
            "one.Line.text: is required; one.Line.odd: is not a known field; "
            "one.Named.name: is required; one.Named.odd: is not a known field",
        ),
        (
            '{"other":{"Line":{"name":"n"},"rows":["a"]}}',
            "other.Misleading.rows[0]: must be an integer; other.Line.text: is required; "
            "other.Line.Line: is not a known field; other.Line.rows: is not a known field",
        ),
        ('{"begun":"b"}', "begun: must match the pattern ^a"),
        ('{"begun":""}', "begun: must be no shorter, in characters, than 1"),
        ('{"even":3}', f"even: {TOLD[:200]}"),
        ('{"even":5}', "even: 5 is no number to give"),
    ],
)
def test_other_shapes_have_the_same_words(arguments, text):
    """A list, a dict with names and each part of a choice are told as a tuple and a model are."""
    assert faults(arguments, tool(input=Shapes)) == text


@pytest.mark.parametrize("error", [TypeError("broken"), ZeroDivisionError("broken"), RecursionError("broken")])
def test_a_check_that_breaks_is_a_result_too(error):
    """What a check of somebody's own raises besides a refusal is told as what a handler raises."""

    def check(given):
        raise error

    result = prepare('{"x":1}', tool(input=holding(Annotated[int, AfterValidator(check)])))
    text = f"the arguments could not be checked ({type(error).__name__}: broken); the tool was not run."
    assert result == ToolResult(f"Error [tool_execution_error]: {text}", "tool_execution_error")


def own_error(kind, context=None):
    def check(given):
        raise PydanticCustomError(kind, "one is no good" + "!" * 300, context)

    return check


OWN_WORDS = "one is no good" + "!" * 186


@pytest.mark.parametrize("kind", ["mine", "literal_error", "too_long", "less_than", "value_error"])
@pytest.mark.parametrize("context", [None, {"what": "one"}])
def test_a_checks_own_error_keeps_its_words(kind, context):
    """What the check of a field says is shown, up to 200 characters, under one of pydantic's names too."""
    one = tool(input=holding(Annotated[int, AfterValidator(own_error(kind, context))]))
    assert faults('{"x":1}', one) == f"x: {OWN_WORDS}"


@pytest.mark.parametrize("kind", ["mine", "extra_forbidden"])
def test_a_check_of_all_arguments_keeps_its_words(kind):
    """What the check of a whole model says is shown as said of the arguments."""
    check = model_validator(mode="after")(own_error(kind))
    one = tool(input=create_model("Whole", __base__=ToolInput, __validators__={"all": check}))
    assert faults("{}", one) == f"arguments: {OWN_WORDS}"


def test_a_fault_that_pydantic_finds_and_the_lab_has_no_words_for_is_named():
    """pydantic's own sentences differ between its versions, so the name of the fault stands for them."""
    assert faults('{"x":"no"}', tool(input=holding(UUID))) == "x: does not fit the schema (uuid_parsing)"


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Literal["a"], WithJsonSchema({"const": "a"})],
        Annotated[
            create_model("Empty", __base__=ToolInput), WithJsonSchema({"type": "object", "additionalProperties": False})
        ],
    ],
    ids=["const", "object"],
)
def test_a_schema_of_ones_own_may_be_as_short_as_json_schema_allows(annotation):
    """A const needs no type, and a closed object without fields no `properties`."""
    assert tool(input=holding(annotation)).parameters["properties"]["x"]


def test_a_tool_without_arguments_says_that_it_has_no_fields():
    """Where nothing is known, the known fields are: none."""
    one = tool(input=create_model("Nothing", __base__=ToolInput))
    assert faults('{"x":1}', one) == "x: is not a known field; the fields are: none"


@pytest.mark.parametrize(("count", "named", "more"), [(19, 19, None), (20, 20, None), (21, 20, 1), (50, 20, 30)])
def test_twenty_faults_are_named_and_the_rest_counted(count, named, more):
    """Of more than 20 faults the first 20 are named, then how many more there are."""
    assert MAX_FAULTS == 20
    said = faults(json.dumps({"lines": [{"text": 1}] * count})).split("; ")
    expected = [f"lines[{n}].text: must be a string" for n in range(named)]
    assert said == expected + ([f"and {more} more"] if more else [])


@given(st.integers(51, 300), st.sampled_from([{"text": "a"}, {"text": 1}, {}, 5, "a,b,c", {"text": "a", "x": [1, 2]}]))
def test_an_overlong_list_is_one_fault(count, item):
    """A list beyond its limit is one fault with its count and the limit, whatever is in it."""
    said = faults(json.dumps({"lines": [item] * count, "name": 5}))
    assert said == f"name: must be a string; lines: has {count} items; 50 are allowed at the most"


@pytest.mark.parametrize("long", ["x" * 5_000, "<" * 5_000, "x y" * 2_000])
def test_long_input_is_not_echoed(long):
    """What a model sent is not given back to it: values not at all, unknown names cut after 80 characters."""
    assert long[:40] not in faults(json.dumps({"kind": long}))
    assert faults(json.dumps({long[:80]: 1})).startswith((f"{long[:80]}: is not", f"['{long[:80]}']: is not"))
    said = faults(json.dumps({long: 1}))
    assert long[:80] + "..." in said
    assert long[:81] not in said
    unknown = ToolRegistry((tool(),)).prepare(ToolCall("c1", long))
    assert len(unknown.content) < 200


def test_a_refusal_names_no_version_and_no_address():
    """The text is ours, so it is the same under every pydantic."""
    for arguments, _ in FAULTS:
        text = prepare(arguments).content
        assert "http" not in text
        assert "pydantic" not in text
        assert "type=" not in text


# ---- no coercion ----


@pytest.mark.parametrize("field", ["name", "count", "price", "sure", "kind", "three"])
@pytest.mark.parametrize(
    "value", ["true", "5", "5.5", '"5"', "null", "[5]", "{}", '"a"', "1e400", "-1e400", "NaN", "Infinity", "-Infinity"]
)
def test_nothing_is_coerced(field, value):
    """A value of another kind than the field's is refused, also where one could be made from the other."""
    fits = {
        "name": ['"5"', '"a"'],
        "count": ["5"],
        "price": ["5", "5.5"],
        "sure": ["true"],
        "kind": ['"a"'],
        "three": ["[5]"],
    }
    found = prepare(f'{{"{field}":{value}}}')
    if value in fits[field]:
        assert isinstance(found, PreparedCall)
        got = getattr(found.input, field)
        assert type(got) is {"price": float, "three": tuple}.get(field, type(json.loads(value)))
    else:
        assert found.error == "invalid_arguments"


@pytest.mark.parametrize("value", ["5.0", "5e0", "true", '"5"', "[5]"])
def test_an_integer_is_written_as_one(value):
    """Five is 5: neither 5.0 nor true nor text is an integer here."""
    assert faults(f'{{"count":{value}}}') == "count: must be an integer"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_no_number_is_infinite(value):
    """What is no number in JSON fits no field, wherever it stands."""
    assert faults(f'{{"price":{value}}}') == "price: must be a finite number"
    assert faults(f'{{"three":[{value}]}}') == "three[0]: must be an integer"


# ---- text that is no JSON ----

NO_JSON = [
    "{",
    "}",
    "{'name':'a'}",
    '{"name":"a",}',
    '{"name":"a"} {}',
    '{"name":"a"',
    "name",
    "undefined",
    "```json\n{}\n```",
    "\ufeff{}",
    '{"name":"\\ud800"}',
    '{"\\udfff":1}',
    '{"name":"\x01"}',
    "[" * 100_000,
    '{"name":' * 5_000,
    "[" * 100_000 + "]" * 100_000,
    '{"count":' + "9" * 5_000 + "}",
]


@pytest.mark.parametrize("arguments", NO_JSON, ids=range(len(NO_JSON)))
def test_text_beyond_the_parser_is_invalid_json_in_our_words(arguments):
    """Text that is no JSON, or too much for a parser, has one text: no position, no parser's words."""
    assert prepare(arguments) == ToolResult(
        "Error [invalid_json]: the arguments are not JSON that can be read. "
        "Send one JSON object, complete and plainly nested.",
        "invalid_json",
    )


@given(st.text(st.characters()))
def test_any_text_is_prepared_or_refused(text):
    """No text makes `prepare` raise, and a refusal can be sent."""
    found = prepare(text)
    if isinstance(found, ToolResult):
        assert found.error in ("invalid_json", "invalid_arguments")
        found.content.encode("utf-8")


plain = st.sampled_from(["1", "-0", "1e999", "NaN", "true", "null", '""', '"a,b,c,d"', "[]", "{}", '{"text":1}'])
lists = st.lists(plain, max_size=5).map(lambda parts: f"[{','.join(parts)}]")


@given(st.lists(st.tuples(st.sampled_from([*Order.model_fields, "odd", "a b"]), plain | lists), max_size=4))
def test_any_json_is_prepared_or_refused(pairs):
    """No object makes `prepare` raise, also with a name given twice."""
    text = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in pairs) + "}"
    found = prepare(text)
    assert isinstance(found, PreparedCall) or found.error in ("invalid_json", "invalid_arguments")


@pytest.mark.parametrize(
    "arguments",
    [
        '{"three":[1,2,3,4],"three":"x,,,,,"}',
        '{"three":"x,,,,,","three":["a",2,3,4]}',
        '{"three":["a",2,3,4],"three":[]}',
    ],
)
def test_a_name_given_twice_counts_as_the_last(arguments):
    """Of two values under one name the last one is checked, and a fault speaks of that one."""
    found = prepare(arguments)
    last = json.loads(arguments)["three"]
    if last == []:
        assert found.input.three == ()
    elif isinstance(last, str):
        assert "three: must be a list, not text" in found.content
    else:
        assert "three: has 4 items" in found.content


# ---- the registry ----


def test_an_unknown_tool_is_refused_with_the_known_names():
    """The refusal names what was asked for and what there is."""
    registry = ToolRegistry((tool("one"), tool("two")))
    assert registry.prepare(ToolCall("c1", "three")) == ToolResult(
        "Error [unknown_tool]: there is no tool 'three'; the tools are: one, two.", "unknown_tool"
    )
    empty = ToolRegistry().prepare(ToolCall("c1", "three"))
    assert empty.content == "Error [unknown_tool]: there is no tool 'three'; the tools are: none."


def test_a_taken_name_is_refused_and_replaced_only_on_purpose():
    """Registering a name twice raises, the first stays; with replace=True the new one takes its place in the order."""
    first, other, second = tool("one"), tool("two"), tool("one")
    registry = ToolRegistry((first, other))
    with pytest.raises(ToolDefinitionError, match="'one' is registered already; pass replace=True"):
        registry.register(second)
    assert registry.tools == (first, other)
    assert registry.tools[0] is first
    registry.register(second, replace=True)
    assert registry.tools[0] is second
    assert registry.names == ("one", "two")
    assert [one["function"]["name"] for one in registry.openai_tools()] == ["one", "two"]
    with pytest.raises(ToolDefinitionError):
        ToolRegistry((first, second))


def test_input_is_frozen_and_the_call_unchanged():
    """A handler gets a typed value that cannot be changed, and the call keeps the model's text."""
    prepared = prepare(' {"name" : "a"} ')
    assert prepared.input == Order(name="a")
    assert prepared.call.arguments == ' {"name" : "a"} '
    with pytest.raises(ValueError, match="frozen"):
        prepared.input.name = "b"


def test_no_refusal_calls_the_handler():
    """A handler runs only on what `prepare` passed."""
    ran = []
    one = tool(handler=lambda given: ran.append(given) or ToolResult("ran"))
    registry = ToolRegistry((one,))
    for arguments in [text for text, _ in FAULTS] + NO_JSON:
        assert isinstance(registry.prepare(ToolCall("c1", "order", arguments)), ToolResult)
    assert ran == []
    registry.invoke(registry.prepare(ToolCall("c1", "order")))
    assert ran == [Order()]


# ---- what comes back ----


class Shy:
    """A student's own class."""


class SubText(str):
    """Text that is more than text."""


class SubResult(ToolResult):
    """A result that is more than a result."""


WRONG = [
    None,
    {"n": 3},
    7,
    {"x": float("nan")},
    b"bytes",
    "text",
    ["text"],
    Shy(),
    Shy,
    ("content", None),
    ToolResult(None),
    ToolResult(7),
    ToolResult(b"bytes"),
    ToolResult("lone \ud800"),
    ToolResult("fine", 7),
    ToolResult(SubText("text")),
    SubResult("text"),
]


@pytest.mark.parametrize("back", WRONG, ids=[f"{type(one).__name__}-{n}" for n, one in enumerate(WRONG)])
def test_what_is_no_result_of_text_is_refused(back):
    """A handler's return passes only as a ToolResult of text; the refusal shows neither a repr nor an address."""
    registry = ToolRegistry((tool(handler=lambda given: back),))
    result = registry.invoke(registry.prepare(ToolCall("c1", "order")))
    assert result.error == "invalid_tool_result"
    assert result.content == (
        "Error [invalid_tool_result]: the tool ran, but gave back no ToolResult whose content is text that UTF-8 can "
        "hold. Its effect may have happened; whoever wrote the tool has to return ToolResult(text)."
    )


def test_a_registry_begins_empty():
    """Without tools there are none to send, to name or to call."""
    empty = ToolRegistry()
    assert (empty.tools, empty.names, empty.openai_tools()) == ((), (), [])
    assert empty.prepare(ToolCall("c1", "x")).content.endswith("the tools are: none.")


@pytest.mark.parametrize("back", [ToolResult(""), ToolResult("日本語 \x7f"), ToolResult("no such file", "my_code")])
def test_a_result_of_text_passes_unchanged(back):
    """A handler's own result, also one with a code of its own, is the very object that the loop gets."""
    registry = ToolRegistry((tool(handler=lambda given: back),))
    assert registry.invoke(registry.prepare(ToolCall("c1", "order"))) is back


class Mute(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


def opens_nothing(given):
    """A handler that fails on the disk."""
    with open(os.path.join(os.path.dirname(__file__), "no such file"), encoding="utf-8"):
        pass


def imports_nothing(given):
    """A handler that fails on an import."""
    from labkit import no_such_name

    return no_such_name


def raising(error):
    """A handler that raises this."""

    def handler(given):
        raise error

    return handler


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (raising(ValueError("disk full")), "ValueError: disk full"),
        (raising(ValueError()), "ValueError"),
        (raising(KeyError("x")), "KeyError: 'x'"),
        (raising(Mute()), "Mute"),
        (raising(ValueError("lone \ud800")), "ValueError: lone \ufffd"),
        (raising(RecursionError("too deep")), "RecursionError: too deep"),
        (lambda given: 1 // 0, "ZeroDivisionError: "),
        (lambda given: given.nothing, "AttributeError: 'Order' object has no attribute 'nothing'"),
        (opens_nothing, "FileNotFoundError: No such file or directory"),
        (imports_nothing, "ImportError: cannot import name 'no_such_name' from 'labkit'"),
    ],
)
def test_an_exception_becomes_a_result_with_its_words(handler, words):
    """What a handler raises is a `tool_execution_error` with the exception's words and without our file paths."""
    registry = ToolRegistry((tool(handler=handler),))
    result = registry.invoke(registry.prepare(ToolCall("c1", "order")))
    assert result.error == "tool_execution_error"
    assert result.content.startswith(f"Error [tool_execution_error]: {words}")
    assert os.path.dirname(os.path.dirname(__file__)) not in result.content
    assert "Traceback" not in result.content
    assert ".py" not in result.content


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (raising(ValueError()), "ValueError"),
        (imports_nothing, "ImportError: cannot import name 'no_such_name' from 'labkit'"),
    ],
)
def test_the_result_ends_where_the_exceptions_words_end(handler, words):
    """No colon before nothing, and no trace of the file that was cut out."""
    registry = ToolRegistry((tool(handler=handler),))
    result = registry.invoke(registry.prepare(ToolCall("c1", "order")))
    assert result.content == f"Error [tool_execution_error]: {words}"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_ordinary_exception(error):
    """KeyboardInterrupt and SystemExit go on to the loop, which settles what is open."""
    registry = ToolRegistry((tool(handler=raising(error())),))
    with pytest.raises(error):
        registry.invoke(registry.prepare(ToolCall("c1", "order")))


def test_definitions_and_prepared_calls_are_frozen():
    """Nothing of a tool or of a checked call can be exchanged later."""
    prepared = prepare("{}")
    with pytest.raises(AttributeError):
        prepared.input = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        prepared.tool.handler = None


class Named(ToolInput):
    """A name, required."""

    name: str


class MaybeNested(ToolInput):
    """An optional part that leaves out a field: strict mode takes no such thing."""

    class Part(ToolInput):
        """A part with a default."""

        size: int = 1

    part: Part | None


def test_strict_is_asked_for_only_where_it_is_wanted_and_fits():
    """The registry sends `strict` when asked to, and for no tool in which any field, however deep, may be left out."""
    fits = ToolDefinition("fits", "d", Named, "read", lambda given: ToolResult(""))
    nested = ToolDefinition("nested", "d", MaybeNested, "read", lambda given: ToolResult(""))
    registry = ToolRegistry((fits, nested))
    assert ["strict" in tool["function"] for tool in registry.openai_tools()] == [False, False]
    assert "strict" not in fits.to_openai()["function"]
    assert [tool["function"].get("strict") for tool in registry.openai_tools(strict=True)] == [True, None]


def test_an_optional_part_keeps_its_choices():
    """`X | None` is sent as a choice of two, without titles and references."""
    part = input_schema(MaybeNested)["properties"]["part"]
    assert set(part) == {"anyOf"}
    assert part["anyOf"] == [
        {
            "type": "object",
            "properties": {"size": {"type": "integer", "default": 1}},
            "additionalProperties": False,
        },
        {"type": "null"},
    ]
