"""Learns how long a page takes from ``manifest.json`` of volumes that the same recipe has read."""

from __future__ import annotations

import datetime
import ipaddress
import json
import time
import typing as t
import urllib.parse

import requests

from htrflow_batch import addresses, connections, errors, fetch, hosts
from htrflow_campaigns import recipe
from htrflow_campaigns.model import Pipeline
from htrflow_campaigns.plan import hours

USER, PASSWORD = "HTRFLOW_RESULTS_USER", "HTRFLOW_RESULTS_PASSWORD"
#: Volumes of one pipeline that are looked at, and the largest manifest.json: ten thousand pages take about 5 MB.
_MOST, _BYTES = 20, 16 * 1024 * 1024
_SECONDS = 10.0


class ResultsError(Exception):
    """The results cannot be asked. The message is one sentence."""


class Results:
    """The results site at ``address``, which ends in ``/results``. ``seconds`` bound all that is asked of it."""

    def __init__(self, address: str, environment: t.Mapping[str, str], seconds: float) -> None:
        self._address = address.rstrip("/")
        self._end = time.monotonic() + seconds
        parts = urllib.parse.urlsplit(self._address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ResultsError("--results is no address of results — give the address that ends in /results")
        headers = {}
        user, password = environment.get(USER, ""), environment.get(PASSWORD, "")
        if bool(user) != bool(password):
            raise ResultsError(f"only one of {USER} and {PASSWORD} is set — set both, or none")
        if user and parts.scheme == "http" and not _is_here(parts.hostname):
            raise ResultsError(
                "a password is not sent over http, where others read it — give the https address of --results"
            )
        if user:
            headers[addresses.host(self._address)] = {"Cookie": self._log_in(parts, user, password)}
        self._fetcher = fetch.Fetcher(
            None,
            headers,
            limits=hosts.Hosts(2, patience=5.0),
            connect_seconds=_SECONDS,
            silence_seconds=_SECONDS,
            whole_seconds=3 * _SECONDS,
        )

    def rate(self, pipeline: Pipeline, namespace: str, volumes: t.Sequence[str]) -> tuple[hours.Rate | None, str]:
        """The rate of a pipeline, or None and why there is none, in words."""
        if not volumes:
            return None, f"no volume ran with the pipeline {pipeline.id} before"
        step = max(1, len(volumes) // _MOST)
        found, fault = [], ""
        for volume in volumes[::step][:_MOST]:
            if time.monotonic() > self._end:
                fault = fault or "the time for asking the results site was over"
                break
            try:
                if (one := self._volume(pipeline, namespace, volume)) is not None:
                    found.append(one)
            except (errors.PageError, errors.LaterError) as error:
                if isinstance(error, fetch.Refused) and error.status in (401, 403):
                    return None, f"the results site wants a login for {namespace} — set {USER} and {PASSWORD}"
                if isinstance(error, errors.LaterError):
                    return None, "the results site could not be reached"
        rate = hours.measured(found)
        few = f"only {len(found)} volumes that the pipeline {pipeline.id} has read say how long it took"
        return rate, "" if rate else fault or few

    def close(self) -> None:
        self._fetcher.close()

    def _volume(self, pipeline: Pipeline, namespace: str, volume: str) -> tuple[int, float] | None:
        """The pages that came out and the seconds that they took; None where that is not known."""
        path = "/".join(urllib.parse.quote(part, safe="") for part in (namespace, pipeline.id, volume))
        try:
            content = self._fetcher.fetch(
                f"{self._address}/{path}/manifest.json", limit_bytes=_BYTES, kind="json"
            ).content
        except fetch.Refused as error:
            if error.status == requests.codes.not_found:
                return None
            raise
        try:
            return _timed(json.loads(content), recipe.recipe_sha256(pipeline))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _log_in(self, parts: urllib.parse.SplitResult, user: str, password: str) -> str:
        """The session's cookie. A redirect is not followed: it could carry the password elsewhere."""
        origin = f"{parts.scheme}://{parts.netloc}"
        try:
            with requests.Session() as session:
                session.trust_env = False
                session.mount("http://", connections.Adapter())
                session.mount("https://", connections.Adapter())
                answer = session.post(
                    f"{self._address}/_login",
                    json={"username": user, "password": password},
                    headers={"Origin": origin},
                    timeout=_SECONDS,
                    allow_redirects=False,
                )
                cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in answer.cookies)
        except requests.RequestException:
            raise ResultsError("the results site could not be reached to log in — check --results") from None
        if answer.status_code != requests.codes.ok or not cookies:
            said = f"the results site answered {answer.status_code} to the login"
            raise ResultsError(f"{said} — check --results, {USER} and {PASSWORD}")
        return cookies


def _is_here(host: str) -> bool:
    """Whether a connection to ``host`` does not leave this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _timed(data: dict[str, t.Any], recipe_sha256: str) -> tuple[int, float] | None:
    """What one ``manifest.json`` says, if this recipe made it.

    A pod's time is more than the model's, so the whole attempt counts. One that went on where another left off is
    shorter than its pages took, and then the model's own time counts.
    """
    if data["pipeline"]["recipe_sha256"] != recipe_sha256:
        return None
    read = [float(page["seconds"]) for page in data["pages"] if page["state"] != "failed"]
    if not read or not all(0 <= seconds < 1e6 for seconds in read):
        return None
    whole = 0.0
    if data["started"] is not None:
        started, finished = (datetime.datetime.fromisoformat(data[key]) for key in ("started", "finished"))
        whole = (finished - started).total_seconds()
    seconds = max(sum(read), whole)
    return (len(read), seconds) if seconds > 0 else None
