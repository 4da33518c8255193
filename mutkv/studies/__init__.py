"""Measurements of an engine beyond cached against full logits, one per file; a scenario names one by ``study``."""

from mutkv.studies import causality, gradients, training_prefix
from mutkv.studies.study import Measurement, Study, Subject

__all__ = ["STUDIES", "Measurement", "Study", "Subject"]

STUDIES: dict[str, Study] = {
    "causality": causality.causality,
    "gradients": gradients.gradients,
    "training-prefix": training_prefix.training_prefix,
}
