"""The policies of the chart, held by Kyverno's admission controller for namespaces of a test's own."""

from __future__ import annotations

import copy
import json
import re
import secrets
import typing as t

from tests.helm import kyverno_cli, policy_files
from tests.testbed.plugin.api import Api, ApiError, Object

POLICY = "policies.kyverno.io/v1/ValidatingPolicy"
#: The namespaces of the cases: two of teams, and one of none.
NAMESPACES = (*policy_files.QUEUES, "elsewhere")
_DENIED = re.compile(r'^admission webhook "[^"]+\.kyverno\.svc[^"]*" denied the request: (.+)$', re.DOTALL)


class Policies:
    """Policies by the names of their files. What they say has the names of the cases, and not the test's own."""

    def __init__(self, api: Api) -> None:
        self.api, self._mark = api, f"test-{secrets.token_hex(4)}"
        self._policies = {policy["metadata"]["name"]: policy for policy in policy_files.filled()}
        self._made: list[Object] = []

    def create_namespaces(self) -> None:
        """Makes the namespaces, in which Pod Security forbids nothing: it would answer before Kyverno does."""
        for name in NAMESPACES:
            self.api.create(self.here({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))

    def here(self, item: Object) -> Object:
        """An object of the cases, for the namespaces of the test."""
        return t.cast(
            Object, json.loads(re.sub(f'"({"|".join(NAMESPACES)})"', rf'"{self._mark}-\1"', json.dumps(item)))
        )

    def namespace(self, name: str) -> str:
        """The name of one of the namespaces."""
        return f"{self._mark}-{name}"

    def install(self, name: str, *, action: str = "Deny") -> str:
        """Installs a policy by the name of its file, and returns its name here. One that denies holds by then."""
        policy = copy.deepcopy(self._policies[f"htr-{name}"])
        for variable in policy["spec"].get("variables", ()):
            if variable["name"] == "queues":
                queues = {self.namespace(team): queue for team, queue in policy_files.QUEUES.items()}
                variable["expression"] = json.dumps(queues)
        policy["spec"]["validationActions"] = [action]
        name = self.add(policy)
        if action == "Deny":
            self.wait(name, policy_files.canaries())
        return name

    def add(self, policy: Object) -> str:
        """Adds a policy for the namespaces of the test alone, and returns its name."""
        policy["spec"]["matchConstraints"]["namespaceSelector"] = among(map(self.namespace, NAMESPACES))
        policy["metadata"]["name"] = policy["metadata"]["name"].replace("htr", self._mark, 1)
        self.create(policy)
        return t.cast(str, policy["metadata"]["name"])

    def create(self, item: Object) -> None:
        """Creates an object that :meth:`remove` deletes."""
        self.api.create(item)
        self._made.append(item)

    def wait(self, policy: str, canaries: t.Iterable[Object]) -> None:
        """Waits until a policy, by its name here, refuses one of the canaries."""
        team = self.namespace(NAMESPACES[0])
        birds = [policy_files.changed(bird, "canary", namespace=team) for bird in canaries]
        self.api.wait_for(lambda: any(policy in self._refusal(bird) for bird in birds), f"{policy} holds")

    def creating(self, item: Object) -> str:
        """What Kyverno says of an object that is new."""
        return self.said(lambda: self.api.create(item, dry_run=True))

    def said(self, attempt: t.Callable[[], object]) -> str:
        """What Kyverno says of an attempt, or nothing when it may be. Raises the :class:`ApiError` of others."""
        said = _denial(attempt).replace(f"{self._mark}-", "")
        return re.sub(r"^Policy \S+ (?:failed|error): ", "", said)

    def remove(self) -> None:
        """Removes what is the test's own."""
        for item in self._made:
            kind, metadata = f"{item['apiVersion']}/{item['kind']}", item["metadata"]
            self.api.delete(kind, metadata["name"], metadata.get("namespace", ""))
        for name in NAMESPACES:
            self.api.delete("v1/Namespace", self.namespace(name))

    def _refusal(self, item: Object) -> str:
        return _denial(lambda: self.api.create(item, dry_run=True))


def among(namespaces: t.Iterable[str]) -> Object:
    """The selector of some namespaces."""
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*namespaces]}]}


def _denial(attempt: t.Callable[[], object]) -> str:
    try:
        attempt()
    except ApiError as error:
        denied = _DENIED.match(str(error))
        if not denied:
            raise
        return denied[1]
    return ""


def verdicts(rows: t.Iterable[kyverno_cli.Row]) -> dict[str, str]:
    """What Kyverno's command says of each object, as :meth:`Policies.said` has it."""
    return {row.name: "" if row.result in ("pass", "skip") else row.message for row in rows}
