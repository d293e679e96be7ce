"""Whether an instance gets requests: what Kubernetes' conditions come to."""

from typing import Final, NamedTuple

from discovery.kubernetes.objects import Conditions, ContainerStatus, Pod
from discovery.left_out import Reason
from mesh.service import Health


class Refusal(NamedTuple):
    """Why something is not used, and a sentence for the operator."""

    reason: Reason
    detail: str


Grade = Health | Refusal

_NOT_READY: Final = Refusal(
    Reason.NOT_READY,
    "it is not ready: a container has not started, or its readiness probe fails; `kubectl describe pod` says which",
)
_ENDED: Final = Refusal(Reason.TERMINATED, "it is terminating and serves no more; nothing to do")


def graded(conditions: Conditions, *, publish_not_ready: bool) -> Grade:
    """Of an endpoint of a slice.

    Ready is false as soon as a pod terminates, and true whatever its probes say where its Service publishes those
    that are not ready: `serving` is what the probes say. What terminates without serving never comes back.
    """
    ready = conditions.ready is not False
    serving = ready if conditions.serving is None else conditions.serving
    if conditions.terminating:
        return Health.DRAINING if serving else _ENDED
    if serving and ready:
        return Health.HEALTHY
    return Health.UNHEALTHY if publish_not_ready else _NOT_READY


def graded_pod(pod: Pod, *, publish_not_ready: bool) -> Grade:
    """Of a pod: every container runs and is ready, and neither the kubelet nor a readiness gate says otherwise.

    The pod's own condition counts too, because it is what turns false when its node is lost.
    """
    status = pod.status
    if status.phase in ("Succeeded", "Failed"):
        return Refusal(Reason.TERMINATED, f"its phase is {status.phase}{_because(status.reason)}; nothing to do")
    fault = _fault(pod)
    if pod.metadata.deletion_timestamp:
        return Health.DRAINING if not fault else _ENDED
    if not fault:
        return Health.HEALTHY
    return Health.UNHEALTHY if publish_not_ready else Refusal(Reason.NOT_READY, fault)


def _fault(pod: Pod) -> str:
    """Why it is not ready, or nothing."""
    statuses = pod.status.container_statuses
    if not statuses:
        return (
            f"its phase is {pod.status.phase or 'unknown'} and no container has started{_because(pod.status.reason)}"
        )
    for status in statuses:
        if status.state.running is None:
            return f"the container `{status.name}` does not run{_because(_reason(status))}"
        if not status.ready:
            return f"the container `{status.name}` is not ready: see its readiness probe"
    for condition in pod.status.conditions or ():
        if condition.type == "Ready" and condition.status != "True":
            return f"its condition Ready is {condition.status}{_because(condition.reason or '')}"
    return ""


def _reason(status: ContainerStatus) -> str:
    state = status.state.waiting or status.state.terminated
    return state.reason if state else ""


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
