"""The pages of the rate limit service."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Final, Protocol

from aiohttp import web

from ratelimit.core.options import AS_ENVOYPROXY, Options
from ratelimit.counters.store import StoreUnavailableError
from ratelimit.http.asking import JsonAsking
from ratelimit.http.counting import MOST, Beginning, Counted, Counters
from ratelimit.limits.dump import dump
from ratelimit.limits.effects import Circumstances
from ratelimit.limits.explain import explain_request, why_unknown
from ratelimit.limits.limit import Entries

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BODY_BYTES: Final = 1024 * 1024


class Subject(Counted, Protocol):
    """What the pages show. Reasons are sentences; none means ready."""

    @property
    def unready(self) -> tuple[str, ...]: ...

    def errors_of(self, domain: str) -> tuple[str, ...]:
        """Sentences on files that speak of this domain and have errors."""
        ...

    def metrics(self) -> AsyncIterator[bytes]:
        """In Prometheus' text format, in pieces."""
        ...


class Pages:
    """`counters`: whether /counters is served, too. `options`: how calls are answered, for /explain."""

    def __init__(
        self, subject: Subject, asking: JsonAsking, *, counters: bool, options: Options = AS_ENVOYPROXY
    ) -> None:
        self._subject = subject
        self._options = options
        self._asking = asking
        self._counters = Counters(subject) if counters else None

    def application(self) -> web.Application:
        """Not yet listening anywhere."""
        app = web.Application(middlewares=[only_plain_requests], client_max_size=_BODY_BYTES)
        app.add_routes(
            [
                web.post("/json", self._json),
                web.get("/rlconfig", self._rlconfig),
                web.get("/explain", self._explain),
                web.get("/healthcheck", self._healthcheck),
                web.get("/metrics", self._metrics),
                web.get("/counters", self._list),
                web.delete("/counters", self._reset),
                web.post("/counters/reset", self._reset),
            ]
        )
        return app

    async def _json(self, request: web.Request) -> web.Response:
        answered = await self._asking.ask(await request.read())
        if answered.is_json:
            return web.Response(status=answered.status, text=answered.text, content_type="application/json")
        return error(answered.status, answered.text)

    async def _rlconfig(self, _: web.Request) -> web.Response:
        return web.Response(text=dump(self._subject.tree))

    async def _explain(self, request: web.Request) -> web.Response:
        if not (domain := request.query.get("domain")):
            return error(400, "say which descriptor: /explain?domain=NAME&entry=KEY=VALUE, and more entries")
        descriptors: list[Entries] = [()]
        for name, text in request.query.items():
            if name == "and":
                descriptors.append(())
            elif name == "entry":
                key, _, value = text.partition("=")
                descriptors[-1] = (*descriptors[-1], (key, value))
        options = self._options
        around = Circumstances(options.shadow_mode, options.quota_mode, self._subject.store.status.error)
        found = explain_request(self._subject.tree, domain, descriptors, around, self._subject.errors_of(domain))
        return web.json_response({"explanation": found.to_dict(), "text": list(found.lines())})

    async def _healthcheck(self, _: web.Request) -> web.Response:
        """As envoyproxy/ratelimit: 200 with OK, or 500."""
        reasons = self._subject.unready
        return web.Response(status=500 if reasons else 200, text="\n".join(reasons) + "\n" if reasons else "OK")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": METRICS_TYPE})
        await response.prepare(request)
        async for piece in self._subject.metrics():
            await response.write(piece)
        await response.write_eof()
        return response

    async def _list(self, request: web.Request) -> web.Response:
        counters, domain = self._asked(request)
        try:
            most = min(int(request.query.get("most", 100)), MOST)
        except ValueError:
            raise _refused(400, "most must be a number") from None
        begin = _beginning(request)
        try:
            found = await counters.listed(domain, begin, most)
        except StoreUnavailableError as failure:
            return error(503, f"the store of counters cannot be asked: {failure}")
        identity = [{"key": key, "value": value} for key, value in counters.identity(domain, begin.entries)]
        return web.json_response({"counters": found, "identity": identity, **self._unknown(domain)})

    async def _reset(self, request: web.Request) -> web.Response:
        counters, domain = self._asked(request)
        try:
            forgotten = await counters.reset(domain, _beginning(request))
        except StoreUnavailableError as failure:
            return error(503, f"the store of counters cannot be asked: {failure}")
        return web.json_response({"reset": forgotten, **self._unknown(domain)})

    def _unknown(self, domain: str) -> Mapping[str, str]:
        """Why the domain is none of those in force; empty where it is."""
        tree = self._subject.tree
        return (
            {} if domain in tree.domains else {"unknown": why_unknown(tree, domain, self._subject.errors_of(domain))}
        )

    def _asked(self, request: web.Request) -> tuple[Counters, str]:
        if self._counters is None:
            raise _refused(
                404, "/counters is not served here: start with --counters (beside discovery: --ratelimit-counters)"
            )
        if not _is_local(request.host):
            raise _refused(403, "/counters is for callers on this machine, by its address")
        if not (domain := request.query.get("domain")):
            raise _refused(400, "say whose: /counters?domain=NAME, and &entry=KEY=VALUE for a descriptor's")
        return self._counters, domain


def _beginning(request: web.Request) -> Beginning:
    """From `entry=KEY=VALUE`, in the order in which the query has them; the last one may be `entry=KEY`."""
    texts = request.query.getall("entry", [])
    last = texts.pop() if texts and "=" not in texts[-1] else None
    if any("=" not in text for text in texts):
        raise _refused(400, "an entry is KEY=VALUE; only the last one may be a KEY alone, which is any value")
    pairs = (text.partition("=") for text in texts)
    return Beginning([(key, value) for key, _, value in pairs], last)


def _is_local(host: str) -> bool:
    """Whether a browser that sends this cannot have been led here by a name of somebody else's."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name in ("localhost", "swashplate")


def error(status: int, message: str) -> web.Response:
    """What went wrong, as JSON."""
    return web.json_response({"error": message}, status=status)


def _refused(status: int, message: str) -> web.HTTPException:
    kinds = {400: web.HTTPBadRequest, 403: web.HTTPForbidden, 404: web.HTTPNotFound}
    text = error(status, message).text
    return kinds[status](text=text, content_type="application/json")


@web.middleware
async def only_plain_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse what a web page of some other site makes a browser send: that could change things here."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method not in ("GET", "HEAD") and site not in ("none", "same-origin"):
        return error(403, "requests from other sites are refused")
    return await handler(request)
