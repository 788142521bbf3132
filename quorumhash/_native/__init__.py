"""Exact search among binary codes: loops in C for each family of processors, and NumPy for where none was compiled."""
