"""Notebook 09, three designs: the two other reminders as plug-ins, and a choice that a row defends."""

from typing import Any

from labkit.classroom.checks.common import copies, folder, line, observer_wanted, read, require, run, ten_requests
from labkit.classroom.compare import comparison
from labkit.clients.scripted import ScriptedModelClient, call, say
from labkit.profiles import P04, build_agent

REMINDER = "<reminder>Update your todos.</reminder>"


def _plug_in(observer_class: Any, tool: str, pattern: str) -> None:
    observer = observer_wanted(observer_class)
    ran = run(ten_requests(), profile=P04, observers=[observer])
    require(copies([one for request in ran.requests for one in request.messages], REMINDER), "reminds")
    require(copies(ran.result.history, REMINDER), "stays")
    held = [one for one in ran.result.history if one.content == REMINDER]
    require(all(one.to_openai()["role"] == "user" for one in held), "user_message")
    found = line(ran.requests, REMINDER)
    require(found[:4] == "0001", "fourth_request")
    require(found == pattern, "pattern", found=found)
    three = run([[read()] * 3, [read()] * 3, say("done")], profile=P04, observers=[observer_class()])
    require(line(three.requests, REMINDER) == "000", "rounds_not_calls")
    updated = run([read(), read(), call(tool), read(), read(), say("done")], profile=P04, observers=[observer_class()])
    require(line(updated.requests, REMINDER) == "000000", "update_clears")
    model = ScriptedModelClient([read(), read(), say("a"), read(), read(), say("b")])
    with folder() as place:
        agent = build_agent(P04, model, workspace=place, observers=[observer_class()])
        agent.run("go")
        agent.run("go on")
    require(line(model.requests, REMINDER) == "000000", "per_run")


def check_09_1(observer_class: Any) -> None:
    """Day55Reminder: it stays in the history, and the count begins anew after it."""
    _plug_in(observer_class, "todo_write", "0001112223")


def check_09_2(observer_class: Any) -> None:
    """S03Reminder: it stays, and comes again each round."""
    _plug_in(observer_class, "todo", "0001234567")


def check_09_3(choice: Any) -> None:
    """A design, a product, and the row of the comparison that speaks for it."""
    keys = {"product", "design", "question", "cell", "because"}
    right = isinstance(choice, dict) and set(choice) == keys and all(isinstance(one, str) for one in choice.values())
    require(right, "shape", wanted="dict_of_five_texts")
    table = comparison()
    require(choice["design"] in table.columns[1:], "one_of_three", design=choice["design"])
    rows = {row[0]: row[1:] for row in table.rows}
    require(choice["question"] in rows, "a_row", question=choice["question"])
    row = rows[choice["question"]]
    require(len(set(row)) > 1, "a_row_that_differs")
    cell = row[table.columns.index(choice["design"]) - 1]
    stated = " ".join(choice["cell"].replace(" / ", " ").split())
    require(len(stated) >= 4 and stated in " ".join(cell.split()), "what_the_run_says")
    require(len(choice["product"].split()) >= 2, "a_product")
    require(len(choice["because"].split()) >= 5, "because")
