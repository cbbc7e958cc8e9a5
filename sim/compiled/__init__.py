"""The event engine's meaning on flat arrays, compiled. Nothing of numba is imported before ``sim.compiled.engine`` is."""
