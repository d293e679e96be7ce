"""What `bench/rate_limits.py` measures, and with what."""
