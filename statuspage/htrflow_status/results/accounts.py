"""What a store account's keys are, from what its owner knows."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import typing as t

Derivation = t.Literal["none", "hcp"]

#: In bytes of UTF-8, so that a session fits into a cookie.
_USERNAME_BYTES, _PASSWORD_BYTES = 256, 512
# It is sent as a part of a header.
_ACCESS = re.compile("[!-~]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """An account of the store: the name that its owner uses, and what requests are signed with."""

    username: str
    access: str = dataclasses.field(repr=False)
    secret: str = dataclasses.field(repr=False)


def derived(derivation: Derivation, username: str, password: str) -> Account | None:
    """The account with this name and password, or None if no account can have them.

    ``none``: they are the access key and the secret key themselves. ``hcp``: Hitachi Content Platform's, the name in
    Base64 and the MD5 of the password in hexadecimal digits, as "Authenticating S3 requests" in its manual has it.
    """
    try:
        name, word = username.encode(), password.encode()
    except UnicodeEncodeError:
        return None
    if not (0 < len(name) <= _USERNAME_BYTES and 0 < len(word) <= _PASSWORD_BYTES and username.isprintable()):
        return None
    if derivation == "hcp":
        digest = hashlib.md5(word, usedforsecurity=False).hexdigest()
        return Account(username, base64.b64encode(name).decode(), digest)
    return Account(username, username, password) if _ACCESS.fullmatch(username) else None
