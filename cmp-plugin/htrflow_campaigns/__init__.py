"""Reads a campaigns repo, says what is wrong with it, and turns a good one into Kubernetes objects."""

__version__ = "0.1.0"
