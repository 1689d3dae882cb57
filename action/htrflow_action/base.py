"""Which revision a pull request is compared with, and fetches it when the checkout has no history."""

from __future__ import annotations

import base64
import os
import pathlib
import subprocess
import typing as t

from htrflow_action.event import Event

_SECONDS = 300


class BaseError(Exception):
    """There is no such revision to be had. The message is one sentence."""


class Remote(t.NamedTuple):
    """Where to fetch from, when the checkout kept no credentials."""

    server: str = ""
    token: str = ""


def trust_the_checkout(environment: t.MutableMapping[str, str]) -> None:
    """Lets git read a checkout that belongs to another user, as in a container, and never ask anybody anything."""
    _configure(environment, "safe.directory", "*")
    environment["GIT_TERMINAL_PROMPT"] = "0"


def find(folder: pathlib.Path, event: Event, given: str, remote: Remote) -> str | None:
    """The commit to compare with, or None when there is nothing to compare with. Raises :class:`BaseError`.

    What was checked out for a pull request is the merge of its head into its base, and the base is the first of the two
    that were merged: it is newer than the one in the event when somebody else has merged meanwhile.
    """
    wanted = given or event.base
    if not wanted:
        return None
    parents = _parents(folder)
    if not given and len(parents) == 2 and parents[1] == event.head:
        wanted = parents[0]
    found = _commit(folder, wanted) or _commit(folder, f"refs/remotes/origin/{wanted}")
    if found is None:
        found = _fetched(folder, wanted, remote)
    if found is None:
        raise BaseError(
            f"the base {wanted} is not in this clone and cannot be fetched — write fetch-depth: 0 for actions/checkout"
        )
    # When the head itself was checked out, what others merged meanwhile is none of its changes.
    return _git(folder, "merge-base", found, "HEAD") or found


def _parents(folder: pathlib.Path) -> list[str]:
    # As it is written in the commit: a shallow clone hides the parents from everything else.
    lines = (_git(folder, "cat-file", "commit", "HEAD") or "").partition("\n\n")[0].splitlines()
    return [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]


def _commit(folder: pathlib.Path, name: str) -> str | None:
    return _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def _fetched(folder: pathlib.Path, name: str, remote: Remote) -> str | None:
    shallow = ["--depth=1"] if _git(folder, "rev-parse", "--is-shallow-repository") == "true" else []
    command = ["fetch", "--quiet", "--no-tags", *shallow, "--", "origin", name]
    with_token = dict(os.environ)
    if remote.token and remote.server:
        secret = base64.b64encode(f"x-access-token:{remote.token}".encode()).decode()
        # In the environment, where no list of processes shows it. Two such headers at once are refused, so what the
        # checkout kept comes first.
        _configure(with_token, f"http.{remote.server}/.extraheader", f"AUTHORIZATION: basic {secret}")
    for environment in (None, with_token):
        if _git(folder, *command, environment=environment) is not None:
            return _commit(folder, "FETCH_HEAD")
    return None


def _configure(environment: t.MutableMapping[str, str], key: str, value: str) -> None:
    count = int(environment.get("GIT_CONFIG_COUNT") or 0)
    environment[f"GIT_CONFIG_KEY_{count}"] = key
    environment[f"GIT_CONFIG_VALUE_{count}"] = value
    environment["GIT_CONFIG_COUNT"] = str(count + 1)


def _git(folder: pathlib.Path, *arguments: str, environment: t.Mapping[str, str] | None = None) -> str | None:
    """What git prints, or None when it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()
