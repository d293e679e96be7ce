"""The format of route files, version 1: the one source of validation, JSON Schema and reference."""

from routes.model.file import RouteFile
from routes.model.rule import RuleSpec

__all__ = ["RouteFile", "RuleSpec"]
