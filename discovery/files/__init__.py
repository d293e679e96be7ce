"""Services from files: a list of services and their endpoints, hot-reloaded.

`model` is the format (and the one source of its JSON Schema and reference), `address` and `parse` turn a file into
mesh values, `book` holds all files, each with its last good version, and `source` keeps it up to date.
"""
