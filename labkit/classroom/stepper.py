"""A run, one round at a time, by buttons: a shell of ipywidgets around the frames.

Read `Stepper` first, then `_press`: each button and each test goes through it. What is shown is computed in
`labkit.frames` and here in plain Python, and handlers only set values; so `stepper.next.click()` does the same without
a browser. The text twin is the frames: a stepper's repr is their whole text.
"""

import html
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ipywidgets as widgets
from traitlets import Int

from labkit.frames import Frame, Frames, cut, framed
from labkit.loop import AgentRunner, Round, RunResult
from labkit.messages import Message
from labkit.permissions import Approver, Ask
from labkit.tools import words_of

SIZES = {"text: normal": "100%", "text: large": "140%", "text: projector": "190%"}
FRAME, BESIDE = "show: the frame", "show: history beside request"

_LATEST = 10
"""So many of the latest messages of a history are shown beside the request; the rest is counted."""


class _Button(widgets.Button):  # type: ignore[misc]
    """A button that drops a click made before the page had the latest answer.

    subtle: a busy kernel queues clicks and comes to them when it is free again. So the page copies the number of
    answers into `seen` as soon as it has it. Each button has its own copy, for only the messages of one widget are sure
    to be read in their order: two may be read by two threads, and an echo can change which. 0: the page copies nothing.
    """

    seen = Int(0).tag(sync=True, echo_update=False)

    def __init__(self, word: str, tooltip: str, act: Callable[[], object], answers: widgets.IntText) -> None:
        super().__init__(description=word, tooltip=tooltip, layout=widgets.Layout(width="auto"))
        self.on_click(lambda _: act())
        self._answers = answers
        widgets.jsdlink((answers, "value"), (self, "seen"))

    def _handle_button_msg(self, widget: Any, content: Any, buffers: Any) -> None:
        if self.seen in (0, self._answers.value):
            super()._handle_button_msg(widget, content, buffers)
        else:  # told again, should an interrupt have come between counting an answer and telling of it
            self._answers.send_state("value")


class Stepper:
    """Buttons over the rounds of a run: first, back, next, last, play, a slider; words on each.

    `Stepper(result)` replays. `Stepper.live(agent, prompt)` drives: each *next* past the end is one model request.
    What a press raises is shown and kept in `.error`, and the stepper stays usable: the next press goes on from the
    history. `.rounds` are the rounds so far, `.frames` their words, `.result` is how the run ended.
    """

    def __init__(self, source: RunResult | Iterable[Round] = (), *, title: str = "") -> None:
        self.rounds: list[Round] = list(source.rounds if isinstance(source, RunResult) else source)
        self.result: RunResult | None = source if isinstance(source, RunResult) else None
        self.error: BaseException | None = None
        self.asking: Ask | None = None
        self.title = title
        self._run: _LiveRun | None = None
        self._framed = framed(self._each_round())
        self._frames = Frames(next(self._framed) for _ in range(len(self.rounds)))
        self._under_way = threading.Lock()
        self._build()
        self._show(0)
        self._draw()

    @classmethod
    def live(
        cls,
        agent: AgentRunner,
        prompt: str | None,
        *,
        answers: Approver | Iterable[str] | None = None,
        title: str = "",
    ) -> "Stepper":
        """A stepper that drives this agent; nothing is asked of the model before the first *next*.

        Where a person has to decide, a scripted answer is taken if there is one: `answers=` (a function, or texts taken
        in turn), else the agent's own approver. Otherwise the stepper asks, with approve and deny; `answers=()` lets
        it ask although the agent has an approver.
        """
        stepper = cls(title=title)
        stepper._run = _LiveRun(agent, prompt, answers)
        stepper._draw()
        return stepper

    # ---- without a browser ----

    @property
    def at(self) -> int:
        """The place of the round shown, from 0."""
        return int(self.slider.value) - 1

    @property
    def frames(self) -> Frames:
        """All rounds so far, in words."""
        return self._frames

    @property
    def text(self) -> str:
        """The frame shown, in words."""
        return repr(self._frames[self.at]) if self._frames else self.status

    def step(self) -> Frame | None:
        """Press *next* and return the frame that is shown then; what went wrong is in `.error`."""
        self.next.click()
        return self._frames[self.at] if self._frames else None

    @property
    def status(self) -> str:
        """One line: which round is shown, and what can be done."""
        if self.error is not None:
            return f"{_words(self.error)}. The rounds so far stay; press next to try again."
        if self.asking is not None:
            return f"A question waits: approve or deny? {_question(self.asking)}"
        live = self._run is not None and self.result is None
        if not self.rounds:
            return "No round yet. Press next: each press is one model request." if live else "There are no rounds."
        place = f"Round {self.at + 1} of {len(self.rounds)}"
        if self.at + 1 < len(self.rounds):
            return f"{place}. Press next to go on."
        if live:
            return f"{place}, the latest. Press next for one more model request."
        stop = self.rounds[-1].stop_reason
        return f"{place}, the last" + (f": the run ended, {stop}." if stop else ".")

    # ---- a press ----

    def _press(self, act: Callable[[], object]) -> None:
        """Do one thing. A second press while it is under way, from a thread or from a double click, does nothing."""
        if not self._under_way.acquire(blocking=False):
            return
        try:
            self.error = None
            try:
                act()
            except BaseException as error:
                self.error = error
                if not isinstance(error, Exception):
                    raise
            finally:
                self._draw()
        finally:
            self._under_way.release()

    def _forward(self) -> None:
        if self.at + 1 < len(self.rounds):
            self._show(self.at + 1)
        elif self.asking is None and self.result is None:
            self._advance(None)

    def _answered(self, answer: str) -> None:
        if self.asking is not None:
            self._advance(answer)

    def _advance(self, answer: object) -> None:
        """Let a live run go on to its next round or question."""
        if self._run is None:
            return
        self.asking = None
        try:
            event = self._run.send(answer)
        finally:
            self._answers.value += 1
        if isinstance(event, Ask):
            self.asking = event
            self._show(len(self.rounds) - 1)
        else:
            self.rounds.append(event._replace(number=len(self.rounds) + 1))
            self._frames = Frames((*self._frames, next(self._framed)))
            self._show(len(self.rounds) - 1)
            self.result = self._run.result

    def _each_round(self) -> Iterator[Round]:
        """The rounds as they come, so that no frame is made twice."""
        at = 0
        while True:
            yield self.rounds[at]
            at += 1

    # ---- the widgets ----

    def _build(self) -> None:
        self._answers = widgets.IntText(1)

        def button(word: str, tooltip: str, act: Callable[[], object]) -> _Button:
            return _Button(word, tooltip, lambda: self._press(act), self._answers)

        self.first = button("first", "Show the first round", lambda: self._show(0))
        self.back = button("back", "Show the round before", lambda: self._show(self.at - 1))
        self.next = button("next", "Show the next round; past the end of a live run, ask the model", self._forward)
        self.last = button("last", "Show the last round so far", lambda: self._show(len(self.rounds) - 1))
        self.play = button("play", "Show the rounds so far, one after the other", self._play_or_pause)
        self.approve = button("approve", "Allow this call", lambda: self._answered("allow"))
        self.deny = button("deny", "Do not allow this call", lambda: self._answered("deny"))
        # subtle: the player has no words on it, but it has the clock, in the browser; so it is hidden and the button
        # above starts it
        self.player = widgets.Play(min=1, max=1, value=1, interval=900, layout=widgets.Layout(display="none"))
        self.slider = widgets.IntSlider(min=1, max=1, value=1, description="round", layout=widgets.Layout(width="18em"))
        self.size = widgets.Dropdown(options=list(SIZES), layout=widgets.Layout(width="auto"))
        self.view = widgets.Dropdown(options=[FRAME, BESIDE], layout=widgets.Layout(width="auto"))
        self.size.tooltip, self.view.tooltip = "Size of the text", "What to show of a round"
        widgets.link((self.player, "value"), (self.slider, "value"))
        self.player.observe(self._name_play, "playing")
        for control in (self.slider, self.size, self.view):
            control.observe(self._moved, "value")
        self.line = widgets.HTML()
        self.pane = widgets.HTML(layout=widgets.Layout(width="100%"))
        self.questions = widgets.HBox([self.approve, self.deny])
        moves = (self.first, self.back, self.next, self.last, self.play, self.player, self.slider)
        self.box = widgets.VBox(
            [_wrapping(*moves, self.size, self.view), self.line, self.questions, self.pane],
            layout=widgets.Layout(width="100%"),
        )

    def _play_or_pause(self) -> None:
        self.player.playing = not self.player.playing

    def _name_play(self, change: Any) -> None:
        self.play.description = "pause" if change["new"] else "play"

    def _moved(self, _: Any) -> None:
        if not self._under_way.locked():  # a press draws once, at its end
            self._draw()

    def _show(self, at: int) -> None:
        """Go to a place; drawing follows from the slider, or from the press."""
        self.slider.max = self.player.max = max(1, len(self.rounds))
        self.slider.value = at + 1  # the slider keeps it between its ends

    def _draw(self) -> None:
        """Show what is known. No control is ever disabled: a browser takes the keyboard away from one that is."""
        can_ask = self._run is not None and self._run.asks_a_person
        self.questions.layout.display = None if can_ask else "none"
        heading = f"<b>{html.escape(self.title)}.</b> " if self.title else ""
        waits = "b" if self.asking is not None or self.error is not None else "span"
        status = f"<{waits}>{html.escape(self.status)}</{waits}>"
        style = f"font-size: {SIZES[self.size.value]}; line-height: 1.4; white-space: normal; overflow-wrap: anywhere"
        self.line.value = f'<div class="lab-status" role="status" style="{style}">{heading}{status}</div>'
        self.pane.value = f'<div class="lab-pane" style="{style}">{self._pane_html()}</div>'

    def _pane_html(self) -> str:
        if not self._frames:
            return ""
        if self.view.value == FRAME:
            return self._frames[self.at]._repr_html_()
        return beside_html(self.rounds[self.at])

    # ---- for readers without a kernel ----

    def __repr__(self) -> str:
        return repr(self._frames) if self._frames else f"Stepper. {self.status}"

    def _repr_html_(self) -> str:
        return self._frames._repr_html_() if self._frames else f"<p>{html.escape(repr(self))}</p>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The live view, and for readers without a kernel all frames, in html and in plain text."""
        return {**self.box._repr_mimebundle_(), "text/plain": repr(self), "text/html": self._repr_html_()}


class _LiveRun:
    """A run under way: its next event, and a new generator where one died of an error."""

    def __init__(self, agent: AgentRunner, prompt: str | None, answers: Approver | Iterable[str] | None) -> None:
        self._agent = agent
        self._prompt = prompt
        self._begins_at = len(agent.history)
        self._drive = agent.drive(prompt)
        self._approver: Approver | None = answers if callable(answers) else agent.approver if answers is None else None
        self._texts = iter(()) if answers is None or callable(answers) else iter(answers)
        self.asks_a_person = self._approver is None
        self.result: RunResult | None = None

    def send(self, answer: object) -> Round | Ask:
        """The next round, or a question that no scripted answer is left for."""
        try:
            event = self._drive.send(answer)
            while isinstance(event, Ask):
                scripted = self._scripted(event)
                if scripted is None:
                    return event
                event = self._drive.send(scripted)
            if event.stop_reason is not None:
                self._fetch_result()
        except BaseException:
            # a generator that raised is dead; the history it left is whole, and holds the prompt if the run had begun
            begun = len(self._agent.history) > self._begins_at
            self._drive = self._agent.drive(None if begun else self._prompt)
            raise
        return event

    def _scripted(self, ask: Ask) -> object:
        if self._approver is None:
            return next(self._texts, None)
        try:
            return self._approver(ask)
        except Exception:
            return "deny"

    def _fetch_result(self) -> None:
        """What the generator returns behind its last round."""
        try:
            next(self._drive)
        except StopIteration as end:
            self.result = end.value


def beside_html(turn: Round) -> str:
    """The history at the time of a request, and the request itself: what is in the request only is named."""
    view = turn.request.messages
    head, tail = len(view.head), len(view) - len(view.tail)
    skipped = range(head, max(head, tail - _LATEST))
    rows = []
    for at, message in enumerate(view):
        if at in skipped:
            if at == head:
                rows.append(_row("...", f"{len(skipped)} earlier messages", f"the same {len(skipped)} messages"))
            continue
        text = html.escape(cut(_said(message), 160))
        both = head <= at < tail
        rows.append(_row(str(at), text if both else "", text if both else f"<b>in the request only:</b> {text}"))
    return (
        f'<section class="tex2jax_ignore"><h4>Request {turn.number}, beside the history at that time</h4>'
        '<table style="width: 100%; table-layout: fixed"><thead><tr><th style="width: 3em; text-align: left">no.</th>'
        '<th style="text-align: left">history</th><th style="text-align: left">request</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></section>"
    )


def _row(*cells: str) -> str:
    style = 'style="text-align: left; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere"'
    return "<tr>" + "".join(f"<td {style}>{cell}</td>" for cell in cells) + "</tr>"


def _said(message: Message) -> str:
    wire = message.to_openai()
    calls = ", ".join(call["function"]["name"] for call in wire.get("tool_calls", ()))
    return " ".join(filter(None, [f"{wire['role']}:", wire["content"], calls and f"calls {calls}"]))


def _question(ask: Ask) -> str:
    """The whole question: nobody should allow what was cut off or can't be seen."""
    return f"{ask.tool.name} wants to run: {cut(ask.call.arguments, None)} (asked because: {ask.reason})"


def _words(error: BaseException) -> str:
    return words_of(error) if isinstance(error, Exception) else type(error).__name__


def _wrapping(*children: Any) -> Any:
    """Widgets in a row that breaks where the window is narrow."""
    return widgets.HBox(children, layout=widgets.Layout(flex_flow="row wrap", width="100%"))


class SideBySide:
    """Several steppers in a row, with one *next* and one *back* for all of them."""

    def __init__(self, steppers: tuple[Stepper, ...]) -> None:
        self.steppers = steppers
        self._answers = widgets.IntText(1)
        for one in steppers:
            one._answers.observe(self._count, "value")
        self.first = self._for_all("first", lambda one: one._show(0))
        self.back = self._for_all("back", lambda one: one._show(one.at - 1))
        self.next = self._for_all("next", lambda one: one._forward())
        self.last = self._for_all("last", lambda one: one._show(len(one.rounds) - 1))
        for one in steppers:
            one.box.layout = widgets.Layout(flex="1 1 18em", min_width="0", width="auto", padding="0 0.8em 0 0")
        row = _wrapping(*[one.box for one in steppers])
        self.box = widgets.VBox([_wrapping(self.first, self.back, self.next, self.last), row])

    def _for_all(self, word: str, act: Callable[[Stepper], object]) -> _Button:
        def press() -> None:
            for one in self.steppers:
                one._press(lambda one=one: act(one))  # type: ignore[misc]

        return _Button(f"{word}, all", f"Press {word} in each of them", press, self._answers)

    def _count(self, _: Any) -> None:
        self._answers.value += 1

    def __repr__(self) -> str:
        return "\n\n".join(f"== {one.title} ==\n{one!r}" for one in self.steppers)

    def _repr_html_(self) -> str:
        return "".join(
            f"<section><h3>{html.escape(one.title)}</h3>{one._repr_html_()}</section>" for one in self.steppers
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {**self.box._repr_mimebundle_(), "text/plain": repr(self), "text/html": self._repr_html_()}


def side_by_side(*runs: Stepper | RunResult) -> SideBySide:
    """Steppers (or finished runs) beside each other. One without a title is named by its place."""
    steppers = tuple(one if isinstance(one, Stepper) else Stepper(one) for one in runs)
    for number, one in enumerate(steppers, 1):
        one.title = one.title or f"run {number}"
        one._draw()
    return SideBySide(steppers)
