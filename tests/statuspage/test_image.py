"""The image of the site and the results proxy, as far as it can be checked without building it."""

from __future__ import annotations

import re

from tests.dockerfiles import TOP, Dockerfile
from tests.tools.programs import PROGRAMS
from tests.tools.sources import Npm

IMAGE = Dockerfile("statuspage")


def test_the_dockerfile_has_no_lint() -> None:
    assert IMAGE.lint() == (0, "", "")


def test_everything_that_the_dockerfile_copies_is_in_the_repo_and_nothing_else_is_sent_to_the_build() -> None:
    assert all((TOP / source).exists() for source in IMAGE.copied())
    assert IMAGE.sent() == IMAGE.copied()


def test_the_container_is_the_site_run_as_uid_1000_and_writes_nothing() -> None:
    assert ("USER", "1000:1000") in IMAGE.final()
    assert [rest for name, rest in IMAGE.final() if name in ("ENTRYPOINT", "CMD")] == [
        '["python", "-m", "htrflow_status"]',
        '["web"]',
    ]
    assert IMAGE.variables()["PYTHONDONTWRITEBYTECODE"] == "1"
    assert IMAGE.variables()["VIEWER"] == "/opt/universalviewer"


def test_the_image_holds_only_what_is_locked() -> None:
    locked, own = IMAGE.installs()
    assert "--require-hashes --requirement requirements/statuspage.lock" in locked
    assert "--no-deps --build-constraint requirements/dev.lock ." in own


def test_the_viewer_is_the_one_that_tests_run_and_is_checked() -> None:
    (program,) = (program for program in PROGRAMS if program.name == "universalviewer")
    assert isinstance(program.source, Npm)
    arguments = dict(rest.split("=", 1) for name, rest in IMAGE.instructions() if name == "ARG")
    assert arguments["VIEWER_VERSION"] == program.version
    assert arguments["VIEWER_INTEGRITY"] == program.source.integrity
    text = IMAGE.path.read_text("utf-8")
    assert text.index("made.integrity !== process.argv[1]") < text.index("tar --extract")
    assert not re.search(r"https?://", text)
