"""The event engine's meaning on flat arrays, compiled. Numba is imported only to compile, the first time."""
