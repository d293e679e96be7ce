"""A server and a fleet of clients, for measurements."""
