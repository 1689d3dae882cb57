"""The image of the plugin, as far as it can be checked without building it."""

from __future__ import annotations

from tests.dockerfiles import TOP, Dockerfile

IMAGE = Dockerfile("cmp-plugin")


def test_the_dockerfile_has_no_lint() -> None:
    assert IMAGE.lint() == (0, "", "")


def test_everything_that_the_dockerfile_copies_is_in_the_repo() -> None:
    assert {"requirements", "cmp-plugin/plugin.yaml"} <= IMAGE.copied()
    assert all((TOP / source).exists() for source in IMAGE.copied())


def test_the_image_runs_argo_cds_server_as_uid_999_and_writes_no_byte_code() -> None:
    last = IMAGE.final()
    assert ("ENTRYPOINT", '["/var/run/argocd/argocd-cmp-server"]') in last
    assert ("USER", "999:999") in last
    assert ("COPY", "cmp-plugin/plugin.yaml /home/argocd/cmp-server/config/plugin.yaml") in last
    (environment,) = (rest for name, rest in last if name == "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment.split()


def test_the_image_holds_only_what_is_locked() -> None:
    installs = IMAGE.installs()
    assert len(installs) == 2
    assert "--require-hashes --requirement requirements/converter.lock" in installs[0]
    assert "--no-deps --build-constraint requirements/dev.lock ." in installs[1]


def test_the_build_is_sent_no_more_than_the_image_needs() -> None:
    assert IMAGE.sent() == IMAGE.copied()
