"""Limits as operators write them, in the files of envoyproxy/ratelimit, and the tree that requests are matched by."""
