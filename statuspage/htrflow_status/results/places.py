"""Which keys of the bucket are results."""

from __future__ import annotations

import re
import typing as t

#: S3's limit, in bytes.
_KEY_BYTES = 1024
# docs/s3-layout.md: letters, digits, dots, underscores and hyphens, a letter or digit at both ends. Nothing of it needs
# an encoding in an address, so that a key has one address and no part of it means another folder.
_PART = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY = re.compile(f"{_PART}(?:/{_PART})+")
_PREFIX = re.compile(f"{_PART}(?:/{_PART})*")


class Places:
    """The parts of the bucket that hold results: a prefix for each namespace, such as ``htr-batch``.

    Raises ``ValueError`` if there is none, or one that cannot be a part of a key.
    """

    def __init__(self, prefixes: t.Iterable[str]) -> None:
        self.prefixes = tuple(dict.fromkeys(prefix.removesuffix("/") + "/" for prefix in prefixes))
        wrong = [prefix for prefix in self.prefixes if not _PREFIX.fullmatch(prefix[:-1])]
        if wrong or not self.prefixes:
            raise ValueError(
                f"no place of results, such as htr-batch/: {', '.join(map(repr, wrong)) or 'none is given'}"
            )

    def hold(self, key: str) -> bool:
        """Whether a key can be one of a result."""
        return key.startswith(self.prefixes) and could_be_key(key)


def could_be_key(key: str) -> bool:
    """Whether a key is written as those of results are, whatever place it is of."""
    return len(key) <= _KEY_BYTES and _KEY.fullmatch(key) is not None
