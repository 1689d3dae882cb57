"""As what a result is handed to a browser: by its name, and never by what the bucket says of it.

Whoever may write into the bucket would else decide what runs at the site's address.
"""

from __future__ import annotations

import typing as t

_TEXT: t.Final = "text/plain; charset=utf-8"
_BY_ENDING: t.Final[t.Mapping[str, str]] = {
    "json": "application/json",
    "xml": "application/xml",
    "txt": _TEXT,
    "yaml": _TEXT,
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "jp2": "image/jp2",
}
# What browsers would run or lay out, as text to look at.
_PAGES: t.Final = ("html", "htm", "xhtml", "xht", "shtml", "mhtml", "mht", "svg", "svgz", "md", "rdf", "atom", "rss")
_PROGRAMS: t.Final = ("js", "mjs", "cjs", "css", "wasm", "swf", "hta", "xsl", "xslt")
_AS_TEXT: t.Final = frozenset({*_PAGES, *_PROGRAMS, "csv", "log"})

#: Headers of everything below ``/results/``. An XML file may hold a page of XHTML: in a sandbox nothing of it runs.
HEADERS: t.Final[t.Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not `no-referrer`, with which browsers send no origin with a form.
    "Referrer-Policy": "same-origin",
    # A browser keeps it and asks each time, since somebody else may have logged in meanwhile.
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie",
}


def content_type(key: str) -> str:
    """The content type for a key. One whose ending is unknown is bytes, which browsers save."""
    ending = key.rpartition("/")[2].rpartition(".")[2].lower()
    return _TEXT if ending in _AS_TEXT else _BY_ENDING.get(ending, "application/octet-stream")
