"""What labkit raises: the tree in the docstring is the tree of the classes."""

import inspect
import re

from labkit import errors


def test_the_drawn_tree_is_the_tree_of_the_classes():
    """Each class stands in the docstring under its parent, and nothing else stands there."""
    drawn = {}
    above = []  # (column, name) of the classes that the line may hang from
    for line in errors.__doc__.splitlines():
        found = re.match(r"(?P<lead>[ |'-]*)(?P<name>\w+Error)\b", line)
        if found:
            above = [(column, name) for column, name in above if column < len(found["lead"])]
            drawn[found["name"]] = above[-1][1] if above else "Exception"
            above.append((len(found["lead"]), found["name"]))
    classes = {
        name: one.__bases__[0].__name__
        for name, one in inspect.getmembers(errors, inspect.isclass)
        if one.__module__ == errors.__name__
    }
    assert drawn == classes


def test_lines_that_say_so_are_value_errors_too():
    """What the docstring calls a ValueError is one, and the others are not."""
    said = set(re.findall(r"(\w+Error) .*\(also a ValueError\)", errors.__doc__))
    classes = inspect.getmembers(errors, inspect.isclass)
    assert said == {name for name, one in classes if issubclass(one, ValueError)}


def test_evidence_travels_with_the_exception():
    """Errors carry what a program needs beside their words."""
    assert errors.PairingError("no result", 3).index == 3
    assert errors.ScriptError("ran out", 2).requests == 2
    assert errors.SettingsError("missing", ("A", "B")).missing == ("A", "B")
    assert str(errors.PairingError("no result", 3)) == "no result"
