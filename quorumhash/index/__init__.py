"""Exact search by Hamming distance: in memory, in a durable file, in the stores of others."""
