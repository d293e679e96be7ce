"""The rate limit service on HTTP: asking it in JSON, the limits in force, health, metrics, and the counters."""
