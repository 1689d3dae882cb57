"""The chart's Argo CD pieces are those of ``cmp-plugin/argocd/``."""

from __future__ import annotations

import json
import typing as t

import yaml

from tests.helm import chart
from tests.helm.chart import Helm, Object

_KIT = chart.TOP / "cmp-plugin" / "argocd"


def _kit(name: str) -> Object:
    return t.cast(Object, yaml.safe_load((_KIT / name).read_text(encoding="utf-8")))


def _without_labels(item: Object) -> Object:
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}


def test_of_one_team_they_are_the_files_themselves(helm: Helm) -> None:
    objects = helm.template("argocd")

    for kind, file in (("AppProject", "project.yaml"), ("Application", "application.yaml")):
        assert _without_labels(chart.one(objects, kind, "htrflow-campaigns")) == _kit(file)


def test_of_several_teams_each_is_held_to_its_own_repo_and_namespace(helm: Helm) -> None:
    objects = helm.template("two-teams")
    for team, folder in (("transcription", "."), ("maps", "htr")):
        name, repo = f"htrflow-campaigns-{team}", f"https://git.example.org/{team}/campaigns.git"
        project, application = (chart.one(objects, kind, name)["spec"] for kind in ("AppProject", "Application"))

        assert project["sourceRepos"] == [repo]
        assert project["destinations"] == [{"server": "https://kubernetes.default.svc", "namespace": team}]
        assert application["project"] == name
        assert application["source"]["repoURL"] == repo
        assert application["source"]["path"] == folder
        assert application["destination"] == project["destinations"][0]


def test_whatever_the_values_syncs_are_done_as_in_the_files(helm: Helm) -> None:
    expected = _kit("application.yaml")["spec"]
    for way in ("two-teams", "full"):
        applications = [item["spec"] for item in helm.template(way) if item["kind"] == "Application"]
        assert applications
        for spec in applications:
            for key in ("syncPolicy", "ignoreDifferences"):
                assert json.dumps(spec[key], sort_keys=True) == json.dumps(expected[key], sort_keys=True)
            assert spec["source"]["plugin"] == expected["source"]["plugin"]
