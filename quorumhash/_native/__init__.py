"""Loops in C for each family of processors, NumPy where none was compiled: exact search among codes, and sweeps."""
