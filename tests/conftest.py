"""One thread, as the workers have, and generated examples that are the same on every run."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: tiny tensors crawl on many threads

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutkv", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("mutkv")
