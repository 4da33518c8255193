"""Measurements of an engine beyond cached against full logits, one per file; a scenario names one by ``study``."""

from mutkv.studies.causality import causality
from mutkv.studies.gradients import gradients
from mutkv.studies.study import Measurement, Study, Subject
from mutkv.studies.training_prefix import training_prefix

__all__ = ["STUDIES", "Measurement", "Study", "Subject"]

STUDIES: dict[str, Study] = {"causality": causality, "gradients": gradients, "training-prefix": training_prefix}
