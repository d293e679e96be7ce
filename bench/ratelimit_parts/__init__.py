"""What `bench/ratelimit.py` measures, and with what."""
