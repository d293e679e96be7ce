"""Route files: what operators say about a service, from YAML to `mesh` values.

`model` is the format (and the one source of its JSON Schema and reference), `parse` reads one file, `check` and
`coverage` find what is wrong with it, `convert` makes the mesh values, and `book` holds a directory of files, each
with its last good version.
"""
