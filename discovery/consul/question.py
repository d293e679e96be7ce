"""One question, asked again and again: it waits its turn, asks, and says what the answer is worth."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from discovery.backoff import Backoff
from discovery.consul.blocking import Bucket, Heard, Progress
from discovery.consul.client import WAIT_S, Answer, UnreachableError

BURST: Final = 5
PER_S: Final = 2.0
"""A query whose answer changes all the time is asked five times at once and then twice a second, so that a change is
never more than half a second late. (Consul's own advice, one in 15 s, is for those who rewrite files with it.)"""
USELESS_S: Final = 0.5
USELESS_LIMIT_S: Final = 5.0
"""The wait after an answer that says the same as before doubles from here to there: older servers wake every query
for any change, and all wake those for a service that has no instance."""
BACKOFF_LIMIT_S: Final = 60.0
_FULL: Final = 429


class Asks(Protocol):
    """What of the client is needed here."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer: ...
    async def post(self, path: str, body: bytes, params: Mapping[str, str] | None = None) -> Answer: ...
    async def blocking(
        self, path: str, params: Mapping[str, str] | None = None, index: int = 0, *, wait_s: float = WAIT_S
    ) -> Answer: ...


class NoAnswerError(Exception):
    """The question was not answered; the message says why.

    `agent`: it may be the agent that fails, not the question; `token`: it may be the token; `full`: the agent takes
    no more connections from us.
    """

    def __init__(self, reason: str, *, agent: bool = False, token: bool = False, full: bool = False) -> None:
        super().__init__(reason)
        self.agent, self.token, self.full = agent, token, full


class InterruptedQuestionError(Exception):
    """Somebody wants the question to be asked in another way; nothing is known of the answer, and nothing is lost."""


class Question:
    """`heard` is the only thing to await; after a failure its next call waits first, ever longer."""

    def __init__(
        self,
        client: Asks,
        path: str,
        params: Mapping[str, str],
        *,
        own: Bucket | None = None,
        shared: Bucket,
        clock: Callable[[], float],
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`shared` is the bucket of all questions to one agent; `own` that of this one."""
        self._client, self._path, self._params = client, path, params
        self._shared, self._clock = shared, clock
        self._bucket = own or Bucket(BURST, PER_S)
        self._backoff = Backoff(uniform, limit_s=BACKOFF_LIMIT_S)
        self._progress = Progress()
        self._rest_s = 0.0
        self._went_well = False
        self._useless = 0
        self._interrupted = False
        self._woken = asyncio.Event()
        self._asking: asyncio.Future[Answer] | None = None

    @property
    def failing(self) -> bool:
        """The last attempt failed."""
        return self._backoff.attempts > 0 and not self._went_well

    async def heard(self, *, wait_s: float = WAIT_S, again: bool = False) -> tuple[Answer, Heard]:
        """The next good answer (status 200). `again`: without an index. Raises NoAnswerError.

        `wait_s`: how long the agent may hold the question; 0 is an answer at once, worth as much: an agent with
        streaming that has too little time answers with what it has not read yet.
        """
        if self._went_well:  # whoever asked has not said otherwise since
            self._backoff.reset()
        if again:
            self._progress = self._progress.from_start()
        await self._rest()
        answer = await self._answer(wait_s)
        if reason := answer.refusal():
            raise self.failed(_no_answer(answer.status, reason), _retry_after(answer))
        waited = self._progress.index > 0 and wait_s > 0
        heard = self._progress.answered(answer.index, answer.body)
        self._useless = self._useless + 1 if waited and not heard.changed and self._moved(heard) else 0
        self._progress = heard.progress
        self._went_well = True
        self._rest_s = min(USELESS_S * 2.0 ** min(self._useless, 8) / 2, USELESS_LIMIT_S) if self._useless else 0.0
        return answer, heard

    def failed(self, error: NoAnswerError, at_least_s: float = 0.0) -> NoAnswerError:
        """The last answer was none after all: the next one is asked for later, and without an index."""
        self._progress = self._progress.broken()
        self._went_well = False
        self._rest_s = self._backoff.next(at_least_s)
        return error

    def ask_anew(self) -> None:
        """What is under way may never be answered (the agent was away): ask at once, without an index."""
        self._progress = self._progress.from_start()
        self.wake()
        if self._asking is not None:
            self._asking.cancel()

    def interrupt(self) -> None:
        """Let go of the connection if one is held: `heard` raises InterruptedQuestionError."""
        if self._asking is not None:
            self._interrupted = True
            self._asking.cancel()

    def wake(self) -> None:
        """Do not wait any longer."""
        self._rest_s = 0.0
        self._woken.set()

    def _moved(self, heard: Heard) -> bool:
        return heard.progress.index != self._progress.index

    async def _rest(self) -> None:
        now = self._clock()
        wait = max(self._rest_s, self._bucket.take(now), self._shared.take(now))
        self._rest_s = 0.0
        self._woken.clear()
        if wait > 0:
            await rest(self._woken, wait)

    async def _answer(self, wait_s: float) -> Answer:
        while True:
            index = self._progress.index if wait_s > 0 else 0
            self._asking = asyncio.ensure_future(
                self._client.blocking(self._path, self._params, index, wait_s=wait_s)
            )
            try:
                await asyncio.wait((self._asking,))
                if not self._asking.cancelled():
                    return self._asking.result()
                if self._interrupted:
                    raise InterruptedQuestionError
            except UnreachableError as error:
                raise self.failed(NoAnswerError(str(error), agent=True)) from error
            finally:
                if not self._asking.done():
                    self._asking.cancel()
                    await asyncio.wait((self._asking,))
                self._asking, self._interrupted = None, False


async def rest(woken: asyncio.Event, seconds: float) -> None:
    """Until then, or until woken."""
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        pass


def _no_answer(status: int, reason: str) -> NoAnswerError:
    return NoAnswerError(reason, agent=status >= 500, token=status in (401, 403), full=status == _FULL)


def _retry_after(answer: Answer) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0.0
