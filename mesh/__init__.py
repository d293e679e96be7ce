"""The vocabulary that every part shares: services, endpoints, rules, splits, policies.

Pure, frozen values: no I/O, no clock, no Envoy. A change makes a new value, so identity tells what
changed, and two replicas that hold equal values give their Envoys equal bytes.
"""
