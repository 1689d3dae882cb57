"""Repos that break the converter's rules, and repos that break none.

``bad/<rule>/<case>/`` holds the files that differ from the good repo of the fixture ``repo``, and ``expected.txt``: all
that is said about the result. Beside the files of the repo a case may have

* ``DELETE``: paths to delete from the good repo, one a line;
* ``BASE/``: what the repo was before the change; the case is then a change in a git repository;
* ``VALUES``: values of the chart, against which the repo is held;
* ``ENVIRONMENT``: variables of the plugin's container.

``good/<case>/`` is the same without ``expected.txt``. What cannot be committed as a file is built by a function. Rules
about the plugin (``HTR6xx``) are broken with ``generate``, all others with ``validate``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import shutil
import socket
import subprocess
import typing as t

from htrflow_campaigns import cli

if t.TYPE_CHECKING:
    import pytest

    from tests.cmp_plugin.conftest import Repo

HERE = pathlib.Path(__file__).parent
BAD, GOOD = HERE / "bad", HERE / "good"
NO_FILES = ("expected.txt", "DELETE", "VALUES", "ENVIRONMENT")

LETTERS = "pipeline: demo-v1\nvolumes:\n  - R0001203\n"


def cases(top: pathlib.Path, depth: int) -> list[str]:
    return sorted(folder.relative_to(top).as_posix() for folder in top.glob("/".join("*" * depth)) if folder.is_dir())


BAD_CASES, GOOD_CASES = cases(BAD, 2), cases(GOOD, 1)

Build = t.Callable[[pathlib.Path], None]


def content(path: str, data: bytes) -> Build:
    """A file with bytes that a text file cannot hold, or too many of them."""

    def build(top: pathlib.Path) -> None:
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_bytes(data)

    return build


def link(path: str, target: str) -> Build:
    def build(top: pathlib.Path) -> None:
        (top / path).unlink(missing_ok=True)
        (top / path).symlink_to(target)

    return build


def folder(path: str) -> Build:
    def build(top: pathlib.Path) -> None:
        (top / path).unlink(missing_ok=True)
        (top / path).mkdir(parents=True)

    return build


def socket_at(path: str) -> Build:
    def build(top: pathlib.Path) -> None:
        # A socket's address is short; the folder of a test is not.
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(top):
            server.bind(path)

    return build


def moved(path: str, to: str) -> Build:
    def build(top: pathlib.Path) -> None:
        (top / path).rename(top / to)

    return build


def gone(path: str) -> Build:
    """Without a file, or a folder and all that is in it."""

    def build(top: pathlib.Path) -> None:
        if (top / path).is_dir():
            shutil.rmtree(top / path)
        else:
            (top / path).unlink()

    return build


def pipe(path: str) -> Build:
    def build(top: pathlib.Path) -> None:
        (top / path).unlink(missing_ok=True)
        os.mkfifo(top / path)

    return build


def in_turn(*builds: Build) -> Build:
    def build(top: pathlib.Path) -> None:
        for step in builds:
            step(top)

    return build


def _images(count: int) -> str:
    return "".join(f"      - https://iiif.example.org/loose-scans/{number:06}.jpg\n" for number in range(count))


def _pipeline(top: pathlib.Path) -> None:
    file = top / "pipelines/demo-v1.yaml"
    settings = f"      generation_settings: {{x: {'y' * 930_000}}}\n"
    file.write_text(file.read_text("utf-8").replace("model: yolo\n", f"model: yolo\n{settings}", 1), "utf-8")


def _many_campaigns(top: pathlib.Path) -> None:
    for number in range(4):
        volumes = "".join(f"  - R{number}{volume:07}\n" for volume in range(5000))
        (top / f"campaigns/letters-{number}.yaml").write_text(f"pipeline: demo-v1\nvolumes:\n{volumes}")


SWEDISH = "pipeline: demo-v1 # för häradsrätten\nvolumes:\n  - R0001203\n"
BUILT: dict[str, Build] = {
    "HTR001-not-utf8/latin-1": content("campaigns/letters.yaml", SWEDISH.encode("latin-1")),
    "HTR001-not-utf8/utf-16": content("campaigns/letters.yaml", SWEDISH.encode("utf-16")),
    "HTR001-not-utf8/utf-16-without-a-mark": content("campaigns/letters.yaml", LETTERS.encode("utf-16-le")),
    "HTR001-not-utf8/cut-off": content("campaigns/letters.yaml", SWEDISH.encode()[:22]),
    "HTR001-not-utf8/converter": content("converter.yaml", "# för häradsrätten\n".encode("cp1252")),
    "HTR001-not-utf8/half-a-pair": content("campaigns/letters.yaml", LETTERS.encode() + b"# \xed\xa0\x80\n"),
    "HTR002-control-character/null": content("campaigns/letters.yaml", LETTERS.encode() + b"  - R000\x001204\n"),
    "HTR002-control-character/escape": content("campaigns/letters.yaml", b"pipeline: \x1b[1mdemo-v1\n"),
    "HTR002-control-character/delete": content("campaigns/letters.yaml", LETTERS.encode() + b"  - R0001204\x7f\n"),
    "HTR001-not-utf8/no-text-at-all": content("campaigns/letters.yaml", b"\x1f\x8b\x08\x00"),
    "HTR002-control-character/form-feed": content("campaigns/letters.yaml", b"\x0c" + LETTERS.encode()),
    "HTR008-file-too-large/bytes": content("campaigns/letters.yaml", LETTERS.encode() + b"#" * 11 * 2**20),
    "HTR008-file-too-large/values": content(
        "campaigns/letters.yaml", b"pipeline: demo-v1\nvolumes:\n" + b"  - R0001203\n" * 400_001
    ),
    "HTR012-byte-order-mark/campaign": content("campaigns/letters.yaml", b"\xef\xbb\xbf" + LETTERS.encode()),
    "HTR012-byte-order-mark/with-a-problem": content("campaigns/letters.yaml", b"\xef\xbb\xbfpipline: demo-v1\n"),
    "HTR012-byte-order-mark/alone": content("campaigns/letters.yaml", b"\xef\xbb\xbf"),
    "HTR013-symbolic-link/out-of-the-repo": in_turn(
        content("../letters.yaml", LETTERS.encode()), link("campaigns/letters.yaml", "../../letters.yaml")
    ),
    "HTR013-symbolic-link/absolute": link("campaigns/letters.yaml", "/etc/hostname"),
    "HTR013-symbolic-link/nowhere": link("campaigns/more-letters.yaml", "gone.yaml"),
    "HTR013-symbolic-link/circle": link("campaigns/more-letters.yaml", "more-letters.yaml"),
    "HTR013-symbolic-link/converter": link("converter.yaml", "/etc/hostname"),
    "HTR013-symbolic-link/folder-of-campaigns": in_turn(moved("campaigns", "letters"), link("campaigns", "letters")),
    "HTR013-symbolic-link/folder-of-many-years": in_turn(folder("more"), link("campaigns/2024", "../more")),
    "HTR014-not-a-file/folder": folder("campaigns/more-letters.yaml"),
    "HTR014-not-a-file/converter": folder("converter.yaml"),
    "HTR014-not-a-file/pipe": pipe("campaigns/more-letters.yaml"),
    "HTR014-not-a-file/converter-as-a-pipe": pipe("converter.yaml"),
    "HTR014-not-a-file/socket": socket_at("campaigns/more-letters.yaml"),
    "HTR014-not-a-file/link-to-a-folder": in_turn(folder("more"), link("campaigns/more.yaml", "../more")),
    "HTR018-converter-missing/empty-folder": in_turn(gone("converter.yaml"), gone("campaigns"), gone("pipelines")),
    "HTR019-file-name/line-break": content("campaigns/more\nletters.yaml", LETTERS.encode()),
    "HTR019-file-name/latin-1": content(os.fsdecode(b"campaigns/h\xe4rad.yaml"), LETTERS.encode()),
    "HTR019-file-name/direction-mark": content("campaigns/more-\u202eletters.yaml", LETTERS.encode()),
    "HTR020-not-a-folder/campaigns": in_turn(gone("campaigns"), content("campaigns", b"letters\n")),
    "HTR314-too-many-volumes/one-too-many": content(
        "campaigns/letters.yaml",
        b"pipeline: demo-v1\nvolumes:\n" + b"".join(b"  - R%07d\n" % number for number in range(100_001)),
    ),
    "HTR309-volume-too-long/images": content(
        "campaigns/letters.yaml",
        f"pipeline: demo-v1\nvolumes:\n  - R0001203\n  - id: loose-scans\n    images:\n{_images(2300)}".encode(),
    ),
    "HTR412-pipeline-too-large/settings": _pipeline,
    "HTR603-too-much-output/one-mib": _many_campaigns,
}
BUILT_GOOD: dict[str, Build] = {
    "line-ends-of-windows": content("campaigns/letters.yaml", LETTERS.replace("\n", "\r\n").encode()),
    "line-ends-of-old-macs": content("campaigns/letters.yaml", LETTERS.replace("\n", "\r").encode()),
    "no-line-end-at-the-end": content("campaigns/letters.yaml", LETTERS.rstrip().encode()),
    "link-inside-the-repo": link("campaigns/same-letters.yaml", "../shared/letters.yaml"),
    "images-of-almost-100-kib": content(
        "campaigns/letters.yaml", f"pipeline: demo-v1\nvolumes:\n  - id: scans\n    images:\n{_images(2100)}".encode()
    ),
    "campaign-of-several-parts": content(
        "campaigns/letters.yaml",
        b"pipeline: demo-v1\nvolumes:\n" + b"".join(b"  - R%07d\n" % number for number in range(25_000)),
    ),
}
BUILT_GOOD["link-inside-the-repo"] = in_turn(
    folder("shared"),
    content("shared/letters.yaml", b"pipeline: demo-v1\nvolumes:\n  - R0001204\n"),
    BUILT_GOOD["link-inside-the-repo"],
)


def lay_over(source: pathlib.Path, target: pathlib.Path) -> None:
    """Puts the files of a case into a repo."""
    if (deleted := source / "DELETE").is_file():
        for path in deleted.read_text("utf-8").splitlines():
            (target / path).unlink()
    for file in source.rglob("*"):
        inside = file.relative_to(source)
        if file.is_file() and inside.parts[0] not in (*NO_FILES, "BASE"):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / inside)


def commit(top: pathlib.Path) -> None:
    """Commits all files of the folder, which becomes a git repository."""
    identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "--all", "."], [*identity, "commit", "--quiet", "-m", "letters"]):
        subprocess.run(["git", "-C", str(top), *arguments], check=True, stdin=subprocess.DEVNULL)


def set_up(case: str, repo: Repo) -> list[str]:
    """Makes ``repo`` the repo of a bad case. Gives the options that ``validate`` needs to see what is wrong."""
    source = BAD / case
    options: list[str] = []
    if (source / "BASE").is_dir():
        lay_over(source / "BASE", repo.path)
        commit(repo.path)
        options = ["--base", "HEAD"]
    if (source / "VALUES").is_file():
        options += ["--values", str(source / "VALUES")]
    lay_over(source, repo.path)
    if case in BUILT:
        BUILT[case](repo.path)
    return options


def validate(repo: Repo, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code and output of ``validate``, run in this process: there are hundreds of cases."""
    try:
        code = cli.main(["validate", str(repo.path), *options])
    finally:
        gc.enable()
    said = capsys.readouterr()
    assert said.err == ""
    return code, said.out


def run(case: str, repo: Repo, capsys: pytest.CaptureFixture[str], options: t.Sequence[str]) -> tuple[int, str]:
    """The exit code, and all that is said about a bad case that is set up."""
    if not case.startswith("HTR6"):
        return validate(repo, capsys, *options)
    file = BAD / case / "ENVIRONMENT"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    done = repo.run("generate", environment=dict(line.split("=", 1) for line in lines))
    assert (done.stdout == "") == (done.returncode != 0)
    return done.returncode, done.stderr
