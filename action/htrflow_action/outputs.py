"""Hands values on to later steps of the workflow."""

from __future__ import annotations

import pathlib
import secrets
import typing as t


def write(environment: t.Mapping[str, str], **values: str) -> None:
    """Writes outputs into the file that the runner names, in the form that takes any text."""
    path = environment.get("GITHUB_OUTPUT")
    if not path:
        return
    with pathlib.Path(path).open("a", encoding="utf-8") as stream:
        for name, value in values.items():
            end = f"end-{secrets.token_hex(16)}"
            stream.write(f"{name}<<{end}\n{value}\n{end}\n")
