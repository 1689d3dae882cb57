"""Why something of the results is not to be had: a status, a code for the catalogue, and a sentence."""

from __future__ import annotations

import dataclasses
import typing as t

Code = t.Literal[
    "login_needed",
    "keys_refused",
    "wrong_login",
    "no_right",
    "no_right_at_all",
    "not_found",
    "store_away",
    "store_slow",
    "results_away",
    "results_slow",
    "too_large",
    "range",
    "foreign_origin",
    "too_often",
    "body_kind",
    "body_size",
    "body_form",
    "body_slow",
    "no_session_key",
]

CODES: t.Final[t.AbstractSet[str]] = frozenset(t.get_args(Code))

_SAID: t.Final[t.Mapping[Code, tuple[int, str]]] = {
    "login_needed": (401, "Results are read with an account of the store — log in"),
    "keys_refused": (401, "The store does not accept the keys of this session — log in again"),
    "wrong_login": (401, "The store does not know this user name with this password — check both"),
    "no_right": (403, "The store does not let this account read this — ask whoever gives rights in the store"),
    "no_right_at_all": (403, "This account may not read any results — ask whoever gives rights in the store"),
    "not_found": (404, "There is no such result — check the address, or wait until the volume has come so far"),
    "store_away": (
        502,
        "The store cannot be reached or answers with an error — try again in a while, or tell the platform team",
    ),
    "store_slow": (504, "The store did not answer in time — try again in a while, or tell the platform team"),
    "results_away": (
        502,
        "The results proxy cannot be reached or fails to answer — try again in a while, or tell the platform team",
    ),
    "results_slow": (504, "The results proxy did not answer in time — try again in a while, or tell the platform team"),
    "too_large": (502, "This is larger than any result that is read here — download it instead"),
    "range": (416, "There is nothing at this range — ask for one that the result has"),
    "foreign_origin": (403, "This login does not come from a page of this site — open the site's own login page"),
    "too_often": (429, "There were too many failed logins — wait a while and try again"),
    "body_kind": (415, "A login is JSON or a form — send application/json with username and password"),
    "body_size": (413, "This is too long for a login — send a user name and a password only"),
    "body_form": (400, "This is no login — send a user name and a password, both as text"),
    "body_slow": (408, "The login did not come whole in time — send it again"),
    "no_session_key": (503, "Nobody can log in, for the site has no key for its sessions — tell the platform team"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """What a reader gets in place of a result.

    ``retry_after`` is in seconds, if it is known; ``size`` is the result's in bytes, where a range is outside of it.
    """

    code: Code
    retry_after: int | None = None
    size: int | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return _SAID[self.code][0]

    @property
    def sentence(self) -> str:
        """The sentence in English. The pages word the code in the reader's language."""
        return _SAID[self.code][1]
