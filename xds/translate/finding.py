"""What translation noticed: a wish of an operator or a registry that could not be granted as written."""

from enum import StrEnum
from typing import NamedTuple

from mesh.service import ServiceName


class Code(StrEnum):
    """What a finding is about. The texts are stable: status, metrics and explanations show them."""

    DOMAIN_CONFLICT = "domain-conflict"
    NAME_CONFLICT = "name-conflict"
    LISTEN_CONFLICT = "listen-conflict"
    UDP_PORT = "udp-port"
    SAME_PORT = "same-port"
    NO_SUCH_PORT = "no-such-port"
    UNKNOWN_TARGET = "unknown-target"
    NOT_OFFERED = "not-offered"
    NOT_APPLICABLE = "not-applicable"
    OLDER_ENVOY = "older-envoy"
    PATCH_FAILED = "patch-failed"
    TRANSLATION_FAILED = "translation-failed"


class Finding(NamedTuple):
    """`service` is the one that does not get what it asked for; `reason` is one sentence for the operator."""

    service: ServiceName
    code: Code
    reason: str
