"""Kueue's own manifests, as JSON, since a cluster that starts has no time for 40 000 lines of YAML."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

#: Where Kueue has the certificate of its visibility API, relative to the folder it runs in.
VISIBILITY_FOLDER = "visibility"


def write_manifests(folder: pathlib.Path) -> None:
    """Writes ``share/manifests.json``: a list of all objects of Kueue's default installation.

    The kinds lose their prose, of which an API server makes much work when it begins to serve them.
    """
    import yaml

    from tests.tools.cache import find

    command = [str(find("kubectl")), "kustomize", str(folder / "share/config/default")]
    built = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    objects = [_without_descriptions(item) for item in yaml.load_all(built, loader) if item]
    (folder / "share/manifests.json").write_text(json.dumps(objects), encoding="utf-8")


def _without_descriptions(part: t.Any) -> t.Any:
    if isinstance(part, dict):
        # A field that is itself called so is an object.
        kept = {key: value for key, value in part.items() if key != "description" or not isinstance(value, str)}
        return {key: _without_descriptions(value) for key, value in kept.items()}
    return [_without_descriptions(item) for item in part] if isinstance(part, list) else part
