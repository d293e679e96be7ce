"""Decides a turn of calls at once: request bytes to plans, plans to one store call, outcomes to answer bytes."""
