"""Timings of mutkv; no test asserts a time."""
