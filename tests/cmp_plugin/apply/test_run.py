"""``apply`` from the first run to the last, on a real control plane."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.cmp_plugin.apply.api_proxy import Proxy
from tests.cmp_plugin.apply.teams import JOB_UID, Team
from tests.testbed.plugin.cluster import Cluster


def test_a_first_run_creates_pipelines_and_campaigns_a_second_one_changes_nothing_and_says_so(team: Team) -> None:
    team.campaign("letters", "R1", "R2", "R3")
    team.campaign("maps", "R4", priority="htr-bulk")

    first = team.apply()

    assert (first.code, first.err) == (0, ""), first
    things = [
        "ConfigMap/htr-pipeline-demo-v1", "Job/htr-warmup-demo-v1", "ConfigMap/campaign-letters", "Job/letters",
        "ConfigMap/campaign-maps", "Job/maps",
    ]  # fmt: skip
    assert first.lines == [f"created {thing}" for thing in things]
    assert team.names() == {*things, "ConfigMap/campaign-letters-status", "ConfigMap/campaign-maps-status"}
    config_map = team.config_map("campaign-letters")
    assert config_map is not None
    assert config_map["metadata"]["annotations"][JOB_UID] == team.uid("letters")
    assert team.lease() is None

    second = team.apply("--prune")

    assert (second.code, second.err) == (0, ""), second
    assert second.lines == [f"unchanged {thing}" for thing in things]


def test_everything_is_sent_in_order_as_our_field_manager(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1")
    team.campaign("maps", "R2", suspend=True)

    assert team.apply("--prune", kubeconfig=proxy.kubeconfig).code == 0

    renewals = [one for one in proxy.writes if one.startswith("PUT leases/")]
    assert len(renewals) >= 4
    workload = team.namespace.workload("maps")
    assert workload is not None
    assert [one for one in proxy.writes if one not in renewals] == [
        "POST leases",
        "PATCH jobs/letters (dry run)",
        "PATCH jobs/maps (dry run)",
        "PATCH configmaps/htr-pipeline-demo-v1",
        "PATCH jobs/htr-warmup-demo-v1",
        "PATCH configmaps/campaign-letters",
        "PATCH jobs/letters",
        "PATCH configmaps/campaign-letters",
        "POST configmaps",
        "PATCH configmaps/campaign-maps",
        "PATCH jobs/maps",
        "PATCH configmaps/campaign-maps",
        "POST configmaps",
        f"PATCH workloads/{workload['metadata']['name']}",
        "DELETE leases/htrflow-campaigns-apply",
    ]
    owners = [row for row in team.namespace.job("letters")["metadata"]["managedFields"] if row["operation"] == "Apply"]
    assert [row["manager"] for row in owners] == ["htrflow-campaigns"]
    assert "f:suspend" not in owners[0]["fieldsV1"]["f:spec"]


def test_prune_deletes_what_the_repo_does_not_have_with_its_pods_and_keeps_records_and_other_objects(
    team: Team,
) -> None:
    team.campaign("letters", "R1")
    team.campaign("maps", "R2")
    team.pipeline("other-v1")
    team.api.create(_config_map(team, "notes"))
    assert team.apply().code == 0
    team.wait(lambda: len(team.namespace.pods()) == 4, "the Jobs have pods")
    team.remove("campaigns/letters.yaml")
    team.remove("pipelines/other-v1.yaml")

    kept = team.apply()
    assert "pruned" not in kept.out
    assert team.job("letters") is not None

    done = team.apply("--prune")

    assert done.code == 0, done
    assert [line for line in done.lines if line.startswith("pruned")] == [
        "pruned Job/htr-warmup-other-v1",
        "pruned Job/letters",
        "pruned ConfigMap/campaign-letters",
        "pruned ConfigMap/htr-pipeline-other-v1",
    ]
    assert {"ConfigMap/campaign-letters-status", "ConfigMap/notes", "Job/maps"} <= team.names()
    assert not {"Job/letters", "ConfigMap/campaign-letters", "Job/htr-warmup-other-v1"} & team.names()
    # No kubelet runs here, so the pods are only marked.
    owned = [pod for pod in team.namespace.pods() if pod["metadata"]["labels"].get("job-name") == "letters"]
    assert all("deletionTimestamp" in pod["metadata"] for pod in owned)


@pytest.mark.slow
def test_an_empty_repo_deletes_nothing_unless_that_is_allowed(team: Team) -> None:
    team.campaign("letters", "R1")
    assert team.apply().code == 0
    before = team.names()
    team.remove("campaigns/letters.yaml")
    team.remove("pipelines/demo-v1.yaml")

    refused = team.apply("--prune")
    assert (refused.code, refused.out) == (1, "")
    assert "--prune would delete everything — add --allow-empty if that is meant" in refused.err
    assert team.apply().code == 0
    assert team.names() == before

    assert team.apply("--prune", "--allow-empty").code == 0
    assert team.names() == {"ConfigMap/campaign-letters-status"}


def test_a_problem_in_the_repo_sends_nothing_and_every_problem_is_said(team: Team) -> None:
    team.campaign("letters", "R1", "R1")
    team.campaign("maps", "R2", priority="none-such")

    done = team.apply()

    assert (done.code, done.out) == (1, "")
    assert "campaigns/letters.yaml:2:" in done.err
    assert "campaigns/maps.yaml:2:" in done.err
    assert done.err.endswith("2 problems in 4 files\n")
    assert team.names() == set()


def test_another_namespace_than_that_of_converter_yaml_sends_nothing(team: Team) -> None:
    team.campaign("letters", "R1")

    done = team.apply("--namespace=elsewhere")

    assert (done.code, done.out) == (1, "")
    assert f"converter.yaml says namespace: {team.namespace.name}, and --namespace elsewhere" in done.err
    assert team.names() == set()
    assert team.apply(f"--namespace={team.namespace.name}").code == 0


def test_a_dry_run_says_what_would_be_sent_and_opens_no_connection(team: Team, proxy: Proxy) -> None:
    team.campaign("letters", "R1", suspend=True)

    done = team.apply("--dry-run", "--prune", kubeconfig=proxy.kubeconfig)

    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "would apply ConfigMap/htr-pipeline-demo-v1",
        "would apply Job/htr-warmup-demo-v1",
        "would apply ConfigMap/campaign-letters",
        "would apply Job/letters",
        "would pause Job/letters",
        f"would prune every other Job and ConfigMap of ours in the namespace {team.namespace.name}",
    ]
    assert proxy.asked == []


def test_out_also_writes_the_objects_into_a_folder(team: Team, tmp_path: pathlib.Path) -> None:
    team.campaign("letters", "R1")

    done = team.apply(f"--out={tmp_path / 'rendered'}", "--dry-run")

    assert done.code == 0, done
    assert (tmp_path / "rendered/campaigns/letters.yaml").is_file()
    assert team.apply(f"--out={team.repo.path}").code == 2


@pytest.mark.slow
def test_a_large_campaign_is_sent_in_parts_and_its_parts_are_one_campaign(team: Team) -> None:
    volumes = [f"R{number:07}" for number in range(10_001)]
    team.campaign("letters", *volumes)

    done = team.apply()

    assert done.code == 0, done
    assert {"Job/letters-part1", "Job/letters-part2", "ConfigMap/campaign-letters-part2-status"} <= team.names()
    assert team.namespace.job("letters-part1")["spec"]["completions"] == 10_000
    assert {line.split()[0] for line in team.apply().lines} == {"unchanged"}
    team.campaign("letters", *volumes[:9_000])
    cut = team.apply()
    assert cut.code == 1
    assert "the volumes of the campaign letters are cut into other parts" in cut.err


def test_a_kubeconfig_that_names_no_cluster_is_wrong_usage(team: Team, tmp_path: pathlib.Path) -> None:
    team.campaign("letters", "R1")
    for name, content in {"missing": None, "empty": "", "text": "{", "list": "[1, 2]"}.items():
        if content is not None:
            (tmp_path / name).write_text(content)

        done = team.apply(kubeconfig=tmp_path / name)

        assert (done.code, done.out) == (2, "")
        assert f"{name} does not say how to reach a cluster" in done.err
        assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_namespace_that_is_not_there_is_said(team: Team) -> None:
    team.settings(namespace="none-such")

    done = team.apply()

    assert done.code == 1
    assert 'namespaces "none-such" not found' in done.err


def test_the_kubeconfig_of_the_environment_is_used_and_the_command_imports_no_client_without_need(
    team: Team, cluster: Cluster
) -> None:
    team.campaign("letters", "R1")
    done = team.repo.run("apply", environment={"KUBECONFIG": str(cluster.admin)})
    assert done.returncode == 0, done.stderr
    assert "created Job/letters\n" in done.stdout

    text = "import sys, htrflow_campaigns.cli as c; c.parser(); sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def _config_map(team: Team, name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": team.namespace.name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"what": "of somebody else"}}
