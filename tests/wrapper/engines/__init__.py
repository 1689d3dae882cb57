"""Engines for tests, in place of the library. A test names one by its module in the variable ``ENGINE``."""
