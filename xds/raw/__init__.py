"""Operators' own Envoy resources: read from files, chosen by node, merged with what translation makes."""
