"""Notebook 00, start here: a first check, a first hint."""

from typing import Any

from labkit.classroom.checks.common import function_wanted, require


def check_00_1(greet: Any) -> None:
    """greet(name) returns a greeting."""
    function_wanted(greet)
    said = greet("Ada")
    require(said is not None, "returns")
    require(isinstance(said, str), "shape", wanted="function_of_text")
    require("Ada" in said, "uses_the_name")
    require("Ben" in greet("Ben") and "Ada" not in greet("Ben"), "uses_the_name")
    require(said == "Hello, Ada!" and greet("Ben") == "Hello, Ben!", "exact")


def check_00_2(word: Any) -> None:
    """The word that the hints give."""
    require(isinstance(word, str), "shape", wanted="text")
    require(word.strip() != "", "empty")
    require(word.strip().lower() == "snapshot", "another_word", word=word)
    require(word == "snapshot", "spelling")
