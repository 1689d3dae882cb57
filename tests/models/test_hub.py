"""The models' cache on disk: the layout that huggingface_hub reads, and revisions that say what they stand for."""

from __future__ import annotations

import pathlib
import re

from tests.models import hub, pipeline


def test_every_file_of_a_model_is_in_the_snapshot_that_main_names(tmp_path: pathlib.Path) -> None:
    revisions = hub.lay_out(tmp_path)
    assert set(revisions) == {"demo/regions", "demo/lines", "demo/text"}
    for folder, repository in hub.REPOSITORIES.items():
        cached = tmp_path / "hub" / f"models--{repository.replace('/', '--')}"
        commit = (cached / "refs" / "main").read_text(encoding="utf-8")
        assert commit == revisions[repository]
        assert re.fullmatch("[0-9a-f]{40}", commit)
        names = {path.name for path in (hub.WEIGHTS / folder).iterdir()}
        assert {path.name for path in (cached / "snapshots" / commit).iterdir()} == names
        assert all(
            (cached / "snapshots" / commit / name).read_bytes() == (hub.WEIGHTS / folder / name).read_bytes()
            for name in names
        )


def test_laying_the_cache_out_again_changes_nothing(tmp_path: pathlib.Path) -> None:
    first = hub.lay_out(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert hub.lay_out(tmp_path) == first
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_another_content_and_another_name_are_another_revision(tmp_path: pathlib.Path) -> None:
    one, other, renamed = tmp_path / "one", tmp_path / "other", tmp_path / "renamed"
    for folder, name, content in ((one, "model.pt", "a"), (other, "model.pt", "b"), (renamed, "last.pt", "a")):
        folder.mkdir()
        (folder / name).write_text(content, encoding="utf-8")
    home = tmp_path / "home"
    commits = [hub.add(home, "demo/one", folder) for folder in (one, other, renamed)]
    assert len(set(commits)) == 3
    cached = home / "hub" / "models--demo--one"
    assert (cached / "refs" / "main").read_text(encoding="utf-8") == commits[-1]
    assert {path.name for path in (cached / "snapshots").iterdir()} == set(commits)


def test_the_pipeline_pins_every_model_to_the_revision_in_the_cache(tmp_path: pathlib.Path) -> None:
    revisions = hub.lay_out(tmp_path)
    regions, lines, text, order = pipeline.steps(revisions)["steps"]
    for step, repository in ((regions, "demo/regions"), (lines, "demo/lines")):
        assert step["step"] == "Segmentation"
        assert step["settings"]["model_settings"]["model"] == repository
        assert step["settings"]["model_settings"]["revision"] == revisions[repository]
    settings = text["settings"]["model_settings"]
    assert settings["model"] == "demo/text"
    assert settings["model_kwargs"] == settings["processor_kwargs"] == {"revision": revisions["demo/text"]}
    assert order == {"step": "OrderLines"}


def test_the_weights_are_small_and_say_nothing_of_the_machine_that_made_them() -> None:
    files = [path for path in hub.WEIGHTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6_000_000
    for path in files:
        assert not re.search(rb"/(?:tmp|home|root|usr|opt|site-packages)/", path.read_bytes()), path
