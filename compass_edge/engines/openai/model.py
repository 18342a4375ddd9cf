"""A model behind an OpenAI-compatible server, as the loop asks it.

What comes back is decided by what the loop does with it:

- Every text that the model wrote is handed back, whether it fits the schema or not, and also when it was cut off at max_tokens
  or stopped here because it would not end. The loop reads it, refuses it if it must, tells the Orienter what was wrong, and
  takes it as the Verifier's rejection. To raise would be wrong three times: the same question would be asked again, which at
  temperature 0 ends the same way; the circuit breaker would count against a server that is up; and the other questions of
  the batch would lose their replies. A text that is cut off is not closed, and so it is never taken for a reply. One that is
  closed and fits is one, even if whitespace followed it up to max_tokens.
- Where there is no text (transport, server, deadline, nothing but thinking), `ask` raises a CompassError that says why. What
  may pass is tried again first, within the deadline: refused and broken connections, 408, 429 and 5xx, damaged streams.
- After `cancelled()` the texts so far are handed back; nobody looks at them.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Sequence
from functools import partial

from compass_edge.engines.openai.body import request_body
from compass_edge.engines.openai.counts import Counts, Tally
from compass_edge.engines.openai.endpoint import Endpoint, is_loopback
from compass_edge.engines.openai.exchange import Answer, exchange
from compass_edge.engines.openai.faults import Passing
from compass_edge.engines.openai.patience import POLL_S, OutOfTime, Patience, Stopped
from compass_edge.engines.openai.runaway import longest_string
from compass_edge.engines.openai.slots import slots_of
from compass_edge.engines.openai.told import Told
from compass_edge.errors import CompassError
from compass_edge.models import Cancelled, OnText, Question
from compass_edge.roles.reply import InvalidReply, read

LONGEST_REST_S = 8.0  # between two attempts, unless the server asks for more


class OpenAiModel:
    """Any thread may ask. Questions of one call run side by side, as far as the endpoint allows."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint.api_key()  # a missing one is said now, and not by the first call
        self.endpoint = endpoint
        host = "localhost" if is_loopback(endpoint.host) else endpoint.host
        self._slots = slots_of(host, endpoint.port, endpoint.concurrency)
        self._tally = Tally()

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def max_batch(self) -> int:
        return self.endpoint.concurrency

    @property
    def counts(self) -> Counts:
        return self._tally.counts

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        bodies = [request_body(self.endpoint, question) for question in questions]
        if len(questions) == 1:
            return [self._ask(questions[0], bodies[0], partial(on_text, 0), cancelled)]
        return self._ask_side_by_side(questions, bodies, on_text, cancelled)

    def _ask_side_by_side(
        self, questions: Sequence[Question], bodies: Sequence[bytes], on_text: OnText, cancelled: Cancelled
    ) -> Sequence[str]:
        """The first failure stops the others: the loop asks each of them again, alone."""
        work: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(len(questions)):
            work.put(index)
        texts, errors = [""] * len(questions), list[BaseException]()
        stop, lock = threading.Event(), threading.Lock()

        def say(index: int, text: str) -> None:
            with lock:
                on_text(index, text)

        def serve() -> None:
            while not stop.is_set():
                try:
                    index = work.get_nowait()
                except queue.Empty:
                    return
                try:
                    texts[index] = self._ask(questions[index], bodies[index], partial(say, index), stop.is_set)
                except BaseException as error:
                    errors.append(error)
                    stop.set()

        count = min(len(questions), self.endpoint.concurrency)
        threads = [threading.Thread(target=serve, name=f"compass-openai-{n}", daemon=True) for n in range(count)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL_S)
                    if cancelled():
                        stop.set()
        finally:
            stop.set()  # after Ctrl-C too: the threads close their sockets at their next look
        if errors:
            raise errors[0]
        return texts

    def _ask(self, question: Question, body: bytes, say: Callable[[str], None], cancelled: Cancelled) -> str:
        told, patience = Told(say), Patience(self.endpoint.deadline_s, cancelled)
        self._tally.add("asked")
        try:
            answer = self._answer(body, longest_string(question.schema), told, patience)
        except Stopped:
            self._tally.add("cancelled")
            return told.text
        except CompassError as error:
            self._tally.add("failed", *(["out_of_time"] if isinstance(error, OutOfTime) else []))
            raise CompassError(self.endpoint.sentence(str(error))) from error
        except BaseException:
            self._tally.add("failed")
            raise
        self._count(question, answer)
        return answer.text

    def _answer(self, body: bytes, longest: int | None, told: Told, patience: Patience) -> Answer:
        for attempt in range(self.endpoint.retries + 1):
            try:
                patience.doing = "waiting for its turn"
                with self._slots.one(patience):
                    return exchange(self.endpoint, body, longest, told.piece, patience)
            except Passing as fault:
                if attempt == self.endpoint.retries:
                    raise CompassError(
                        f"{fault} It was tried {attempt + 1} times." if attempt else str(fault)
                    ) from fault
                rest = min(self.endpoint.backoff_s * 2**attempt, LONGEST_REST_S) * random.uniform(0.5, 1.0)
                rest = max(rest, fault.retry_after_s)
                if rest >= patience.left_s:
                    raise CompassError(f"{fault} No time is left to try again after {rest:.1f} s.") from fault
                patience.doing = f"it rested before another attempt, since the server {fault}".rstrip(".")
                patience.rest(rest)
                told.again()
                self._tally.add("retried")
        raise AssertionError("unreachable")

    def _count(self, question: Question, answer: Answer) -> None:
        self._tally.add("replies")
        try:
            read(answer.text, question.schema)
        except InvalidReply:
            self._tally.add("invalid")
        for name, holds in (
            ("cut_off", answer.finish == "length"),
            ("runaway", bool(answer.runaway)),
            ("unwrapped", answer.unwrapped),
        ):
            if holds:
                self._tally.add(name)
