"""Search in a volume's text, as the IIIF Content Search API 2.0 has it: https://iiif.io/api/search/2.0/."""

from __future__ import annotations

import asyncio
import typing as t

from htrflow_batch.keys import Keys
from htrflow_status import reading
from htrflow_status.progress import Progress
from htrflow_status.reading import Hit
from htrflow_status.results_of import AT_ONCE, Reader

CONTEXT = "http://iiif.io/api/search/2/context.json"
SEARCH_1 = "http://iiif.io/api/search/1/context.json"
#: Hits of one answer, and characters of a query.
MOST, LONGEST = 500, 200
_AROUND = 40


async def hits(reader: Reader, keys: Keys, query: str, known: Progress) -> list[Hit]:
    """Where the text stands, in the order of the pages. A page that cannot be read holds nothing."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def page(number: int) -> list[Hit]:
        async with slots:
            content = await reader.content(keys.annotations(number))
        return reading.hits(content, query[:LONGEST], MOST) if content else []

    pages = [cell.page for cell in known.cells if cell.state in ("text", "low confidence")]
    found = await asyncio.gather(*map(page, pages)) if query.strip() else []
    return [hit for one in found for hit in one][:MOST]


def answer(found: t.Sequence[Hit], address: str) -> dict[str, t.Any]:
    """The annotation page of Content Search 2: a hit is its line, with the exact words beside it."""
    items, contexts = [], []
    for number, hit in enumerate(found, 1):
        name = f"{address}#{number}"
        items.append(
            {
                "id": name,
                "type": "Annotation",
                "motivation": "supplementing",
                "body": {"type": "TextualBody", "value": hit.text, "format": "text/plain"},
                "target": hit.target,
            }
        )
        selector = {
            "type": "TextQuoteSelector",
            "prefix": hit.text[max(0, hit.start - _AROUND) : hit.start],
            "exact": hit.text[hit.start : hit.end],
            "suffix": hit.text[hit.end : hit.end + _AROUND],
        }
        contexts.append(
            {
                "id": f"{name}-context",
                "type": "Annotation",
                "motivation": "contextualizing",
                "target": {"type": "SpecificResource", "source": name, "selector": [selector]},
            }
        )
    page: dict[str, t.Any] = {"@context": CONTEXT, "id": address, "type": "AnnotationPage", "items": items}
    if contexts:
        page["annotations"] = [{"type": "AnnotationPage", "items": contexts}]
    return page


def old_answer(found: t.Sequence[Hit], address: str) -> dict[str, t.Any]:
    """The same in Content Search 1, which Universal Viewer asks for."""
    resources = [
        {
            "@id": f"{address}#{number}",
            "@type": "oa:Annotation",
            "motivation": "sc:painting",
            "resource": {"@type": "cnt:ContentAsText", "chars": hit.text},
            "on": hit.target,
        }
        for number, hit in enumerate(found, 1)
    ]
    return {
        "@context": ["http://iiif.io/api/presentation/2/context.json", SEARCH_1],
        "@id": address,
        "@type": "sc:AnnotationList",
        "within": {"@type": "sc:Layer", "total": len(found)},
        "startIndex": 0,
        "resources": resources,
        "hits": [
            {
                "@type": "search:Hit",
                "annotations": [f"{address}#{number}"],
                "match": hit.text[hit.start : hit.end],
                "before": hit.text[max(0, hit.start - _AROUND) : hit.start],
                "after": hit.text[hit.end : hit.end + _AROUND],
            }
            for number, hit in enumerate(found, 1)
        ],
    }
