"""Follows the names of a datacenter's services, and the tags that any of their instances has.

The catalog wakes for every change of anything, with everything in the answer, so its bytes are compared before they
are read, and it is asked once a second at most. It only ever adds: that a service is gone, its own watch finds out.
"""

from collections.abc import Callable, Collection
from typing import Final

from discovery.consul.blocking import Bucket, Heard, Worth
from discovery.consul.client import Answer
from discovery.consul.naming import OWN, is_wanted
from discovery.consul.objects import Catalog, MisreadError, catalog_in
from discovery.consul.question import NoAnswerError, Question
from discovery.consul.settings import ConsulSettings
from discovery.consul.watch import Shared

_BURST: Final = 4
_PER_S: Final = 1.0
_MAYBE_NONE: Final = (
    "the catalog is empty to this token, which may not read all of it; "
    'give it `service_prefix "" read` and `node_prefix "" read`'
)


class CatalogWatch:
    """`run` it as a task. `catalog` is the newest one that could be believed; `index` what it came with."""

    def __init__(
        self,
        settings: ConsulSettings,
        shared: Shared,
        *,
        known: Callable[[], Collection[str]],
        on_catalog: Callable[[], None],
        on_reset: Callable[[], None],
        on_trouble: Callable[[], None],
        anonymous: Callable[[], bool],
    ) -> None:
        """`known` are services that were there before. `on_catalog`: an answer may say something new."""
        self.catalog: Catalog = {}
        self.wanted: frozenset[str] = frozenset()
        self.index = 0
        self.answered = False
        self.partial = False
        """Consul said that there are services that the token may not read."""
        self.trouble = ""
        self._settings, self._shared, self._known = settings, shared, known
        self._on_catalog, self._on_reset, self._on_trouble = on_catalog, on_reset, on_trouble
        self._anonymous = anonymous
        self._question = Question(
            shared.client,
            "/v1/catalog/services",
            shared.params,
            own=Bucket(_BURST, _PER_S),
            shared=shared.bucket,
            clock=shared.clock,
            uniform=shared.uniform,
        )

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._shared.gate.opened()
            try:
                answer, heard = await self._question.heard()
                self._shared.gate.heard()
                await self._take(answer, heard)
            except NoAnswerError as error:
                if error.agent or error.token:
                    self._shared.gate.doubt(token=error.token)
                self._troubled(str(error))

    def ask_anew(self) -> None:
        """The agent was away, or somebody wants to know for certain."""
        self._question.ask_anew()

    async def _take(self, answer: Answer, heard: Heard) -> None:
        try:
            catalog = catalog_in(answer.body) if heard.changed else self.catalog
        except MisreadError as error:
            raise self._question.failed(NoAnswerError(str(error), agent=True)) from error
        if heard.worth is Worth.RESET:
            self._on_reset()
        wanted = frozenset(name for name, tags in catalog.items() if is_wanted(name, tags, self._settings))
        if not wanted and (why := await self._why_empty(answer, catalog)):
            raise self._question.failed(NoAnswerError(why, token=not self._anonymous()))
        news = catalog != self.catalog or not self.answered or answer.filtered != self.partial
        self.partial = answer.filtered
        self.catalog, self.wanted, self.index, self.answered = catalog, wanted, answer.index, True
        self._troubled("")
        if news or heard.worth is not Worth.LIVE:
            self._on_catalog()

    async def _why_empty(self, answer: Answer, catalog: Catalog) -> str:
        """Why nothing is there, where the token may be the reason; empty where there really is nothing."""
        rights = await self._shared.permissions.to_read(
            [*self._known(), OWN] if OWN not in catalog else self._known()
        )
        if rights.known and not rights.denied:
            return _MAYBE_NONE if answer.filtered else ""
        if self._anonymous():
            return (
                "the catalog is empty, and most likely that is because no token is given: "
                f"ACLs are on, and {rights.why or 'nothing may be read without one'}"
            )
        return f"the catalog is empty, and most likely because of the token: {rights.why}"

    def _troubled(self, reason: str) -> None:
        if reason != self.trouble:
            self.trouble = reason
            self._on_trouble()
