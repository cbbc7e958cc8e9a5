"""Measured tables and predicted tables: what each algorithm would cost, and how far a log is from it."""
