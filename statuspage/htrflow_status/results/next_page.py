"""Where a browser goes after a login."""

from __future__ import annotations

import re

# A path of this site and nothing that a browser, or a proxy that tidies paths, could take for another site's: no second
# slash in it, no backslash, no dots as a folder, nothing outside of ASCII.
_PATH = re.compile(r"/(?:[!$%&'()*+,;=:@A-Za-z0-9._~-]+(?:/[!$%&'()*+,;=:@A-Za-z0-9._~-]+)*/?)?")
_REST = re.compile(r"(?:\?[!$%&'()*+,;=:@A-Za-z0-9._~/?-]*)?(?:#[!$%&'()*+,;=:@A-Za-z0-9._~/?-]*)?")
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
_HIDDEN = re.compile(r"%(?:2f|5c|[01][0-9a-f]|7f)", re.IGNORECASE)
_LONGEST = 2048


def safe(path: str) -> str:
    """The path itself, with its query and fragment, if it is one of this site; else ``/``."""
    end = re.search(r"[?#]", path)
    before, rest = (path[: end.start()], path[end.start() :]) if end else (path, "")
    good = len(path) <= _LONGEST and _PATH.fullmatch(before) and _REST.fullmatch(rest)
    return path if good and not _DOTS.search(before) and not _HIDDEN.search(before) else "/"
