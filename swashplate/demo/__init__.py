"""The example of envoy-configs/, running: control plane, its upstreams, a real Envoy. `python -m swashplate.demo`."""


class DemoError(Exception):
    """The demo cannot start, or something that it started has ended; the text says what."""
