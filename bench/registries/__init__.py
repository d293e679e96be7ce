"""Registries as large as one likes, each a process of its own, and the program that follows them."""
