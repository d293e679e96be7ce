"""Routes of one service from several origins: one is in force, whatever the order in which they came."""

from hypothesis import given
from hypothesis import strategies as st

from mesh.mesh import Routes
from mesh.rule import BrokenRoutes, Respond
from swashplate.route_precedence import Hidden, RoutePrecedence
from tests.translate.meshes import name, routes, rule

ORIGINS = ("route-files", "consul-routes", "kubernetes")
A = name("a")


def good(status: int) -> Routes:
    return routes("a", rule(Respond(status)))


def test_the_earlier_origin_wins_and_the_later_is_told() -> None:
    precedence = RoutePrecedence(ORIGINS)
    assert precedence.changed("consul-routes", {A: good(201)}) == {A: good(201)}
    assert list(precedence.hidden) == []
    assert precedence.changed("route-files", {A: good(200)}) == {A: good(200)}
    assert list(precedence.hidden) == [Hidden(A, "a.yaml (route-files)", "a.yaml (consul-routes)")]
    assert precedence.changed("route-files", {A: None}) == {A: good(201)}
    assert list(precedence.hidden) == []
    assert precedence.changed("consul-routes", {A: None}) == {A: None}


def test_an_error_for_all_does_not_go_before_good_routes() -> None:
    precedence = RoutePrecedence(ORIGINS)
    broken = BrokenRoutes(A, "R001", "a.yaml")
    assert precedence.changed("route-files", {A: broken}) == {A: broken}
    assert precedence.changed("kubernetes", {A: good(202)}) == {A: good(202)}
    assert precedence.changed("kubernetes", {A: None}) == {A: broken}


steps = st.lists(st.tuples(st.sampled_from(ORIGINS), st.none() | st.integers(200, 203)), max_size=12)


@given(steps)
def test_what_is_in_force_depends_on_what_is_said_not_on_the_order(taken: list[tuple[str, int | None]]) -> None:
    precedence, last, in_force = RoutePrecedence(ORIGINS), dict[str, int | None](), None
    for origin, status in taken:
        last[origin] = status
        in_force = precedence.changed(origin, {A: None if status is None else good(status)})[A]
    said = [last[origin] for origin in ORIGINS if last.get(origin) is not None]
    assert in_force == (good(said[0]) if said and said[0] is not None else None)
    assert len(list(precedence.hidden)) == max(0, len(said) - 1)
