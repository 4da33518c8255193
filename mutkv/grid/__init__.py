"""From a scenario to a dataset: plan, run one group, record, resume, read back, re-execute."""
