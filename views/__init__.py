"""Results, traces, schedules and topologies -> pictures and words; runs nothing."""
