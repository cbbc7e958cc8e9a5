"""Is a measured result healthy? Expected against measured, and when it is not, which known causes would look like this."""
