"""Encoded resources, sets of them, and snapshots: what translation makes and streams carry."""
