"""The stepper from its Python side: what each press does, what is shown, what readers without a kernel get."""

import pytest

pytest.importorskip("ipywidgets", reason="the stepper needs the `lab` extra: python lab.py")
from helpers import REMINDER, Lab, plan, read

from labkit import P05, ScriptedModelClient, TodoTracker, build_agent, call, say
from labkit.classroom.stepper import BESIDE, FRAME, SIZES, Stepper, side_by_side
from labkit.frames import frames_of

VIEW = "application/vnd.jupyter.widget-view+json"
WRITE = call("write_file", path="new.txt", content="x")


@pytest.fixture
def result(folder):
    """A run of six rounds, with a reminder in the fifth request."""
    return Lab(folder, [plan("a"), read(), read(), read(), plan("b"), say("done")]).result


def agent_of(folder, *script, **parts):
    """An agent and its model."""
    model = ScriptedModelClient(script)
    return build_agent(P05, model, workspace=folder, **parts), model


def test_each_button_goes_where_its_word_says(result):
    """first, back, next, last and the slider move through the frames, and stop at both ends."""
    stepper = Stepper(result)
    frames = frames_of(result)
    places = [("next", 1), ("next", 2), ("back", 1), ("last", 5), ("next", 5), ("first", 0), ("back", 0)]
    for word, at in places:
        getattr(stepper, word).click()
        assert (stepper.at, stepper.text) == (at, repr(frames[at]))
        assert frames[at].title in stepper.pane.value
        assert f"Round {at + 1} of 6" in stepper.line.value
    stepper.slider.value = 3
    assert frames[2].title in stepper.pane.value


def test_every_control_has_words(result):
    """No control is an icon alone, and none is ever disabled, since a disabled one loses the keyboard."""
    stepper = Stepper(result)
    buttons = [stepper.first, stepper.back, stepper.next, stepper.last, stepper.play, stepper.approve, stepper.deny]
    assert [one.description for one in buttons] == ["first", "back", "next", "last", "play", "approve", "deny"]
    assert all(one.tooltip for one in [*buttons, stepper.size, stepper.view])
    assert stepper.slider.description == "round"
    assert stepper.player.layout.display == "none"
    stepper.last.click()
    assert not any(one.disabled for one in buttons)


def test_play_starts_and_pauses_the_recorded_rounds(result):
    """play runs over the recorded rounds, ends with the last, and its word says what the next press does."""
    stepper = Stepper(result)
    assert (stepper.player.min, stepper.player.max, stepper.player.repeat) == (1, 6, False)
    stepper.play.click()
    assert (stepper.player.playing, stepper.play.description) == (True, "pause")
    stepper.player.value = 4  # as the browser's clock does
    assert stepper.at == 3
    stepper.play.click()
    assert (stepper.player.playing, stepper.play.description) == (False, "play")


def test_the_reminder_is_in_the_request_and_not_in_the_history(result):
    """History beside request: the reminder stands in the second column only, and the system prompt too."""
    stepper = Stepper(result)
    stepper.view.value = BESIDE
    stepper.slider.value = 5
    (row,) = [row for row in stepper.pane.value.split("<tr>") if REMINDER in row]
    _, history, request = [cell.split(">", 1)[1].split("</td>")[0] for cell in row.split("<td")[1:]]
    assert history == ""
    assert request == f"<b>in the request only:</b> system: {REMINDER}"
    stepper.slider.value = 6
    assert REMINDER not in stepper.pane.value
    stepper.view.value = FRAME
    assert frames_of(result)[5].title in stepper.pane.value


def test_of_a_long_history_the_latest_is_shown_and_the_rest_counted(folder):
    """Beside the request stand the last ten messages of the history; of those before them their number is said."""
    stepper = Stepper(Lab(folder, [*[read()] * 9, say("done")]).result)
    stepper.view.value = BESIDE
    stepper.last.click()
    rows = stepper.pane.value.split("<tr>")[2:]  # behind the heading
    assert len(rows) == 1 + 1 + 10 + len(stepper.rounds[-1].request.messages.tail)
    assert "9 earlier messages</td>" in rows[1]
    stepper.first.click()
    assert "earlier messages" not in stepper.pane.value


def test_each_round_is_put_into_words_once(folder, monkeypatch):
    """However often rounds are shown, each message is measured once: a long run stays smooth."""
    agent, _ = agent_of(folder, *[read()] * 30, say("done"), max_rounds=31)
    measured = []
    monkeypatch.setattr("labkit.frames._size", lambda message: measured.append(1) or 1)
    stepper = Stepper.live(agent, "go")
    for _ in range(31):
        stepper.next.click()
        stepper.back.click()
        stepper.last.click()
    reminders = sum(len(one.request.messages.tail) for one in stepper.rounds)
    assert len(measured) == len(agent.history) + reminders  # the system prompt too, the last reply not


def test_the_text_can_be_made_large(result):
    """Each size sets the size of the pane's text."""
    stepper = Stepper(result)
    for words, size in SIZES.items():
        stepper.size.value = words
        assert f"font-size: {size};" in stepper.pane.value


def test_each_next_past_the_end_is_one_request(folder):
    """A live stepper asks the model nothing before the first next, and once for each next; then the run has ended."""
    agent, model = agent_of(folder, read(), plan("a"), say("done"))
    stepper = Stepper.live(agent, "go")
    assert len(model.requests) == 0
    for count in (1, 2, 3):
        frame = stepper.step()
        assert (len(model.requests), frame.number) == (count, count)
    stepper.first.click()
    stepper.next.click()
    stepper.last.click()
    stepper.next.click()
    assert len(model.requests) == 3
    assert stepper.result.stop_reason == "completed"
    assert repr(stepper) == repr(frames_of(stepper.result))


def test_approve_runs_the_call_and_deny_does_not(folder):
    """A question waits in the widget until approve or deny is pressed; next does not answer it."""
    agent, model = agent_of(folder, WRITE, call("write_file", path="other.txt", content="x"), say("done"))
    stepper = Stepper.live(agent, "go")
    stepper.next.click()
    stepper.next.click()
    assert stepper.asking.call.name == "write_file"
    assert "approve or deny? write_file" in stepper.line.value
    assert not (folder / "new.txt").exists()
    stepper.approve.click()
    assert (folder / "new.txt").exists()
    stepper.next.click()
    stepper.deny.click()
    stepper.deny.click()
    assert not (folder / "other.txt").exists()
    assert [one.decision for this in stepper.rounds for one in this.settled] == ["allow", "deny"]
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("answers", "approver", "decision"),
    [
        (["allow"], None, "allow"),
        (["deny"], lambda ask: "allow", "deny"),
        (lambda ask: "allow", None, "allow"),
        (lambda ask: 1 / 0, None, "deny"),
        (None, lambda ask: "allow", "allow"),
        (None, lambda ask: "deny", "deny"),
        ((), lambda ask: "allow", None),
        (None, None, None),
    ],
)
def test_a_scripted_answer_comes_first(folder, answers, approver, decision):
    """answers=, else the agent's approver, answers at once; where neither does, the widget asks."""
    agent, _ = agent_of(folder, WRITE, say("done"), approver=approver)
    stepper = Stepper.live(agent, "go", answers=answers)
    stepper.next.click()
    if decision is None:
        assert stepper.asking is not None
        assert stepper.questions.layout.display != "none"
    else:
        assert stepper.rounds[0].settled[0].decision == decision


def test_the_question_shows_the_whole_call(folder):
    """What is to be approved is shown to its end, unseen characters as escapes and markup as text."""
    agent, _ = agent_of(folder, call("write_file", path="n.txt", content="x" * 2000 + "<b>\u202e</b> last words"))
    stepper = Stepper.live(agent, "go")
    stepper.next.click()
    assert r"xxx&lt;b&gt;\u202e&lt;/b&gt; last words" in stepper.line.value


def test_after_an_error_next_goes_on_from_the_history(folder):
    """A request that failed is shown, the rounds before it stay, and the next press makes the request again."""
    agent, model = agent_of(folder, read(), ConnectionError("the line is dead"), read(), say("done"))
    stepper = Stepper.live(agent, "go")
    stepper.step()
    stepper.step()
    assert isinstance(stepper.error, ConnectionError)
    assert "ConnectionError: the line is dead" in stepper.line.value
    assert len(stepper.rounds) == 1
    stepper.step()
    assert stepper.error is None
    stepper.step()
    assert [frame.number for frame in stepper.frames] == [1, 2, 3]
    assert [m.content for m in agent.history if m.to_openai()["role"] == "user"] == ["go"]
    assert "the first" in stepper.frames[1].parts[0].heading
    assert len(model.requests) == 4
    assert stepper.result.stop_reason == "completed"


def test_an_error_in_the_first_request_loses_no_prompt(folder):
    """Where the first request fails, the next press still sends the prompt, once."""
    agent, model = agent_of(folder, ConnectionError("no"), say("done"))
    stepper = Stepper.live(agent, "go")
    stepper.step()
    stepper.step()
    assert stepper.result.text == "done"
    assert [m.content for m in model.requests[1].messages][1:] == ["go"]


def test_a_run_that_did_not_begin_is_begun_again(folder):
    """Where an error comes before the prompt is in the history, the next press begins the run anew."""

    class Late(TodoTracker):
        ready = False

        def begin_run(self):
            if not self.ready:
                self.ready = True
                raise OSError("not yet")

    agent, model = agent_of(folder, say("done"), todos=Late())
    stepper = Stepper.live(agent, "go")
    stepper.step()
    assert "OSError: not yet" in stepper.line.value
    stepper.step()
    assert [m.content for m in model.requests[0].messages][1:] == ["go"]


def test_an_interrupt_goes_on_to_the_caller_and_leaves_the_stepper_usable(folder):
    """KeyboardInterrupt is not swallowed; it is kept and shown, and the next press works."""
    agent, _ = agent_of(folder, KeyboardInterrupt, say("done"))
    stepper = Stepper.live(agent, "go")
    with pytest.raises(KeyboardInterrupt):
        stepper.step()
    assert "KeyboardInterrupt" in stepper.line.value
    stepper.step()
    assert stepper.result.text == "done"


def from_the_page(widget, **data):
    """A message as a page sends it."""
    widget._handle_msg({"content": {"data": data}, "buffers": []})


def click(button):
    from_the_page(button, method="custom", content={"event": "click"})


def seen(*buttons):
    """What a page tells of the answers that it has."""
    for button in buttons:
        told = {"seen": button._answers.value}
        from_the_page(button, method="update", state=told, buffer_paths=[])


def test_a_click_made_before_the_page_had_the_latest_answer_is_dropped(folder):
    """A busy kernel reads such a click when the step is done; a click in Python, which waits for its step, counts."""
    agent, model = agent_of(folder, read(), KeyboardInterrupt, WRITE, read(), say("done"))
    stepper = Stepper.live(agent, "go")
    buttons = (stepper.next, stepper.approve, stepper.deny)
    seen(*buttons)
    for _ in range(3):
        click(stepper.next)
    assert (stepper.at, len(model.requests)) == (0, 1)
    seen(*buttons)
    with pytest.raises(KeyboardInterrupt):
        click(stepper.next)
    click(stepper.next)
    assert (stepper.at, len(model.requests)) == (0, 2)
    seen(*buttons)
    for button in buttons:
        click(button)
    assert stepper.asking is not None
    seen(*buttons)
    for button in (stepper.approve, stepper.deny, stepper.next):
        click(button)
    assert (stepper.at, len(model.requests)) == (1, 3)
    stepper.next.click()
    stepper.next.click()
    assert stepper.result.text == "done"


def test_a_click_for_all_counts_once_the_page_has_the_answers_of_all(folder):
    """'next, all' drives live runs one request each for each click that was made on what is shown."""
    agents = [agent_of(folder, read(), read(), say("done")) for _ in range(2)]
    both = side_by_side(*[Stepper.live(agent, "go") for agent, _ in agents])
    for count in (1, 2):
        seen(both.next)
        for _ in range(3):
            click(both.next)
        assert [len(model.requests) for _, model in agents] == [count, count]
    seen(both.next, both.steppers[0].next)
    click(both.steppers[0].next)
    click(both.next)
    assert [len(model.requests) for _, model in agents] == [3, 2]


def test_a_page_that_missed_an_answer_is_told_again(folder, monkeypatch):
    """An interrupt between counting an answer and telling the page of it costs a click, not the stepper."""
    agent, model = agent_of(folder, read(), read(), say("done"))
    stepper = Stepper.live(agent, "go")
    seen(stepper.next)
    click(stepper.next)
    told = []
    monkeypatch.setattr(type(stepper._answers), "send_state", lambda self, key=None: told.append((self, key)))
    click(stepper.next)
    assert told == [(stepper._answers, "value")]
    assert len(model.requests) == 1


def test_clicks_on_a_replay_all_count(result):
    """Nothing is waited for in a replay, so clicks come as fast as they like."""
    stepper = Stepper(result)
    seen(stepper.next)
    for _ in range(3):
        click(stepper.next)
    assert stepper.at == 3
    many = side_by_side(stepper)
    seen(many.back)
    click(many.back)
    click(many.back)
    assert stepper.at == 1


def test_clicks_count_where_a_page_tells_nothing_of_what_it_has(folder):
    """A front end without links between widgets never says what it has seen; its buttons work all the same."""
    agent, _ = agent_of(folder, read(), say("done"))
    stepper = Stepper.live(agent, "go")
    for _ in range(2):
        click(stepper.next)
    assert stepper.result.text == "done"


def test_the_stored_form_is_complete(result):
    """The bundle has the live view, and all frames as plain text and as HTML, whatever place is shown."""
    stepper = Stepper(result)
    stepper.next.click()
    bundle = stepper._repr_mimebundle_()
    assert bundle["text/plain"] == repr(frames_of(result))
    assert bundle["text/html"] == frames_of(result)._repr_html_()
    assert VIEW in bundle


def test_a_live_steppers_stored_text_says_to_press_next(folder):
    """Before its first round a live stepper tells a reader of the file what it is for."""
    agent, _ = agent_of(folder, say("done"))
    bundle = Stepper.live(agent, "go")._repr_mimebundle_()
    assert bundle["text/plain"] == "Stepper. No round yet. Press next: each press is one model request."
    assert "Press next" in bundle["text/html"]


def test_no_rounds_are_no_trouble():
    """A stepper of nothing can be pressed everywhere."""
    stepper = Stepper([])
    for button in (stepper.next, stepper.back, stepper.last, stepper.first, stepper.approve, stepper.deny):
        button.click()
    assert stepper.error is None
    assert "There are no rounds." in stepper.line.value


def test_side_by_side_moves_all(folder, result):
    """One press of 'next, all' moves each by one; each can still be moved alone; the text holds all, with titles."""
    short = Lab(folder, [read(), say("done")]).result
    three = side_by_side(Stepper(result, title="long"), short, Stepper(short, title="<b>"))
    for _ in range(2):
        three.next.click()
    assert [one.at for one in three.steppers] == [2, 1, 1]
    three.steppers[0].back.click()
    three.back.click()
    assert [one.at for one in three.steppers] == [0, 0, 0]
    three.last.click()
    three.first.click()
    assert [one.at for one in three.steppers] == [0, 0, 0]
    bundle = three._repr_mimebundle_()
    assert bundle["text/plain"] == "\n\n".join(
        f"== {title} ==\n{frames_of(run)!r}" for title, run in [("long", result), ("run 2", short), ("<b>", short)]
    )
    assert "<h3>&lt;b&gt;</h3>" in bundle["text/html"]
    assert VIEW in bundle


def test_side_by_side_drives_live_runs_and_shows_each_error_in_its_place(folder):
    """Live agents go one request each; where one fails, the others go on."""
    good, model = agent_of(folder, read(), say("done"))
    bad, _ = agent_of(folder)
    both = side_by_side(Stepper.live(bad, "go"), Stepper.live(good, "go"))
    both.next.click()
    both.next.click()
    assert "ScriptError" in both.steppers[0].line.value
    assert both.steppers[1].result.text == "done"
    assert len(model.requests) == 2
