"""The programs that tests run against: which they are, and a cache of them outside the repo."""

from tests.tools.cache import MissingError, find, get, install
from tests.tools.programs import PROGRAMS, Program

__all__ = ["PROGRAMS", "MissingError", "Program", "find", "get", "install"]
