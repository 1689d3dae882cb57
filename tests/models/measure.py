"""How well the models read pages that they never saw, through htrflow: ``python -m tests.models.measure``."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import pathlib
import tempfile
import time
import typing as t

from tests.models import drawing, hub, pipeline

#: Seeds from here on are of no page that the models learnt from or were judged by while they learnt.
UNSEEN = 2_000_000


@dataclasses.dataclass
class Reading:
    """What was read of the drawn lines, one after the other."""

    drawn: list[str] = dataclasses.field(default_factory=list)
    read: list[str] = dataclasses.field(default_factory=list)
    missed_lines: int = 0
    surplus_lines: int = 0
    pages_in_order: int = 0

    def add(self, page: drawing.Page, lines: list[tuple[drawing.Box, str]]) -> None:
        """Compare ``page`` with the lines that were found on it, in their order.

        Every drawn line is compared with the found one that covers most of it; a line that none covers counts as
        read empty.
        """
        best = [
            max(range(len(lines)), key=lambda at: _overlap(line.box, lines[at][0]), default=-1) for line in page.lines
        ]
        seen = []
        for line, at in zip(page.lines, best, strict=True):
            found = at >= 0 and _overlap(line.box, lines[at][0]) > 0.5 * _area(line.box)
            self.drawn.append(line.text)
            self.read.append(lines[at][1] if found else "")
            self.missed_lines += not found
            seen += [at] * found
        self.surplus_lines += max(0, len(lines) - len(page.lines))
        self.pages_in_order += seen == sorted(seen)

    @property
    def error_rate(self) -> float:
        """Character errors per drawn character."""
        import jiwer

        return float(jiwer.cer(self.drawn, self.read))


def _area(box: drawing.Box) -> int:
    return max(0, box[2] - box[0]) * max(0, box[3] - box[1])


def _overlap(one: drawing.Box, other: drawing.Box) -> int:
    left, top = max(one[0], other[0]), max(one[1], other[1])
    return _area((left, top, min(one[2], other[2]), min(one[3], other[3])))


def _reader(work: pathlib.Path, weights: pathlib.Path) -> t.Callable[[pathlib.Path], list[tuple[drawing.Box, str]]]:
    """Reads an image file with the demo's pipeline, offline, from a Hugging Face cache below ``work``."""
    # Read when the libraries are imported.
    os.environ |= {
        "HF_HOME": str(work),
        "HF_HUB_OFFLINE": "1",
        "YOLO_CONFIG_DIR": str(work),
        "YOLO_OFFLINE": "true",
        "YOLO_AUTOINSTALL": "false",
    }
    logging.getLogger("htrflow.models.importer").setLevel(logging.CRITICAL)
    from htrflow.pipeline.pipeline import Pipeline
    from htrflow.volume.volume import Collection

    ready = Pipeline.from_config(pipeline.steps(hub.lay_out(work, weights)))

    def read(path: pathlib.Path) -> list[tuple[drawing.Box, str]]:
        page = ready.run(Collection([str(path)]))[0]
        found = [line for line in page.leaves() if line.depth == 2]
        return [((line.bbox.xmin, line.bbox.ymin, line.bbox.xmax, line.bbox.ymax), line.text or "") for line in found]

    return read


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models.measure", description=__doc__)
    parser.add_argument("--pages", type=int, default=40, help="how many pages of each face (%(default)s)")
    parser.add_argument("--weights", type=pathlib.Path, default=hub.WEIGHTS, help="the models (%(default)s)")
    parser.add_argument("--show", type=int, default=0, help="print so many lines, drawn and read")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        read = _reader(pathlib.Path(work), arguments.weights)
        image = pathlib.Path(work) / "page.jpg"
        for face in drawing.Face:
            reading, seconds = Reading(), 0.0
            # The first page loads the models.
            for seed in range(UNSEEN - 1, UNSEEN + arguments.pages):
                page = drawing.page(seed, face)
                page.image.save(image, quality=90)
                started = time.perf_counter()
                lines = read(image)
                if seed >= UNSEEN:
                    seconds += time.perf_counter() - started
                    reading.add(page, lines)
            for drawn, got in list(zip(reading.drawn, reading.read, strict=True))[: arguments.show]:
                print(f"  {drawn!r}\n  {got!r}")
            exact = sum(drawn == got for drawn, got in zip(reading.drawn, reading.read, strict=True))
            print(
                f"{face.name}: character error rate {reading.error_rate:.2%} on {len(reading.drawn)} lines of "
                f"{arguments.pages} pages, {exact / len(reading.drawn):.0%} of lines exact, {reading.missed_lines} "
                f"missed, {reading.surplus_lines} too many, {reading.pages_in_order} pages in order, "
                f"{seconds / arguments.pages:.2f} s a page",
                flush=True,
            )
        drawing.blank_page(UNSEEN).image.save(image, quality=90)
        print(f"blank page: {len(read(image))} lines")


if __name__ == "__main__":
    main()
