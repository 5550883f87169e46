"""A run, one round at a time, by buttons: a shell of ipywidgets around the frames.

Read `Stepper` first. What it shows is computed in `labkit.frames` and here in plain Python; each handler sets values,
so `stepper.next.click()` does the same without a browser. Its text twin is the frames: its repr is their whole text.
"""

import html
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

import ipywidgets as widgets

from labkit.frames import Frames, cut, frames_of
from labkit.loop import AgentRunner, Round, RunResult
from labkit.messages import Message
from labkit.permissions import Ask

_Drive = Generator[Round | Ask, object, RunResult]
_SIZES = {"text: normal": "100%", "text: large": "140%", "text: projector": "190%"}


class Stepper:
    """Buttons over the rounds of a run: first, back, next, last, play, a slider; words on each.

    `Stepper(result)` replays. `Stepper.live(agent, prompt)` drives: each *next* past the end is one model request. What
    a step raises is shown and kept in `.error`, and the stepper stays usable: the next press goes on from the history.
    `.rounds` are the rounds so far, `.result` is how the run ended.
    """

    def __init__(self, source: RunResult | Iterable[Round] = (), *, title: str = "") -> None:
        self.rounds: list[Round] = list(source.rounds if isinstance(source, RunResult) else source)
        self.result: RunResult | None = source if isinstance(source, RunResult) else None
        self.error: BaseException | None = None
        self.asking: Ask | None = None
        self.title = title
        self._drive: _Drive | None = None
        self._go_on: Callable[[], _Drive] | None = None
        self._answer: Any = None
        self._busy = False
        self._frames: Frames = frames_of(self.rounds)
        self._build()
        self._show(0)

    @classmethod
    def live(cls, agent: AgentRunner, prompt: str | None, *, ask: bool = True, title: str = "") -> "Stepper":
        """A stepper that drives this agent. Where a person has to decide it shows approve and deny.

        With `ask=False` the agent's own approver answers (with none: deny), so a cell runs unattended.
        """
        stepper = cls(title=title)
        take = agent.drive if ask else partial(_rounds_as_drive, agent)
        stepper._drive = take(prompt)
        stepper._go_on = partial(take, None)
        stepper._show(0)
        return stepper

    # ---- what can be asked of it without a browser ----

    @property
    def at(self) -> int:
        """The place of the round shown, from 0."""
        return int(self.slider.value)

    @property
    def frames(self) -> Frames:
        """All rounds so far, in words."""
        return self._frames

    @property
    def text(self) -> str:
        """The frame shown, in words."""
        return repr(self._frames[self.at]) if self._frames else "press next: each press is one model request"

    @property
    def status(self) -> str:
        """One line: which round, and what can be done."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}. The rounds so far stay; press next to try again."
        if self.asking is not None:
            ask = self.asking
            return f"Question: {ask.tool.name} wants to run {cut(ask.call.arguments)} ({ask.reason}). Approve or deny?"
        if not self.rounds:
            return "No round yet: press next." if self._drive else "There are no rounds."
        more = "press next for one more request" if self._drive else "this is the whole run"
        return f"Round {self.at + 1} of {len(self.rounds)}; {more}."

    # ---- the widgets ----

    def _build(self) -> None:
        def button(word: str, tooltip: str, act: Any) -> Any:
            made = widgets.Button(description=word, tooltip=tooltip, layout=widgets.Layout(width="auto"))
            made.on_click(lambda _: self._once(act))
            return made

        self.first = button("first", "Show the first round", lambda: self._show(0))
        self.back = button("back", "Show the round before", lambda: self._show(self.at - 1))
        self.next = button("next", "Show the next round; past the end of a live run, ask the model", self._forward)
        self.last = button("last", "Show the last round", lambda: self._show(len(self.rounds) - 1))
        self.approve = button("approve", "Allow this call", lambda: self._answered("allow"))
        self.deny = button("deny", "Do not allow this call", lambda: self._answered("deny"))
        self.play = widgets.Play(min=0, max=0, interval=900, tooltip="Play the recorded rounds")
        self.slider = widgets.IntSlider(min=0, max=0, description="round", readout=False, continuous_update=True)
        self.size = widgets.Dropdown(options=list(_SIZES), tooltip="Size of the text")
        self.view = widgets.Dropdown(options=["the frame", "history beside request"], tooltip="What to show")
        widgets.link((self.play, "value"), (self.slider, "value"))
        for control in (self.slider, self.size, self.view):
            control.observe(lambda _: self._draw(), "value")
        self.line = widgets.HTML()
        self.pane = widgets.HTML()
        self.questions = widgets.HBox([self.approve, self.deny])
        wrap = widgets.Layout(flex_flow="row wrap")
        moves = widgets.HBox([self.first, self.back, self.next, self.last, self.play, self.slider], layout=wrap)
        self.box = widgets.VBox(
            [moves, widgets.HBox([self.size, self.view], layout=wrap), self.line, self.questions, self.pane]
        )

    def _once(self, act: Any) -> None:
        """One act at a time: a second click while a step is under way does nothing."""
        if self._busy:
            return
        self._busy = True
        self.error = None
        try:
            act()
        except Exception as error:
            self.error = error
        finally:
            self._busy = False
        self._draw()

    def _forward(self) -> None:
        if self.at + 1 < len(self.rounds):
            self._show(self.at + 1)
        elif self.asking is None and self._drive is not None:
            self._advance(None)

    def _answered(self, answer: str) -> None:
        if self.asking is not None:
            self._advance(answer)

    def _advance(self, answer: object) -> None:
        """Let the run go on to its next round or question."""
        assert self._drive is not None
        self.asking = None
        try:
            event = self._drive.send(answer)
        except StopIteration as end:
            self.result, self._drive = end.value, None
            return
        except BaseException:
            assert self._go_on is not None
            self._drive = self._go_on()  # a generator that raised is dead; the history it left is whole
            raise
        if isinstance(event, Ask):
            self.asking = event
            return
        self.rounds.append(event)
        self._frames = frames_of(self.rounds)
        if event.stop_reason is not None:  # nothing more to ask for: fetch the result, so that next knows the end
            self._advance(None)
        self._show(len(self.rounds) - 1)

    # ---- drawing ----

    def _show(self, at: int) -> None:
        last = max(0, len(self.rounds) - 1)
        self.slider.max = self.play.max = last
        self.slider.value = min(max(at, 0), last)
        self._draw()

    def _draw(self) -> None:
        live = self._drive is not None and self.asking is None
        self.first.disabled = self.back.disabled = self.at == 0
        self.last.disabled = self.at + 1 >= len(self.rounds)
        self.next.disabled = self.last.disabled and not live
        self.questions.layout.display = "flex" if self.asking is not None else "none"
        heading = f"{html.escape(self.title)}. " if self.title else ""
        self.line.value = f'<p class="lab-status" role="status">{heading}{html.escape(self.status)}</p>'
        self.pane.value = (
            f'<div class="lab-pane" style="font-size: {_SIZES[self.size.value]}">{self._pane_html()}</div>'
        )

    def _pane_html(self) -> str:
        if not self._frames:
            return f"<p>{html.escape(self.text)}</p>"
        if self.view.value == "the frame":
            return self._frames[self.at]._repr_html_()
        return beside_html(self.rounds[self.at])

    def __repr__(self) -> str:
        return repr(self._frames) if self._frames else f"Stepper: {self.text}"

    def _repr_html_(self) -> str:
        return self._frames._repr_html_() if self._frames else f"<p>{html.escape(repr(self))}</p>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The live view, and for readers without a kernel all frames, in html and in plain text."""
        return {**self.box._repr_mimebundle_(), "text/plain": repr(self), "text/html": self._repr_html_()}


def _rounds_as_drive(agent: AgentRunner, prompt: str | None) -> _Drive:
    """The rounds, each Ask answered by the agent's approver."""
    return (yield from agent.rounds(prompt))


def beside_html(turn: Round) -> str:
    """The history at the time of a request, and the request: what is in one only is named."""
    messages = tuple(turn.request.messages)
    once = len(messages) - len(turn.request.messages.tail)
    head = turn.request.messages.head
    rows = []
    for index, message in enumerate(messages):
        where = "in the request only" if index >= once or index < len(head) else ""
        text = html.escape(cut(_said(message), 160))
        kept = "" if where else text
        mark = f"<b>{where}: </b>" if where else ""
        rows.append(f"<tr><td>{index}</td><td>{kept}</td><td>{mark}{text}</td></tr>")
    table = "<table><thead><tr><th></th><th>history</th><th>request</th></tr></thead><tbody>"
    return f"<h4>Request {turn.number}</h4>{table}{''.join(rows)}</tbody></table>"


def _said(message: Message) -> str:
    wire = message.to_openai()
    calls = ", ".join(call["function"]["name"] for call in wire.get("tool_calls", ()))
    return f"{wire['role']}: {wire['content'] or ''}" + (f" calls {calls}" if calls else "")


class SideBySide:
    """Several steppers in a row, and one *next* for all of them."""

    def __init__(self, steppers: tuple[Stepper, ...]) -> None:
        self.steppers = steppers
        self.next = widgets.Button(
            description="next for all", tooltip="One step in each", layout=widgets.Layout(width="auto")
        )
        self.back = widgets.Button(
            description="back for all", tooltip="One back in each", layout=widgets.Layout(width="auto")
        )
        self.next.on_click(lambda _: [one.next.click() for one in self.steppers])
        self.back.on_click(lambda _: [one.back.click() for one in self.steppers])
        third = widgets.Layout(flex="1 1 20em", min_width="16em")
        columns = [widgets.VBox([one.box], layout=third) for one in steppers]
        row = widgets.HBox(columns, layout=widgets.Layout(flex_flow="row wrap", align_items="flex-start"))
        self.box = widgets.VBox([widgets.HBox([self.back, self.next]), row])

    def __repr__(self) -> str:
        return "\n\n".join(f"== {one.title or number} ==\n{one!r}" for number, one in enumerate(self.steppers, 1))

    def _repr_html_(self) -> str:
        return "".join(
            f"<section><h3>{html.escape(one.title or str(number))}</h3>{one._repr_html_()}</section>"
            for number, one in enumerate(self.steppers, 1)
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {**self.box._repr_mimebundle_(), "text/plain": repr(self), "text/html": self._repr_html_()}


def side_by_side(*steppers: Stepper) -> SideBySide:
    """Steppers beside each other; give each a title."""
    return SideBySide(steppers)
