"""Nelson's Lighthouse: routing that is written for one caller at a time, as JSON under keys of a key/value store.

`model` is the format of the three kinds of keys, `parse` turns one key into values or problems, `book` holds all keys
of a kind, each with its last good version, `resolve` finds the services that they mean, and `source` keeps it all up
to date and tells which callers changed.
"""
