"""What the two programs read from their environment. docs/statuspage.md has a table of it."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

from htrflow_batch.errors import AttemptError
from htrflow_batch.variables import Variables
from htrflow_status.results.accounts import Derivation
from htrflow_status.results.origins import Origins
from htrflow_status.results.places import Places
from htrflow_status.results.proxy import Settings
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.service import Service
from htrflow_status.sources.connection import ConfigurationError, Connection

_SETTER = "the chart sets it"
_DERIVATIONS: t.Final = t.get_args(Derivation)


class SettingsError(Exception):
    """The environment cannot be used. The message is one sentence for each variable."""


@dataclasses.dataclass(frozen=True)
class Web:
    """The pages. ``results`` is the address of the results proxy, ``viewer`` the folder of Universal Viewer."""

    port: int
    namespaces: tuple[str, ...]
    results: str
    viewer: pathlib.Path | None
    write_records: bool
    connection: Connection


@dataclasses.dataclass(frozen=True)
class ResultsProxy:
    """The results proxy."""

    port: int
    settings: Settings


def web(environ: t.Mapping[str, str]) -> Web:
    """The settings of the pages. Raises :class:`SettingsError` with all that is wrong."""
    variables = Variables(environ, _SETTER)
    namespaces, connection = _listed(variables, "NAMESPACES"), None
    results = variables.text("RESULTS_SERVICE")
    viewer = variables.text("VIEWER", "")
    try:
        if results:
            Service(results)
    except ValueError:
        variables.fault(f"RESULTS_SERVICE is {results[:80]!r} — write an address such as http://htrflow-results:8080")
    if viewer and not (pathlib.Path(viewer) / "uv.html").is_file():
        variables.fault(f"VIEWER is {viewer[:80]!r}, and there is no Universal Viewer — name its folder, or nothing")
    try:
        file = variables.text("KUBECONFIG", "")
        connection = Connection.of_kubeconfig(pathlib.Path(file)) if file else Connection.in_cluster(environ)
    except ConfigurationError as error:
        variables.fault(str(error))
    found = (variables.whole("PORT", 8080, most=65_535), variables.flag("WRITE_RECORDS", False))
    _finish(variables)
    assert connection is not None
    return Web(found[0], namespaces, results, pathlib.Path(viewer) if viewer else None, found[1], connection)


def results(environ: t.Mapping[str, str]) -> ResultsProxy:
    """The settings of the results proxy. Raises :class:`SettingsError` with all that is wrong."""
    variables = Variables(environ, _SETTER)
    places = _places(variables)
    verify = variables.flag("S3_VERIFY_TLS", True)
    bundle = variables.text("S3_CA_BUNDLE", "")
    if bundle and not pathlib.Path(bundle).is_file():
        variables.fault(f"S3_CA_BUNDLE is {bundle[:80]!r}, and there is no such file — mount it, or name none")
    derivation = variables.text("S3_KEY_DERIVATION", "none")
    if derivation not in _DERIVATIONS:
        variables.fault(f"S3_KEY_DERIVATION is {derivation[:40]!r} — write {' or '.join(_DERIVATIONS)}")
    place = S3Place(
        variables.text("S3_BUCKET"),
        places,
        endpoint=variables.text("S3_ENDPOINT", "") or None,
        region=variables.text("S3_REGION", "us-east-1"),
        verify=verify and (pathlib.Path(bundle) if bundle else True),
    )
    addresses = _listed(variables, "SITE_ADDRESSES")
    try:
        if addresses:
            Origins(addresses)
    except ValueError as error:
        variables.fault(f"SITE_ADDRESSES has {error} — write where browsers reach the site, as https://htr.example.org")
    keys = variables.text("SESSION_KEYS")
    port, hops = variables.whole("PORT", 8080, most=65_535), variables.whole("TRUSTED_HOPS", 0, least=0, most=10)
    _finish(variables)
    # The site itself is the last proxy before this one.
    settings = Settings(
        place, addresses, pathlib.Path(keys), derivation=t.cast(Derivation, derivation), trusted_hops=hops + 1
    )
    return ResultsProxy(port, settings)


def _listed(variables: Variables, name: str) -> tuple[str, ...]:
    return tuple(entry for entry in (one.strip() for one in variables.text(name).split(",")) if entry)


def _places(variables: Variables) -> Places:
    namespaces = _listed(variables, "NAMESPACES")
    try:
        return Places(namespaces)
    except ValueError as error:
        if namespaces:
            variables.fault(f"NAMESPACES has {error}")
        return Places(["none"])


def _finish(variables: Variables) -> None:
    try:
        variables.finish()
    except AttemptError as error:
        raise SettingsError(str(error)) from None
