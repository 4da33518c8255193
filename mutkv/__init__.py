"""mutkv: mutation testing for checkers of KV caches."""
