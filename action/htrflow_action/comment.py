"""Keeps one comment on a pull request up to date."""

from __future__ import annotations

import typing as t
import urllib.parse

from htrflow_action import summary
from htrflow_action.github_api import Api, ApiError

#: GitHub takes 65 536 characters of a comment, and counts those outside of the basic plane twice.
_BYTES = 60_000
_PAGE, _PAGES = 100, 100
#: Whose comment may be ours. Anybody could write one with our mark into it.
_TRUSTED = ("OWNER", "MEMBER", "COLLABORATOR")
_DENIED = (401, 403, 404)


def marker(path: str) -> str:
    """What a comment of ours starts with: a repository may hold several campaigns repos, each with a comment."""
    # Two hyphens would end the comment of HTML.
    return f"<!-- htrflow-campaigns plan of {urllib.parse.quote(path).replace('-', '%2D')} -->"


def body(path: str, said: str, plan: str) -> str:
    """The comment: ``said`` in a sentence of plain text, and the plan."""
    shown, is_whole = summary.cut(plan, _BYTES)
    place = "" if path == "." else f"### {summary.escape(path)}\n\n"
    rest = "" if is_whole else "\nThe plan goes on in the summary of the check.\n"
    return f"{marker(path)}\n{place}{summary.escape(said)}\n\n{shown}{rest}"


def keep(api: Api, repository: str, number: int, text: str) -> str | None:
    """Writes ``text``, which starts with its marker, over the comment with that marker, or as a new one.

    Gives a sentence on what kept it from being written, or None.
    """
    mark = text.partition("\n")[0]
    try:
        for comment in _comments(api, repository, number):
            if str(comment.get("body") or "").startswith(mark) and _may_be_ours(comment):
                if _same(comment["body"], text):
                    return None
                try:
                    api.request("PATCH", f"/repos/{repository}/issues/comments/{comment['id']}", {"body": text})
                except ApiError as error:
                    # It is somebody else's after all.
                    if error.status not in _DENIED:
                        raise
                else:
                    return None
        api.request("POST", f"/repos/{repository}/issues/{number}/comments", {"body": text})
    except ApiError as error:
        if error.status in _DENIED:
            return (
                "The plan is not in a comment: this run may not write on pull requests. A pull request from a fork"
                " never may; for others, write pull-requests: write under permissions"
            )
        return f"The plan is not in a comment: {error}"
    return None


def _comments(api: Api, repository: str, number: int) -> t.Iterator[dict[str, t.Any]]:
    for page in range(1, _PAGES + 1):
        found = api.request("GET", f"/repos/{repository}/issues/{number}/comments?per_page={_PAGE}&page={page}")
        if not isinstance(found, list):
            raise ApiError("GitHub answered with something else than a list of comments")
        yield from found
        if len(found) < _PAGE:
            return


def _may_be_ours(comment: t.Mapping[str, t.Any]) -> bool:
    user = comment.get("user") or {}
    return user.get("type") == "Bot" or comment.get("author_association") in _TRUSTED


def _same(written: str, text: str) -> bool:
    return written.replace("\r\n", "\n").rstrip() == text.rstrip()
