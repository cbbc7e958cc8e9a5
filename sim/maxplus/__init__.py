"""The max-plus evaluator: where no link or port is ever shared, times are longest paths, and steps are whole-array operations."""
