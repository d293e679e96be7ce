"""All checks of one file by itself."""

from collections.abc import Iterator

from operator_files.problem import Problem, has_errors
from routes import codes
from routes.checks.cluster import cluster_problems
from routes.checks.context import Checked
from routes.checks.coverage import Above
from routes.checks.patches import patch_problems
from routes.checks.rate_limits import rate_limit_problems
from routes.checks.rule import cors_problems, per_try_problems, rule_problems, tcp_rule_problems
from routes.convert import match, rule_name
from routes.model import RuleSpec

Ranked = tuple[int, RuleSpec]


def problems_of(checked: Checked) -> list[Problem]:
    """Every problem of the file that its own text shows, in no order."""
    found: list[Problem] = []
    sound: list[Ranked] = []
    for index, rule in checked.rules:
        wrong = list(rule_problems(checked, index, rule))
        found += wrong
        if not has_errors(wrong):
            sound.append((index, rule))
    found += _names(checked)
    found += _order(checked, sound)
    found += _hosts(checked)
    found += _defaults(checked)
    found += _protocol(checked)
    found += rate_limit_problems(checked)
    if checked.file.cluster is not None:
        found += cluster_problems(checked, checked.file.cluster)
    if checked.file.patches is not None:
        found += patch_problems(checked)
    return found


def _names(checked: Checked) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, rule in checked.rules:
        name = rule_name(index, rule)
        if first.setdefault(name, index) != index:
            line = checked.document.at(("rules", first[name])).line
            yield checked.error(
                codes.DUPLICATE_RULE, f"the rule on line {line} is named `{name}` too", ("rules", index, "name"),
                "give each rule a name of its own",
            )  # fmt: skip


def _order(checked: Checked, sound: list[Ranked]) -> Iterator[Problem]:
    """The catch-all is there and last, and every rule can be reached."""
    if not checked.rules:
        return
    last = checked.rules[-1][0]
    for index, rule in checked.rules:
        if rule.match is None and index != last:
            yield checked.error(
                codes.CATCH_ALL_NOT_LAST, f"the rule `{rule_name(index, rule)}` has no `match`, but is not the last",
                ("rules", index), "move it to the end, or give it a `match`",
            )  # fmt: skip
    if checked.whole and checked.rules[-1][1].match is not None:
        yield checked.error(
            codes.CATCH_ALL_MISSING,
            f"the last rule, `{rule_name(*checked.rules[-1])}`, has a `match`, so other requests have nowhere to go",
            ("rules", last), "add a rule without `match`, such as `- {name: rest, respond: {status: 404}}`",
        )  # fmt: skip
    yield from _unreachable(checked, [(index, rule) for index, rule in sound if rule.match is not None])


def _unreachable(checked: Checked, ranked: list[Ranked]) -> Iterator[Problem]:
    """A rule of which each entry is covered by one entry of a rule above it."""
    above = Above()
    for index, rule in ranked:
        matches = [match(entry) for entry in rule.match or ()]
        takers = [above.taker(narrow) for narrow in matches]
        if all(takers):
            names = " and ".join(f"`{name}`" for name in dict.fromkeys(takers))
            yield checked.error(
                codes.UNREACHABLE, f"no request reaches this rule: {names} above takes them all", ("rules", index),
                "move it up, or delete it",
            )  # fmt: skip
        else:
            for number, taker in enumerate(takers):
                if taker:
                    yield checked.warning(
                        codes.UNREACHABLE, f"no request is left for this entry: `{taker}` above takes them all",
                        ("rules", index, "match", number), "move the rule up, or delete the entry",
                    )  # fmt: skip
        for narrow in matches:
            above.add(rule_name(index, rule), narrow)


def _hosts(checked: Checked) -> Iterator[Problem]:
    name, namespace = checked.service.name.lower(), checked.service.namespace.lower()
    own = {name, f"{name}.{namespace}", f"{name}.{namespace}.svc"}
    seen: set[str] = set()
    for index, host in enumerate(checked.file.hosts or ()):
        if host in seen:
            yield checked.error(
                codes.DUPLICATE_HOST, f"`{host}` is there twice", ("hosts", index), "delete one of the two"
            )
        elif host in own:
            yield checked.warning(
                codes.REDUNDANT, f"`{host}` is a name of the service anyway", ("hosts", index), "delete it"
            )
        seen.add(host)


def _defaults(checked: Checked) -> Iterator[Problem]:
    defaults = checked.file.defaults
    if defaults is None:
        return
    yield from per_try_problems(checked, ("defaults",), defaults.timeout, defaults.retry)
    if defaults.cors is not None:
        yield from cors_problems(checked, ("defaults", "cors"), defaults.cors)


def _protocol(checked: Checked) -> Iterator[Problem]:
    """Keys that need HTTP, or need that it is not."""
    cluster = checked.file.cluster
    protocol = cluster.protocol if cluster else None
    if protocol in ("tcp", "tls"):
        for index, rule in checked.rules:
            yield from tcp_rule_problems(checked, index, rule, protocol)
        for key in ("hosts", "defaults", "rate_limits"):
            if getattr(checked.file, key) is not None:
                yield checked.error(
                    codes.MISPLACED, f"`{key}` needs HTTP, and the service's protocol is {protocol}", (key,),
                    "delete the key", key=True,
                )  # fmt: skip
    elif protocol is not None and checked.file.listen is not None:
        yield checked.error(
            codes.MISPLACED, f"`listen` is for tcp and tls services, and the protocol is {protocol}", ("listen",),
            "delete the key: HTTP services share the egress listener", key=True,
        )  # fmt: skip
