"""What a library's call costs: its choice, as schedules on its channels, run by the engine on the machine as the protocol sees it."""
