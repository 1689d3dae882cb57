"""A folder: its files, and what it does about links, leftovers and refusals."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time
import typing as t

import pytest

from htrflow_batch.errors import PermanentError
from htrflow_batch.folder_store import FolderStore
from htrflow_batch.store import Exists

XML = "application/xml"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> t.Iterator[FolderStore]:
    store = FolderStore(tmp_path / "results")
    yield store
    store.close()


def test_a_key_is_a_path_and_files_have_the_modes_of_the_umask(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/p/page/0001.xml", b"<x/>", XML)

    file = tmp_path / "results/ns/p/page/0001.xml"
    (tmp_path / "usual").touch()
    (tmp_path / "usual-folder").mkdir()
    assert file.read_bytes() == b"<x/>"
    assert file.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert file.parent.stat().st_mode == (tmp_path / "usual-folder").stat().st_mode


@pytest.mark.parametrize("target", ["elsewhere", "ns"])
def test_nothing_goes_through_a_symbolic_link(folder: FolderStore, tmp_path: pathlib.Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.xml").write_text("secret")
    (tmp_path / "results/ns").mkdir()
    where = tmp_path / target if target == "elsewhere" else tmp_path / "results/ns"
    (tmp_path / "results/link").symlink_to(where)
    (tmp_path / "results/ns/file.xml").symlink_to(tmp_path / "elsewhere/secret.xml")

    for act in (
        lambda: folder.put("link/new.xml", b"", XML),
        lambda: folder.put("link/new.xml", b"", XML, if_none_match=True),
        lambda: folder.get("link/secret.xml"),
        lambda: folder.head("ns/file.xml"),
        lambda: folder.get("ns/file.xml"),
    ):
        with pytest.raises(PermanentError, match=r"a symbolic link, or something else .* remove it"):
            act()
    assert list(folder.list("")) == []
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["secret.xml"]
    assert (tmp_path / "elsewhere/secret.xml").read_text() == "secret"


def test_what_is_no_file_is_refused_and_does_not_keep_anyone_waiting(
    folder: FolderStore, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "results/pipe")
    folder.put("ns/key", b"", XML)

    acts: list[t.Callable[[], object]] = [
        lambda: folder.get("pipe"),
        lambda: folder.get("ns"),
        lambda: folder.put("ns", b"", XML),
        lambda: folder.put("ns/key/below", b"", XML),
        lambda: folder.put("ns/" + "x" * 300, b"", XML),
    ]
    for act in acts:
        with pytest.raises(PermanentError, match="in its place"):
            act()
    assert [row.key for row in folder.list("")] == ["ns/key"]


def test_a_file_that_someone_else_replaced_has_no_metadata(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/a.xml", b"<a/>", XML, metadata={"recipe": "1"})
    (tmp_path / "results/ns/a.xml").write_bytes(b"<b/>")

    info = folder.head("ns/a.xml")

    assert info is not None
    assert (info.content_type, info.metadata) == (XML, {})


def test_a_second_store_finds_what_the_first_one_wrote(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    folder.put("ns/a.xml", b"<a/>", XML, metadata={"recipe": "1"})

    other = FolderStore(tmp_path / "results")
    assert other.get("ns/a.xml") == folder.get("ns/a.xml")
    other.close()


def test_metadata_that_is_not_given_again_is_gone(folder: FolderStore) -> None:
    folder.put("ns/a.xml", b"same", XML, metadata={"recipe": "1"})
    folder.put("ns/a.xml", b"same", XML)

    info = folder.head("ns/a.xml")

    assert info is not None
    assert info.metadata == {}


def test_nothing_is_left_of_what_was_replaced_or_refused(folder: FolderStore, tmp_path: pathlib.Path) -> None:
    for number in range(5):
        folder.put("ns/a.xml", b"%d" % number, XML, metadata={"number": str(number)})
    with pytest.raises(Exists):
        folder.put("ns/a.xml", b"late", XML, if_none_match=True)

    own = tmp_path / "results/.store"
    assert list((own / "unfinished").iterdir()) == []
    (note,) = (own / "about").iterdir()
    assert json.loads(note.read_text()) == {"key": "ns/a.xml", "content_type": XML, "metadata": {"number": "4"}}


def test_what_a_killed_writer_left_is_no_result_and_is_removed_a_day_later(tmp_path: pathlib.Path) -> None:
    program = textwrap.dedent("""
        import os, pathlib, signal, stat, sys
        from htrflow_batch.folder_store import FolderStore
        store = FolderStore(pathlib.Path(sys.argv[1]))
        os.fsync = lambda file: stat.S_ISREG(os.fstat(file).st_mode) and os.kill(os.getpid(), signal.SIGKILL)
        store.put("key", b"half", "text/plain")
    """)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    left = tmp_path / ".store/unfinished"

    FolderStore(tmp_path).close()
    (file,) = left.iterdir()
    os.utime(file, (time.time() - 90_000,) * 2)
    again = FolderStore(tmp_path)

    assert list(left.iterdir()) == []
    assert (again.get("key"), list(again.list(""))) == (None, [])
    again.close()


def _limited(folder: pathlib.Path, before: str) -> tuple[str, str]:
    """The kind and message of the error of a write in a process of its own, which first does something."""
    program = textwrap.dedent("""
        import os, pathlib, resource, sys
        from htrflow_batch.folder_store import FolderStore
        store = FolderStore(pathlib.Path(sys.argv[1]))
        store.put("ns/key", b"old", "text/plain")
        exec(sys.argv[2])
        try:
            store.put("ns/key", b"x" * 10_000, "text/plain")
        except Exception as error:
            os.seteuid(os.getuid())
            print(type(error).__name__, store.get("ns/key").content == b"old", error, sep="|")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), before], capture_output=True, text=True, check=True
    )
    kind, same, message = done.stdout.strip().split("|")
    assert same == "True"
    return kind, message


def test_no_room_is_an_error_for_a_while_and_the_old_content_stays(tmp_path: pathlib.Path) -> None:
    kind, message = _limited(tmp_path / "results", "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))")

    assert kind == "TransientError"
    assert message.endswith(
        f"ns/key in the folder {tmp_path / 'results'}: there is no room left — free some, or use another folder"
    )
    assert list((tmp_path / "results/.store/unfinished").iterdir()) == []


def test_a_folder_that_may_not_be_written_is_a_permanent_error(tmp_path: pathlib.Path) -> None:
    # Root may write everywhere.
    before = "(pathlib.Path(sys.argv[1]) / '.store/unfinished').chmod(0o555); os.geteuid() or os.seteuid(65534)"
    kind, message = _limited(tmp_path, before)

    assert kind == "PermanentError"
    assert "it is not allowed — let the user" in message


def test_a_file_in_place_of_the_folder_is_a_permanent_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "results").touch()
    with pytest.raises(PermanentError, match="cannot use it in the folder"):
        FolderStore(tmp_path / "results")
