"""Counters: what a check is, the algorithms that decide it, and the stores that keep the counts."""
