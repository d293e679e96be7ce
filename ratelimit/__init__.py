"""Envoy's RateLimitService: limit files, counters in memory or Redis, and answers a turn of calls at a time.

`limits` are what operators wrote, compiled; `counters` count, and know nothing of limit files; `core` decides a turn:
request bytes to matched limits to one store call to answer bytes. Hosts (`host`) only gather turns.
"""
