"""Measurements of an engine beyond cached against full logits, one per file; a scenario names one by ``study``."""

from mutkv.studies import causality, gradients, training_prefix
from mutkv.studies.study import Measurement, Study, Subject

__all__ = ["STUDIES", "Measurement", "Study", "Subject"]

STUDIES: dict[str, Study] = {
    "causality": Study(causality.measure),
    "gradients": Study(gradients.measure, gradients.check),
    "training-prefix": Study(training_prefix.measure, training_prefix.check),
}
