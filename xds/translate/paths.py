"""Rewriting and redirecting paths, in Envoy's words."""

from typing import Any

from re2 import escape

from mesh.match import PathMatch, PathPrefix


def prefix_rewrite(path: PathMatch | None, prefix: str) -> dict[str, Any]:
    """Replace what `path` matched by `prefix`, and keep whole segments whole.

    Envoy replaces text: `/api` by `/` would make `//x` of `/api/x`, and `/` by `/v2` would make `/v2x` of `/x`.
    """
    matched = path.value if isinstance(path, PathPrefix) else "/" if path is None else None
    if matched is None:
        return {"prefix_rewrite": prefix}
    if matched.endswith("/"):
        return {"prefix_rewrite": prefix if prefix.endswith("/") else f"{prefix}/"}
    if shorter := prefix.rstrip("/"):
        return {"prefix_rewrite": shorter}
    return regex_rewrite(f"^{escape(matched)}/*", "/")


def path_rewrite(path: str) -> dict[str, Any]:
    """Replace the whole path, whatever it was; the query stays."""
    return regex_rewrite("^.*$", path.replace("\\", "\\\\"))


def regex_rewrite(pattern: str, substitution: str) -> dict[str, Any]:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution}}
