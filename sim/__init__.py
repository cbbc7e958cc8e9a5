"""Topology x launches x model -> trace and result: when, how fast, what limits it."""
