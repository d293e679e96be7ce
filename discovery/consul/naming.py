"""Which instances are wanted, and what their services are called here."""

from typing import Final

from discovery.consul.objects import Instance, Tags
from discovery.consul.refusal import Refusal
from discovery.consul.settings import DEFAULT_WORDS, ConsulSettings
from discovery.left_out import Reason
from operator_files.values import name_of

OWN: Final = "consul"
"""The service that Consul's servers are, in every catalog that may be read."""
_CHECKED: Final = name_of("service name", 253, dotted=True)


def namespace_of(settings: ConsulSettings, default_namespace: str) -> str:
    """The namespace of all services from these settings: Consul's own words where they are not the default ones."""
    said = [word for word in (settings.partition, settings.namespace) if word not in DEFAULT_WORDS]
    return "-".join(said) or default_namespace


def is_wanted(service: str, tags: Tags, settings: ConsulSettings) -> bool:
    """Whether any instance of a service in the catalog may be wanted; which, its own tags say."""
    return any(_matches(tag, settings) for tag in tags) if settings.tag else service != OWN


def name_in_mesh(instance: Instance, settings: ConsulSettings) -> str | Refusal:
    """What the instance's service is called, or why it is not wanted."""
    registered = instance.service
    name = registered.service
    if settings.tag:
        matching = sorted(tag.strip() for tag in registered.tags or () if _matches(tag, settings))
        if not matching:
            why = f"it has no tag that begins with `{settings.tag}`; add one where the instance is registered"
            return Refusal(Reason.NOT_SELECTED, why)
        name = next((new for tag in matching if (new := _renamed(tag, settings))), name)
    elif registered.kind:
        why = f"it is a {registered.kind} of Consul's own mesh, not an instance of the application"
        return Refusal(Reason.NOT_SELECTED, why)
    try:
        return _CHECKED(name)
    except ValueError as error:
        return Refusal(Reason.UNSUPPORTED, f"{error}; rename the service, or name it by a tag")


def _matches(tag: str, settings: ConsulSettings) -> bool:
    # With spaces around it a tag looks right in every list and matched nothing in Rotor (its issue 16).
    return tag.strip().startswith(settings.tag)


def _renamed(tag: str, settings: ConsulSettings) -> str:
    """What `tbn-cluster=name` renames to; empty where it does not."""
    if not settings.tag_delimiter:
        return ""
    rest = tag.removeprefix(settings.tag)
    return rest.removeprefix(settings.tag_delimiter).strip() if rest.startswith(settings.tag_delimiter) else ""
