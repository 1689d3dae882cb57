"""Who reaches whom: reckoned from the NetworkPolicies as a cluster reads them, and compared with the documentation."""

from __future__ import annotations

import ipaddress
import re
import typing as t

import pytest

from tests.helm import chart
from tests.helm.chart import Helm, Object


class Pod(t.NamedTuple):
    """A pod by its labels, and where it is."""

    namespace: str
    labels: t.Mapping[str, str]


#: What is at the other end: a pod, or an address outside.
Place = Pod | str


def _selects(selector: Object | None, labels: t.Mapping[str, str]) -> bool:
    """Whether a label selector holds; one that is not there does not."""
    if selector is None:
        return False
    for row in selector.get("matchExpressions", []):
        found = labels.get(row["key"])
        if not {
            "In": found in row.get("values", []),
            "NotIn": found not in row.get("values", []),
            "Exists": found is not None,
            "DoesNotExist": found is None,
        }[row["operator"]]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _is_peer(peer: Object, place: Place, policy: Object) -> bool:
    if isinstance(place, str):
        block = peer.get("ipBlock")
        address = ipaddress.ip_address(place)
        return (
            block is not None
            and address in ipaddress.ip_network(block["cidr"])
            and not any(address in ipaddress.ip_network(left_out) for left_out in block.get("except", []))
        )
    if "ipBlock" in peer:
        return False
    if "namespaceSelector" in peer:
        if not _selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": place.namespace}):
            return False
    elif place.namespace != policy["metadata"]["namespace"]:
        return False
    return "podSelector" not in peer or _selects(peer["podSelector"], place.labels)


def _allows(policies: list[Object], pod: Pod, other: Place, port: int, way: t.Literal["Ingress", "Egress"]) -> bool:
    """Whether ``pod``'s side of a connection to ``other``, or from it, is open."""
    mine = [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and _selects(policy["spec"]["podSelector"], pod.labels)
        and way in policy["spec"]["policyTypes"]
    ]
    rules, peers = way.lower(), "to" if way == "Egress" else "from"
    return not mine or any(
        (not rule.get(peers) or any(_is_peer(peer, other, policy) for peer in rule[peers]))
        and (not rule.get("ports") or port in [row["port"] for row in rule["ports"] if row["protocol"] == "TCP"])
        for policy in mine
        for rule in policy["spec"].get(rules, [])
    )


def _reaches(policies: list[Object], source: Pod, target: Place, port: int) -> bool:
    """Whether a connection is allowed at both ends."""
    return _allows(policies, source, target, port, "Egress") and (
        isinstance(target, str) or _allows(policies, target, source, port, "Ingress")
    )


def _pods(objects: list[Object], campaigns: list[Object], namespace: str, release: str) -> dict[str, Pod]:
    """One pod of each role, with the labels that it has."""
    templates = {
        "status site": chart.one(objects, "Deployment", "htrflow-web"),
        "results proxy": chart.one(objects, "Deployment", "htrflow-results"),
        "campaign": chart.one(campaigns, "Job", "example"),
        "warm-up": chart.one(campaigns, "Job", "htr-warmup-demo-v1"),
    }
    pods = {
        role: Pod(
            release if item["kind"] == "Deployment" else namespace, item["spec"]["template"]["metadata"]["labels"]
        )
        for role, item in templates.items()
    }
    return {**pods, "any other pod": Pod(namespace, {"app": "something"})}


def _places(pods: t.Mapping[str, Pod]) -> dict[str, list[tuple[Place, int]]]:
    """What the columns of the table are, of which each answer is the same."""
    return {
        "DNS": [(Pod("kube-system", {"k8s-app": "kube-dns"}), 53)],
        "store": [("10.20.30.40", 443)],
        "API server": [("10.96.0.1", 443), ("10.96.0.1", 6443)],
        "archives, https": [("203.0.113.7", 443), ("2001:db8::7", 443)],
        "archives, http": [("203.0.113.7", 80), ("2001:db8::7", 80)],
        "Hub": [("198.51.100.7", 443)],
        "`htrflow-results`": [(pods["results proxy"], 8080)],
        "private networks, metadata of the node": [
            ("10.0.0.5", 443),
            ("172.16.9.9", 80),
            ("192.168.1.1", 443),
            ("100.100.100.200", 80),
            ("169.254.169.254", 80),
            ("fd00:ec2::254", 80),
            ("fe80::1", 443),
            ("::1", 443),
            (Pod("elsewhere", {"app": "database"}), 443),
        ],
    }


def _documented() -> dict[str, dict[str, str]]:
    text = (chart.TOP / "docs" / "chart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \|$", text.partition("<!-- reachable -->")[2].partition("<!-- end -->")[0], re.M)
    head, *rest = (row.split(" | ") for row in rows)
    return {row[0].partition(",")[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rest}


@pytest.mark.parametrize("way", ["default", "two-teams"])
def test_each_role_reaches_what_the_documentation_says_and_nothing_else(
    helm: Helm, generated: t.Callable[..., list[Object]], way: str
) -> None:
    namespace = {"default": "htr-batch", "two-teams": "maps"}[way]
    objects = helm.template(way)
    pods = _pods(objects, generated(namespace), namespace, "htr-batch")
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    answers = {
        role: {
            column: {True: "yes", False: "no"}[_the_same(_reaches(policies, pod, *place) for place in places)]
            for column, places in _places(pods).items()
        }
        for role, pod in pods.items()
    }

    assert answers == _documented()


def _the_same(answers: t.Iterable[bool]) -> bool:
    (answer,) = set(answers)
    return answer


def test_only_the_status_site_is_reached_from_elsewhere(helm: Helm, generated: t.Callable[..., list[Object]]) -> None:
    objects = helm.template("default")
    pods = _pods(objects, generated("htr-batch"), "htr-batch", "htr-batch")
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    sources: dict[str, Place] = {
        **pods,
        "outside": "203.0.113.9",
        "controller": Pod("ingress-nginx", {"app": "ingress"}),
    }
    reached = {
        (role, name)
        for role, pod in pods.items()
        for name, source in sources.items()
        for port in (80, 443, 8080, 53)
        if _allows(policies, pod, source, port, "Ingress")
    }

    assert reached == {*(("status site", name) for name in sources), ("results proxy", "status site")}


def test_who_reaches_the_site_and_its_metrics_can_be_said(helm: Helm, generated: t.Callable[..., list[Object]]) -> None:
    objects = helm.template("full")
    pods = _pods(objects, generated("htr-batch"), "htr-batch", "htr-batch")
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    sources = {name: Pod(name, {}) for name in ("ingress-nginx", "monitoring", "elsewhere")}
    reached = {
        (role, name)
        for role in ("status site", "results proxy")
        for name, source in sources.items()
        if _allows(policies, pods[role], source, 8080, "Ingress")
    }

    assert reached == {("status site", "ingress-nginx"), ("results proxy", "monitoring")}


@pytest.mark.parametrize("address", ["203.0.113.40/32", "2001:db8::40/128"])
def test_a_store_and_an_api_server_at_public_addresses_are_not_a_part_of_the_internet(
    helm: Helm, generated: t.Callable[..., list[Object]], address: str
) -> None:
    settings = {"network.s3Cidrs": [address], "network.apiServerCidrs": ["203.0.113.50/32"]}
    objects = helm.template("default", settings=settings)
    pods = _pods(objects, generated("htr-batch"), "htr-batch", "htr-batch")
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    store = address.partition("/")[0]

    assert {role for role, pod in pods.items() if _reaches(policies, pod, store, 443)} == {"results proxy", "campaign"}
    assert {role for role, pod in pods.items() if _reaches(policies, pod, "203.0.113.50", 443)} == {"status site"}


def test_archives_and_the_hub_can_be_named(helm: Helm, generated: t.Callable[..., list[Object]]) -> None:
    settings = {"network.iiifCidrs": ["198.51.100.0/24"], "network.hubCidrs": ["10.9.9.9/32"]}
    objects = helm.template("default", settings=settings)
    pods = _pods(objects, generated("htr-batch"), "htr-batch", "htr-batch")
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]

    assert {role for role, pod in pods.items() if _reaches(policies, pod, "198.51.100.7", 443)} == {"campaign"}
    assert {role for role, pod in pods.items() if _reaches(policies, pod, "10.9.9.9", 443)} == {"warm-up"}
    assert {role for role, pod in pods.items() if _reaches(policies, pod, "203.0.113.7", 443)} == set()


def test_every_role_has_a_policy_in_every_namespace_that_it_is_in(helm: Helm) -> None:
    found = {chart.key(item)[1:] for item in helm.template("two-teams") if item["kind"] == "NetworkPolicy"}
    teams = {(team, f"htrflow-{name}") for team in ("transcription", "maps") for name in ("campaign", "warmup")}
    denied = {(namespace, "htrflow-default-deny") for namespace in ("htr-batch", "transcription", "maps")}

    assert found == {*teams, *denied, ("htr-batch", "htrflow-web"), ("htr-batch", "htrflow-results")}


def test_without_network_policies_there_are_none(helm: Helm) -> None:
    assert [item for item in helm.template("no-network") if item["kind"] == "NetworkPolicy"] == []
