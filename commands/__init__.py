"""The commands of a terminal, a file a family: they wire topologies, simulator and predictions to words and JSON, and compute nothing.

Modules here import nothing heavy: a command imports the rooms it needs when it runs, so that --help waits for none of them.
"""
