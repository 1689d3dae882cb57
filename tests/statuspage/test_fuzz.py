"""Every route is asked for what its description allows and for what it does not, by schemathesis, over real HTTP.

All checks of schemathesis are on: no answer is a fault of the server; status, content type, headers and body are as
described; what the description does not allow is refused; what needs a session is refused without one.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import pathlib
import typing as t
from collections import abc

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import ignored_auth, negative_data_rejection
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

from htrflow_status.description import description
from htrflow_status.results.login import Limits
from tests.statuspage import local_data, whole_site
from tests.testbed.plugin.s3 import Store

_MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
_OPERATIONS = {
    one["operationId"]: (path, method)
    for path, methods in description(login=True)["paths"].items()
    for method, one in methods.items()
}
#: Its answer has no end. Its refusals are tried where nobody has logged in.
_ENDLESS = "events"
_LOGINS = ("login", "logout")
#: What parameters are where there is something to find: with any value, nearly all requests would name nothing.
_KNOWN: t.Mapping[str, list[t.Any]] = {
    "namespace": [local_data.NAMESPACE],
    "campaign": ["letters", "parish", "waiting"],
    "volume": [local_data.VOLUME, "R0001204", "R0002000"],
    "page": [1, 2, 5, 8],
}


class _Asker:
    """Asks a site, and counts its answers. ``logged_in`` says that the browser has a session."""

    def __init__(self, url: str, browser: requests.Session, *, login: bool, logged_in: bool = False) -> None:
        self.url, self._browser, self._login = url, browser, login
        # Who has a session is let in, whatever cookies come beside it; who has none is asked to log in.
        self._excluded = [ignored_auth] if logged_in else [negative_data_rejection] if login else []
        self.statuses: collections.Counter[int] = collections.Counter()

    def combinations(self, name: str, *, known: bool) -> None:
        """The limits of every parameter, and just beyond them; missing ones; methods that there are not."""
        operation = self._operation(name, known=known)
        config = operation.schema.config.generation_for(operation=operation)
        cases = operation.schema.iter_coverage_cases(operation, generation_modes=_MODES, generation_config=config)
        for case in itertools.islice(cases, 300):
            self._ask(case)

    def anything(self, name: str, examples: int) -> None:
        """What a generator thinks of, some of it allowed and some not."""
        for known, mode in itertools.product((True, False), _MODES):
            strategy = self._operation(name, known=known).as_strategy(generation_mode=mode)

            @seed(0)
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            @given(strategy)
            def ask(case: Case[t.Any]) -> None:
                self._ask(case)

            # Of what has no parameters, nothing can be wrong.
            with contextlib.suppress(Unsatisfiable):
                ask()

    def _ask(self, case: Case[t.Any]) -> None:
        answer = case.call_and_validate(
            self.url, self._browser, timeout=60, allow_redirects=False, excluded_checks=self._excluded
        )
        self.statuses[answer.status_code] += 1

    def _operation(self, name: str, *, known: bool) -> t.Any:
        path, method = _OPERATIONS[name]
        described = copy.deepcopy(description(login=self._login))
        for parameter in described["paths"][path][method]["parameters"]:
            values = {**_KNOWN, "Origin": [self.url]}.get(parameter["name"])
            if known and values:
                parameter["schema"] = {"enum": values}
        # The browser has the real session; a made up one beside it would be refused.
        generation = GenerationConfig(with_security_parameters=False)
        projects = ProjectsConfig(default=ProjectConfig(generation=generation))
        schema = schemathesis.openapi.from_dict(described, config=SchemathesisConfig(projects=projects))
        return schema[path][method.upper()]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return whole_site.data(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def local(data: pathlib.Path) -> abc.Iterator[_Asker]:
    with whole_site.of_folder(data) as url, requests.Session() as browser:
        yield _Asker(url, browser, login=False)


@pytest.fixture
def whole(data: pathlib.Path, s3: Store) -> abc.Iterator[tuple[_Asker, _Asker]]:
    """Two who ask a site before a store: one has logged in, the other one has not."""
    limits = Limits(per_account=10**6, per_client=10**6)
    with (
        whole_site.of_store(data, s3, limits=limits) as where,
        where.browser(s3.reader) as browser,
        requests.Session() as nobody,
    ):
        yield _Asker(where.url, browser, login=True, logged_in=True), _Asker(where.url, nobody, login=True)


@pytest.mark.parametrize("name", [name for name in _OPERATIONS if name not in (_ENDLESS, *_LOGINS)])
def test_a_site_without_logins_answers_as_described_at_every_limit(local: _Asker, name: str) -> None:
    local.combinations(name, known=True)

    assert name == "result" or local.statuses[200] > 0
    assert local.statuses[405] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in _OPERATIONS if name not in (_ENDLESS, *_LOGINS)])
def test_a_site_without_logins_answers_as_described_whatever_is_asked(local: _Asker, name: str) -> None:
    local.combinations(name, known=False)
    local.anything(name, 40)

    assert sum(local.statuses.values()) > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", _OPERATIONS)
def test_a_site_before_a_store_answers_as_described(whole: tuple[_Asker, _Asker], name: str) -> None:
    somebody, nobody = whole
    nobody.combinations(name, known=True)
    nobody.anything(name, 5)
    if name not in (_ENDLESS, *_LOGINS):
        somebody.combinations(name, known=True)
        somebody.anything(name, 10)
        assert name == "result" or somebody.statuses[200] > 0
    if name not in (*_LOGINS, "description", "health"):
        assert nobody.statuses[200] == 0
