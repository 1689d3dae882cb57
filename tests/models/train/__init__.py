"""How the weights beside this package came to be: ``python -m tests.models.train``."""
