"""What operators write: YAML with positions, problems they can act on, and the last good version of every file.

The pure part (`yaml`, `validate`, `problem`, `last_good`) turns text into values or problems and never raises for
what a file says. It knows neither routes nor services: the parts that read such files bring their own models.
"""
