"""``python -m htrflow_batch`` with its parts timed, into the file that ``TIMED`` names."""

from __future__ import annotations

import os
import pathlib
import sys
import time

from benchmarks.timed import Timed
from htrflow_batch import (
    alto,
    annotation_page,
    attempt,
    documents,
    images,
    messages,
    pagexml,
    presentation,
    progress,
    provenance,
)
from htrflow_batch.fetch import Fetcher
from htrflow_batch.run_log import RunLog
from htrflow_batch.s3_store import S3Store
from htrflow_batch.stream import Stream


def main() -> int:
    timed = Timed()
    timed.wrap(Fetcher, "fetch", "fetch")
    timed.wrap(images, "normalise", "decode")
    timed.wrap(alto, "check_alto", "check")
    timed.wrap(pagexml, "check_page", "check")
    timed.wrap(provenance, "stamp_alto", "stamp")
    timed.wrap(provenance, "stamp_page", "stamp")
    timed.wrap(annotation_page, "page", "annotations")
    timed.wrap(S3Store, "put", "S3")
    timed.wrap(S3Store, "head", "S3")
    timed.wrap(presentation, "manifest", "documents")
    timed.wrap(progress, "document", "documents")
    timed.wrap(documents, "to_bytes", "documents")
    timed.wrap(RunLog, "emit", "log")
    timed.wrap(messages.Pipe, "receive", "messages")
    timed.wrap(messages.Pipe, "send", "messages")
    run = Stream.run

    def run_and_note(self: Stream) -> None:
        timed.seconds["start"] = time.process_time()
        run(self)

    Stream.run = run_and_note  # type: ignore[method-assign]
    code = attempt.main()
    timed.write(pathlib.Path(os.environ["TIMED"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
