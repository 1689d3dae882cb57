"""Every object that is rendered passes the strict JSON Schemas of the three newest Kubernetes versions.

Every Job also goes through Kubernetes' own types, those of a real kubectl, and comes back as it was.
"""

from __future__ import annotations

import copy
import functools
import importlib.resources
import json
import pathlib
import subprocess
import typing as t

import jsonschema
import pytest
import referencing

from tests import tools
from tests.cmp_plugin import rendered
from tests.cmp_plugin.object_checks import amount, containers, jobs
from tests.cmp_plugin.rendered import DELIVERIES, FEATURES, REPOS, Deliver, Object

_SCHEMAS = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"
_ENDING = ".0-local-strict"


def _versions() -> list[str]:
    found = [entry.name.removesuffix(_ENDING) for entry in _SCHEMAS.iterdir() if entry.name.endswith(_ENDING)]
    return sorted(found, key=lambda version: [int(number) for number in version[1:].split(".")])


NEWEST = _versions()[-3:]


@functools.cache
def _validator(version: str, kind: str, api_version: str) -> jsonschema.Draft202012Validator:
    """The validator of one kind. A kind that the version does not have is a :class:`FileNotFoundError`."""
    folder = _SCHEMAS / f"{version}{_ENDING}"
    name = f"{kind}-{api_version.replace('/', '-')}.json".lower()
    schema = json.loads((folder / name).read_text(encoding="utf-8"))
    definitions = json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))
    resources = [referencing.Resource[t.Any].from_contents(found) for found in (schema, definitions)]
    registry = referencing.Registry[t.Any]().with_resources([(str(resource.id()), resource) for resource in resources])
    return jsonschema.Draft202012Validator(schema, registry=registry)


def faults(version: str, objects: t.Iterable[Object]) -> list[str]:
    """Everything that the schemas of ``version`` (such as ``v1.37``) refuse, and not just the first of each object."""
    return [
        f"{found['kind']} {found['metadata'].get('name')}: {error.json_path}: {error.message}"
        for found in objects
        for error in _validator(version, found["kind"], found["apiVersion"]).iter_errors(found)
    ]


def test_the_three_newest_versions_follow_one_another() -> None:
    minors = [int(version.removeprefix("v1.")) for version in NEWEST]
    assert minors == [minors[0], minors[0] + 1, minors[0] + 2]
    assert minors[-1] >= 37


@pytest.mark.parametrize("deliver", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("make", REPOS.values(), ids=REPOS)
def test_every_rendered_object_passes_the_newest_schemas(
    make: t.Callable[[pathlib.Path], pathlib.Path], deliver: Deliver, tmp_path: pathlib.Path
) -> None:
    objects = deliver(make(tmp_path / "repo"))
    assert len(objects) >= 4
    assert {version: faults(version, objects) for version in NEWEST} == {version: [] for version in NEWEST}


def _misspell(job: Object) -> None:
    job["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []


def _number_as_text(job: Object) -> None:
    job["spec"]["completions"] = "2"


def _text_as_number(job: Object) -> None:
    job["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = 3


def _out_of_place(job: Object) -> None:
    job["spec"]["restartPolicy"] = "Never"


def _missing(job: Object) -> None:
    del job["spec"]["podFailurePolicy"]["rules"][0]["action"]


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize(
    ("plant", "path"),
    [
        (_misspell, "$.spec.template.spec.containers[0]: Additional"),
        (_number_as_text, "$.spec.completions: '2' is not of type"),
        (_text_as_number, "$.spec.template.spec.containers[0].env[0].value: 3 is not of type"),
        (_out_of_place, "$.spec: Additional properties are not allowed ('restartPolicy'"),
        (_missing, "$.spec.podFailurePolicy.rules[0]: 'action' is a required property"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_planted_fault_is_found(plant: t.Callable[[Object], None], path: str, version: str) -> None:
    job = copy.deepcopy(rendered.one(rendered.applied(FEATURES), "Job", "letters"))
    assert faults(version, [job]) == []
    plant(job)
    (fault,) = faults(version, [job])
    assert path in fault


@pytest.mark.parametrize("version", NEWEST)
def test_all_faults_of_an_object_are_found(version: str) -> None:
    job = copy.deepcopy(rendered.one(rendered.applied(FEATURES), "Job", "letters"))
    _misspell(job)
    _number_as_text(job)
    _missing(job)
    assert len(faults(version, [job])) == 3


def test_a_kind_without_a_schema_is_not_taken_for_a_good_one() -> None:
    with pytest.raises(FileNotFoundError):
        faults(NEWEST[-1], [{"apiVersion": "v1", "kind": "CampaignMap", "metadata": {"name": "c"}}])


def _through_kubectl(job: Object) -> Object:
    """``job`` as kubectl reads it into its types and writes it again, without what the command and the types add."""
    command = [str(tools.get("kubectl")), "set", "env", "--local", "--filename=-", "--output=json", "MARK=1"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: Object = json.loads(done.stdout)
    assert found.pop("status") == {}
    for rule in found["spec"]["podFailurePolicy"]["rules"]:
        for condition in rule.get("onPodConditions") or []:
            assert condition.pop("status") == ""
    for container in containers(found):
        assert container["env"].pop() == {"name": "MARK", "value": "1"}
        # An empty text is written as none.
        container["env"] = [
            {"value": "", **variable} if len(variable) == 1 else variable for variable in container["env"]
        ]
        if not container["env"]:
            del container["env"]
    return found


def _with_amounts(job: Object) -> Object:
    """``job`` with numbers for quantities, which can be written in several ways."""
    job = copy.deepcopy(job)
    for container in containers(job):
        for kind, amounts in container["resources"].items():
            container["resources"][kind] = {name: amount(text) for name, text in amounts.items()}
    return job


@pytest.mark.parametrize("deliver", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("name", ["documented-example", "every-feature", "written-by-init"])
def test_every_job_comes_back_from_the_types_of_kubernetes_as_it_was(
    name: str, deliver: Deliver, tmp_path: pathlib.Path
) -> None:
    found = [*jobs(deliver(REPOS[name](tmp_path / "repo")))]
    assert len(found) >= 2
    for job in found:
        assert _with_amounts(_through_kubectl(job)) == _with_amounts(job)


def test_a_misspelt_field_does_not_come_back() -> None:
    job = copy.deepcopy(rendered.one(rendered.applied(FEATURES), "Job", "letters"))
    _misspell(job)
    assert _with_amounts(_through_kubectl(job)) != _with_amounts(job)


def test_an_amount_that_is_none_is_refused() -> None:
    job = copy.deepcopy(rendered.one(rendered.applied(FEATURES), "Job", "letters"))
    job["spec"]["template"]["spec"]["volumes"][3]["emptyDir"]["sizeLimit"] = "2GB"
    with pytest.raises(AssertionError, match="quantities must match"):
        _through_kubectl(job)
