"""Callers' own views (docs/design/callers.md): what nodes get whose routing is written for them alone."""
