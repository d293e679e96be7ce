"""A whole route file."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from operator_files.validate import FileModel
from operator_files.values import Percent, Text
from routes.model.action import sums_to_100
from routes.model.policy import ClusterSpec
from routes.model.rate_limit import RateLimitSpec
from routes.model.rule import DefaultsSpec, RuleSpec
from routes.model.values import (
    Host,
    Listen,
    NamespaceText,
    Port,
    RuleText,
    ServiceText,
    SourceText,
    SubsetText,
    Words,
)

SourcesSpec = Annotated[dict[SourceText, Percent], Field(min_length=1), AfterValidator(sums_to_100)]


class PatchSpec(FileModel):
    """The escape hatch: an Envoy-shaped object merged last into one generated resource. Exactly one target."""

    cluster: Words | None = Field(
        None, description="The cluster of this subset; all clusters of the service, by its own name."
    )
    virtual_host: Literal[True] | None = Field(None, description="`true`: the service's virtual host.")
    route: RuleText | None = Field(None, description="The routes of this rule.")
    listener: Literal[True] | None = Field(None, description="`true`: the listener that `listen` makes.")
    merge: dict[str, Any] = Field(
        min_length=1,
        description="Keys as in Envoy's API. Mappings merge key by key; everything else is replaced.",
    )


class RouteFile(FileModel):
    """How requests to one service are routed. One file describes one service; the order of keys does not matter."""

    version: Literal[1] = Field(description="The version of this format.")
    service: ServiceText = Field(description="The service that callers dial.")
    namespace: NamespaceText | None = Field(
        None, description="Its namespace. Default: the directory's, from settings."
    )
    port: Port | None = Field(
        None, description="The service's port that the rules are for. Default: the one named http, else the lowest."
    )
    hosts: list[Host] | None = Field(
        None, min_length=1, description="Further domains, beside the service's own names."
    )
    subsets: dict[SubsetText, dict[Text, Text]] | None = Field(
        None, min_length=1, description="Label sets over the service's endpoints: an endpoint with all of them is in."
    )
    rules: list[RuleSpec] | None = Field(
        None, min_length=1, description="The first match wins, in this order. Default: everything to all endpoints."
    )
    defaults: DefaultsSpec | None = Field(None, description="What rules have where they say nothing.")
    rate_limits: list[RateLimitSpec] | None = Field(
        None,
        min_length=1,
        max_length=16,
        description="How many requests may come by all rules together that send requests on, beside the rules' own.",
    )
    cluster: ClusterSpec | None = Field(None, description="How callers talk to the service.")
    sources: SourcesSpec | None = Field(
        None,
        description="Source (`kubernetes`, `consul`, `service-files`) -> its share of the requests, where several "
        "have endpoints of the service; one that is not named has 0%. Default: what the server's settings say, else "
        "every endpoint alike.",
    )
    listen: Listen | None = Field(
        None, description="tcp and tls services: the address at which sidecars offer it, as `127.0.0.1:5432`."
    )
    patches: list[PatchSpec] | None = Field(None, min_length=1, description="Envoy-shaped changes, merged last.")
