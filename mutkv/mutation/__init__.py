"""Mutants: their files, and the two ways to apply one to a package (copy and swap)."""
