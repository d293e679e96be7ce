"""What subsets select by: tags and metadata of instances and of their nodes."""

from typing import Final

from discovery.consul.objects import Instance
from mesh.service import Labels, Locality

_OUR_OWN: Final = "consul-"
"""Keys of a node's metadata that Consul writes itself."""
_ZONE_KEYS: Final = ("zone", "availability-zone", "availability_zone", "az")
_REGION_KEYS: Final = ("region",)
_SUB_ZONE_KEYS: Final = ("sub-zone", "sub_zone", "rack")


_REMEMBERED: Final = 10_000


class LabelSets:
    """Equal label sets as one value: most instances of a service have the same, and each is many strings."""

    def __init__(self) -> None:
        self._shared: dict[Labels, Labels] = {}

    def of(self, labels: dict[str, str]) -> Labels:
        found = frozenset(labels.items())
        if len(self._shared) > _REMEMBERED:  # those of versions long gone
            self._shared.clear()
        return self._shared.setdefault(found, found)


def labels_of(instance: Instance, *, like_rotor: bool, delimiter: str) -> dict[str, str]:
    """`key=value` tags by key, bare tags as `true`, metadata by key, which wins; the node's metadata as `node:KEY`.

    `like_rotor`: also as Rotor named them (`tag:KEY`, `node-id`, `consul:service`), for subsets that select by that.
    """
    labels = {}
    for key, value in (_pair(tag.strip(), "=") for tag in instance.service.tags or ()):
        labels[key] = value if value is not None else "true"
    labels |= instance.service.meta or {}
    labels |= {
        f"node:{key}": value
        for key, value in (instance.node.meta or {}).items()
        if value and not key.startswith(_OUR_OWN)
    }
    if like_rotor:
        for key, value in (_pair(tag.strip(), delimiter) for tag in instance.service.tags or ()):
            labels[f"tag:{key}"] = value or ""
        labels |= {"node-id": instance.node.node, "consul:service": instance.service.service}
    labels.pop("", None)
    return labels


def locality_of(instance: Instance, *, region: str) -> Locality:
    """Where it runs: by its own metadata, its node's, or the locality of either. `region`: where nothing says one."""
    metas = [instance.service.meta or {}, instance.node.meta or {}]
    places = [place for place in (instance.service.locality, instance.node.locality) if place is not None]
    return Locality(
        _first(metas, _REGION_KEYS) or next((place.region for place in places if place.region), region),
        _first(metas, _ZONE_KEYS) or next((place.zone for place in places if place.zone), ""),
        _first(metas, _SUB_ZONE_KEYS),
    )


def said(instance: Instance, key: str) -> str:
    """What the instance's metadata, else a tag `key=value`, says about `key`; empty where neither does."""
    if value := (instance.service.meta or {}).get(key):
        return value
    pairs = dict(_pair(tag.strip(), "=") for tag in instance.service.tags or ())
    return pairs.get(key) or ""


def _pair(tag: str, delimiter: str) -> tuple[str, str | None]:
    key, found, value = tag.partition(delimiter) if delimiter else (tag, "", "")
    return (key.strip(), value.strip()) if found else (tag, None)


def _first(metas: list[dict[str, str]], keys: tuple[str, ...]) -> str:
    return next((value for meta in metas for key in keys if (value := meta.get(key, "").strip())), "")
