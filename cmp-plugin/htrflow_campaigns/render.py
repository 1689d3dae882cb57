"""Writes the objects of a campaigns repo into a folder, one file for each of the user's files."""

from __future__ import annotations

import pathlib
import tempfile
import typing as t

from htrflow_campaigns import names, yaml_writer
from htrflow_campaigns.delivery import Delivery
from htrflow_campaigns.load import Loaded

#: A file below the output folder is ours when it says so near its start.
_OURS = f"{names.MANAGED_BY_LABEL}: {names.MANAGED_BY}"
_HEAD_CHARACTERS = 2000


class Written(t.NamedTuple):
    """What a render did, as paths relative to the output folder."""

    written: list[str]
    unchanged: list[str]
    removed: list[str]


def files(loaded: Loaded, delivery: Delivery) -> t.Iterator[tuple[str, str]]:
    """The path and text of each rendered file: ``campaigns/<name>.yaml`` and ``pipelines/<id>.yaml``.

    Whatever is wrong with a campaign is among ``loaded.problems`` at the end, and its file is left out.
    """
    assert loaded.converter is not None
    for id_, pipeline in loaded.pipelines.items():
        yield f"pipelines/{id_}.yaml", yaml_writer.dump_all(delivery.pipeline(pipeline, loaded.converter))
    for campaign, _ in loaded.campaigns():
        if own := loaded.pipelines.get(campaign.pipeline):
            objects = delivery.campaign(campaign, own, loaded.converter)
            yield f"campaigns/{campaign.name}.yaml", yaml_writer.dump_all(objects)


def render(loaded: Loaded, delivery: Delivery, out: pathlib.Path) -> Written | None:
    """Writes every file, or none: nothing below ``out`` changes when the repo turns out to be bad (None) or the disk
    is full (:class:`OSError`).

    Files of ours that no longer have a source are removed. Others stay, and so do files that would not change.
    """
    if not loaded.is_good():
        return None
    out.mkdir(parents=True, exist_ok=True)
    # Beside their final places, so that each is moved and never copied.
    with tempfile.TemporaryDirectory(prefix=".rendering-", dir=out) as staging_name:
        staging = pathlib.Path(staging_name)
        rendered = []
        for path, text in files(loaded, delivery):
            staged = staging / path
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(text, encoding="utf-8", newline="\n")
            rendered.append(path)
        if not loaded.is_good():
            return None
        unchanged = [path for path in rendered if _same(staging / path, out / path)]
        written = sorted({*rendered} - {*unchanged})
        removed = sorted({*_ours(out)} - {*rendered})
        for path in written:
            (out / path).parent.mkdir(exist_ok=True)
            (staging / path).replace(out / path)
        for path in removed:
            (out / path).unlink()
    return Written(written, sorted(unchanged), removed)


def _same(staged: pathlib.Path, current: pathlib.Path) -> bool:
    return current.is_file() and not current.is_symlink() and staged.read_bytes() == current.read_bytes()


def _ours(out: pathlib.Path) -> t.Iterator[str]:
    for folder in ("campaigns", "pipelines"):
        for file in (out / folder).glob("*.yaml"):
            if file.is_file() and not file.is_symlink():
                with file.open(encoding="utf-8", errors="replace") as stream:
                    if _OURS in stream.read(_HEAD_CHARACTERS):
                        yield f"{folder}/{file.name}"
