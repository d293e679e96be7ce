"""Counters in Redis or Valkey: one server, Sentinel, or Cluster.

redis-py asks Sentinels and knows slots. Checks do not travel through its client: it sends a command again after a
failure, and a check that was sent twice is counted twice; and it has one call on a connection at a time. They go down
one connection per node, packed and parsed by hiredis, many calls a script, and are never sent again once they may
have been counted (docs/design/counters.md).
"""
