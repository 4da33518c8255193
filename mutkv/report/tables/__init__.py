"""The frames that sum up a run, one module per kind of scenario: from a dataset to tables, without any drawing."""
