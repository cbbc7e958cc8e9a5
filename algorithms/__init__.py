"""Number of ranks, groups, shape -> ``Schedule``: which chunk goes where, in which order. Never a link, a byte or a second."""
