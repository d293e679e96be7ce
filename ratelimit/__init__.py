"""Envoy's RateLimitService: limits, algorithms, counter stores."""
