"""Notebook 04, wrong arguments: a strict model, a stable text, strip before length, tests for a loop."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labkit.classroom.checks.broken import judge_tests
from labkit.classroom.checks.common import NotYet, function_wanted, require

LOOP_MUTANTS = (
    "coercion",
    "runs_when_refused",
    "unknown_tool_raises",
    "handler_escapes",
    "missing_pairing",
    "results_reversed",
    "one_round_more",
)


def _accepts(model: type[BaseModel], text: str) -> bool:
    try:
        model.model_validate_json(text)
    except ValidationError:
        return False
    return True


def check_04_1(model: Any) -> None:
    """TimerInput: strict, closed, frozen, bounded."""
    require(isinstance(model, type) and issubclass(model, BaseModel), "shape", wanted="base_model")
    require(_accepts(model, '{"minutes": 5, "label": "tea"}'), "accepts_right_ones")
    require(_accepts(model, '{"minutes": 1, "label": "x"}'), "bounds")
    require(_accepts(model, '{"minutes": 180, "label": "x"}'), "bounds")
    require(not _accepts(model, '{"minutes": "5", "label": "tea"}'), "no_text_for_a_number")
    require(not _accepts(model, '{"minutes": true, "label": "tea"}'), "no_truth_for_a_number")
    require(not _accepts(model, '{"minutes": 5, "label": 5}'), "no_number_for_a_text")
    require(not _accepts(model, '{"minutes": 5, "label": "tea", "sound": "bell"}'), "closed")
    require(not _accepts(model, '{"minutes": 5}') and not _accepts(model, '{"label": "tea"}'), "required")
    require(not any(_accepts(model, f'{{"minutes": {n}, "label": "tea"}}') for n in (0, -1, 181)), "bounds")
    made: Any = model.model_validate_json('{"minutes": 5, "label": "tea"}')
    try:
        made.minutes = 6
    except ValidationError:
        return
    raise NotYet("frozen")


class _Fault:
    """An error of another version of pydantic: the same faults, other words."""

    def __init__(self, version: str, places: list[tuple[tuple[Any, ...], str]], given: str) -> None:
        self._version = version
        self._places = places
        self._given = given

    def errors(self, **_: Any) -> list[dict[str, Any]]:
        """As pydantic tells them."""
        return [
            {
                "type": kind,
                "loc": place,
                "msg": f"Words of version {self._version}",
                "input": self._given,
                "url": f"https://errors.pydantic.dev/{self._version}/v/{kind}",
                "ctx": {"version": self._version},
            }
            for place, kind in self._places
        ]

    def error_count(self) -> int:
        """How many faults."""
        return len(self._places)

    def __str__(self) -> str:
        return str(self.errors())


class _Booking(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    guests: Annotated[int, Field(ge=1)]
    name: str


def check_04_2(fault_text: Any) -> None:
    """fault_text(error): each place and kind, in our words, the same on each version of pydantic."""
    function_wanted(fault_text)
    places: list[tuple[tuple[Any, ...], str]] = [(("guests",), "int_type"), (("todos", 1, "status"), "missing")]
    first, second = (fault_text(_Fault(version, places, "x" * 500)) for version in ("2.12", "2.15"))
    require(isinstance(first, str), "shape", wanted="function_of_text")
    require("guests" in first, "names_places")
    require("status" in first and "1" in first and "todos" in first, "all_faults")
    require("x" * 100 not in first, "no_echo")
    require("http" not in first, "no_address")
    require(first == second, "same_on_each_version")
    require("int_type" in first and "missing" in first, "names_kinds")
    try:
        _Booking.model_validate_json('{"guests": "4", "nmae": "Ada"}')
    except ValidationError as error:
        text = fault_text(error)
        require(all(word in text for word in ("guests", "name", "nmae", "extra_forbidden")), "all_faults")
    require(first == "guests: int_type; todos.1.status: missing", "form")


def check_04_3(clean: Any) -> None:
    """clean(content): stripped, then measured."""
    function_wanted(clean)

    def refused(text: str) -> bool:
        try:
            clean(text)
        except ValueError:
            return True
        return False

    require(not refused("ship"), "accepts_right_ones")
    require(clean("ship") is not None, "returns_it")
    require(clean("  ship\n") == "ship", "strips")
    require(clean("read the file") == "read the file", "inner_space_stays")
    require(refused(""), "refuses_empty")
    require(refused("   ") and refused("\n\t"), "refuses_blank")
    require(refused("x" * 21), "refuses_long")
    require(not refused("x" * 20), "twenty_are_fine")
    require(not refused("   " + "x" * 20 + "   "), "measures_what_is_left")


def check_04_4(tests: Any) -> dict[str, object]:
    """Tests that find each broken loop."""
    return judge_tests(tests, LOOP_MUTANTS)
