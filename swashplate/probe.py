"""What a probe is answered."""

from aiohttp import web


def answered(reasons: tuple[str, ...], remarks: tuple[str, ...] = ()) -> web.Response:
    """200 with `ok`, and what is to be known besides, or 503 with the reasons; one a line."""
    lines = reasons or ("ok", *remarks)
    return web.Response(status=503 if reasons else 200, text="".join(f"{line}\n" for line in lines))
