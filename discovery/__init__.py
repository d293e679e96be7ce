"""Where services and their endpoints come from.

A source (`files`, `kubernetes`, `consul`) pushes whole validated values for the services that changed, with the
evidence it has for them. The `registry` merges sources into one value a service, and lets no source that errs,
empties or restarts take a service down.
"""
