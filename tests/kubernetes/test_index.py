"""What a changed object concerns, and what there is of a service after any changes in any order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discovery.kubernetes.index import PodIndex, ServiceIndex
from discovery.kubernetes.objects import EndpointSlice, Key, Metadata, Service
from discovery.kubernetes.settings import KubernetesSettings
from discovery.left_out import Reason
from mesh.service import Endpoint, Labels, ServiceName
from tests.kubernetes.manifests import CHECKOUT, SHOP, by_key, endpoint, pod, pod_metadata, service, slice_

PRICING = ServiceName(SHOP, "pricing")


def index(**settings: Any) -> ServiceIndex:
    return ServiceIndex(KubernetesSettings(**settings))


def endpoints_of(of_index: ServiceIndex | PodIndex, name: ServiceName = CHECKOUT) -> tuple[Endpoint, ...]:
    found = of_index.mapped(name).service
    return tuple(one for port in found.ports for one in port.endpoints) if found else ()


def labels(of_index: ServiceIndex) -> list[Labels]:
    return [one.labels for one in endpoints_of(of_index)]


def test_a_change_concerns_its_own_service() -> None:
    one = index()
    assert one.take_services(by_key(service(), service(name="pricing"))) == {CHECKOUT, PRICING}
    assert one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a")))) == {CHECKOUT}
    assert one.take_pods(by_key(pod_metadata("a", version="v1"), pod_metadata("other"))) == {CHECKOUT}
    assert labels(one) == [frozenset({("version", "v1")})]
    assert one.take_slices({Key(SHOP, "checkout-1"): None}) == {CHECKOUT}
    assert one.take_services({Key(SHOP, "checkout"): None}) == {CHECKOUT}
    assert one.mapped(CHECKOUT).service is None


def test_a_pod_whose_labels_stay_concerns_nobody() -> None:
    one = index()
    one.take_services(by_key(service()))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"))))
    one.take_pods(by_key(pod_metadata("a", version="v1")))
    assert one.take_pods(by_key(pod_metadata("a", version="v1"))) == set()
    assert one.take_pods(by_key(pod_metadata("a", version="v2"))) == {CHECKOUT}


def test_a_pod_that_is_gone_has_its_labels_for_as_long_as_a_slice_names_it() -> None:
    one = index()
    one.take_services(by_key(service()))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"))))
    one.take_pods(by_key(pod_metadata("a", version="v1")))
    assert one.take_pods({Key(SHOP, "a"): None}) == set()
    assert labels(one) == [frozenset({("version", "v1")})]
    one.take_slices(by_key(slice_()))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"))))
    assert labels(one) == [frozenset()]


def test_another_pod_of_the_same_name_says_nothing() -> None:
    one = index()
    one.take_services(by_key(service()))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "web-0", uid="old"))))
    one.take_pods(by_key(pod_metadata("web-0", uid="new", version="v2")))
    assert labels(one) == [frozenset()]


def test_labels_of_an_earlier_life_stand_in_until_the_pod_is_known() -> None:
    one = index()
    one.remembered = {Key(SHOP, "a"): frozenset({("version", "v1")})}
    one.take_services(by_key(service()))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"))))
    assert labels(one) == [frozenset({("version", "v1")})]
    one.take_pods(by_key(pod_metadata("a")))
    assert labels(one) == [frozenset()]


def test_slices_of_a_service_that_is_not_selected_say_so() -> None:
    one = index(selector="team=shop")
    assert one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a")))) == {CHECKOUT}
    found = one.mapped(CHECKOUT)
    assert found.service is None
    assert [(left.address, left.port, left.reason) for left in found.left_out] == [
        ("10.0.0.1", 8080, Reason.NOT_SELECTED)
    ]
    assert "`team=shop`" in found.left_out[0].detail
    one.take_services(by_key(service()))
    assert one.mapped(CHECKOUT).left_out == ()


def test_a_slice_may_go_over_to_another_service() -> None:
    one = index()
    one.take_services(by_key(service(), service(name="pricing")))
    one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"))))
    assert one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"), service="pricing"))) == {CHECKOUT, PRICING}
    assert endpoints_of(one) == ()
    assert [one.address for one in endpoints_of(one, PRICING)] == ["10.0.0.1"]


def test_nelsons_stack_is_the_services_name_and_its_members_form_a_virtual_service() -> None:
    one = index(nelson=True)
    said = {"stackName": "inv--1", "version": "1", "service": "inventory", "weight": "100"}
    stack = service(name="inv", labels=said)
    stack_service, virtual = ServiceName(SHOP, "inv--1"), ServiceName(SHOP, "inventory")
    assert one.take_services(by_key(stack)) >= {stack_service, virtual}
    assert one.take_slices(by_key(slice_(endpoint("10.0.0.1", "a"), service="inv"))) == {stack_service}
    one.take_pods(by_key(pod_metadata("a", version="pods-own")))
    assert labels_of(one, stack_service) == {"stackName": "inv--1", "version": "pods-own"}
    assert one.mapped(ServiceName(SHOP, "inv")) == (None, ())
    found = one.mapped(virtual).service
    assert found is not None
    assert [port.number for port in found.ports] == [80]
    assert one.virtual(virtual) is not None
    assert one.take_services({Key(SHOP, "inv"): None}) >= {stack_service, virtual}
    assert one.mapped(virtual).service is None
    assert one.virtual(virtual) is None


def labels_of(of_index: ServiceIndex, name: ServiceName) -> dict[str, str]:
    (one,) = endpoints_of(of_index, name)
    return dict(one.labels)


def test_two_services_that_are_called_the_same_are_put_together_or_reported() -> None:
    one = index(nelson=True)
    first = service(name="checkout")
    second = service(
        [{"port": 80, "name": "http", "appProtocol": "grpc"}], name="other", labels={"stackName": "checkout"}
    )
    one.take_services(by_key(first, second))
    one.take_slices(
        by_key(
            slice_(endpoint("10.0.0.1", "a")),
            slice_(endpoint("10.0.0.2", "b"), name="other-1", service="other"),
        )
    )
    found = one.mapped(CHECKOUT)
    assert [one.address for one in endpoints_of(one)] == ["10.0.0.1"]
    assert [(left.instance, left.reason) for left in found.left_out] == [("service other", Reason.DUPLICATE)]


def test_pods_go_to_the_service_that_their_label_names() -> None:
    one = PodIndex(KubernetesSettings(pods=True))
    assert one.take_pods(by_key(pod("a", tbn_cluster="checkout"))) == {CHECKOUT}
    assert one.names(SHOP) == {CHECKOUT}
    assert one.take_pods(by_key(pod("a", tbn_cluster="pricing"))) == {CHECKOUT, PRICING}
    assert endpoints_of(one) == ()
    assert len(endpoints_of(one, PRICING)) == 1
    assert one.take_pods({Key(SHOP, "a"): None}) == {PRICING}
    assert one.names("") == set()


NAMES = ["checkout", "pricing"]
PODS = ["a", "b", "c"]
OBJECTS = st.one_of(
    st.builds(
        lambda name, port: service([{"port": port, "name": "http"}], name=name),
        st.sampled_from(NAMES),
        st.integers(80, 81),
    ),
    st.builds(
        lambda number, owner, pods: slice_(
            *(endpoint(f"10.0.0.{PODS.index(one)}", one) for one in pods), name=f"slice-{number}", service=owner
        ),
        st.integers(1, 3),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(PODS), unique=True),
    ),
    st.builds(
        lambda name, version: pod_metadata(name, version=version), st.sampled_from(PODS), st.sampled_from("12")
    ),
)
STEPS = st.lists(st.tuples(OBJECTS, st.booleans()), max_size=12)


def take(one: ServiceIndex, changed: Service | EndpointSlice | Metadata, *, gone: bool = False) -> set[ServiceName]:
    key = changed.key
    if isinstance(changed, Service):
        return one.take_services({key: None if gone else changed})
    if isinstance(changed, EndpointSlice):
        return one.take_slices({key: None if gone else changed})
    return one.take_pods({key: None if gone else changed})


@given(STEPS)
def test_only_what_a_change_concerns_changes(steps: list[tuple[Service | EndpointSlice | Metadata, bool]]) -> None:
    one = index()
    names = [ServiceName(SHOP, name) for name in NAMES]
    before = {name: one.mapped(name) for name in names}
    for changed, gone in steps:
        concerned = take(one, changed, gone=gone)
        after = {name: one.mapped(name) for name in names}
        assert {name for name in names if before[name] != after[name]} <= concerned
        before = after


@given(STEPS, st.randoms(use_true_random=False))
def test_the_way_there_decides_nothing(
    steps: list[tuple[Service | EndpointSlice | Metadata, bool]], random: Any
) -> None:
    """What is there in the end, put into an index of its own in any order, comes to the same."""
    one, other = index(), index()
    last: dict[tuple[type, Key], Service | EndpointSlice | Metadata] = {}
    for changed, gone in steps:
        if isinstance(changed, Service | EndpointSlice) or not gone:  # a pod that is gone may have its labels still
            take(one, changed, gone=gone)
            if gone:
                last.pop((type(changed), changed.key), None)
            else:
                last[type(changed), changed.key] = changed
    left = list(last.values())
    random.shuffle(left)
    for changed in left:
        take(other, changed)
    for name in NAMES:
        assert one.mapped(ServiceName(SHOP, name)) == other.mapped(ServiceName(SHOP, name))
    assert one.names("") == other.names("")
