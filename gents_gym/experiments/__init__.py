"""The paper's experiments, each by one command: a name in, a page with its figures and verdicts out."""
