"""What the tests of both kinds of results share: what was recognised on the samples, and what is stamped on them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from htrflow_batch.provenance import Provenance
from htrflow_batch.xml_text import PageText

RESULTS = Path(__file__).with_name("results")
LINES = ('År 1712 hölls "ting" & syn', "i häradet", "N:o 4")
REGIONS = PageText(1000, 1400, LINES)
WORDS = PageText(1000, 1400, ("Bergh och Son",))
NOTHING = PageText(1000, 1400, ())
PROVENANCE = Provenance(
    image="registry.example.org/htrflow@sha256:" + "a" * 64,
    pipeline_id="demo-v1",
    pipeline_sha256="b" * 64,
    recipe="c" * 64,
    engine="htrflow 0.2.6",
    models=(("Riksarkivet/lines", "d" * 40), ("Riksarkivet/text", "e" * 40)),
    source_url="https://reader:secret@iiif.example.org/a/full/max/0/default.jpg?token=secret",
    campaign="domböcker\n<1712>",
    wrapper_version="0.1.0",
    created="2026-11-29T12:00:00Z",
)
# Any text but halves of pairs, which no UTF-8 file can hold.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("&<>\"'\r\n\t\x1b\x00\u2028😀 åÖ"), max_size=20
)


def sample(name: str) -> str:
    return (RESULTS / f"{name}.xml").read_text("utf-8")
