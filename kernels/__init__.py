"""Schedule x real arrays -> arrays and a trace; one file an executor. Knows nothing of the simulator."""
