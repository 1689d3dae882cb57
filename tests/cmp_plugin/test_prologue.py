"""The scripts of the rendered containers, run by real shells: what they are told reaches the wrapper unchanged."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import typing as t

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from htrflow_campaigns import schemas, urls
from tests.cmp_plugin import rendered
from tests.cmp_plugin.kubelet import Ended, Pod, expand
from tests.cmp_plugin.rendered import EXAMPLE, FEATURES, Object

#: /bin/sh, and every other shell of this machine that an image could have for it.
_POSSIBLE = {"sh": "/bin/sh", "dash": "dash", "bash": "bash --posix", "busybox": "busybox sh"}
SHELLS = {
    name: [path, *command.split()[1:]]
    for name, command in _POSSIBLE.items()
    if (path := shutil.which(command.split()[0]))
}
#: What the cluster knows: Secrets, and the Job controller's annotation.
GIVEN = {"S3_BUCKET": "results", "S3_ENDPOINT": "https://s3.example.org", "INDEX_FAILURE_COUNT": "0", "HF_TOKEN": "t"}
#: Every ASCII character that may stand in an address, and some that may not but that browsers let through.
_SIGNS = "!#$%&'()*+,-./:;=?@[]_~`{|}^$(HOME)$$${HOME}$HOME`id`$(id);exit 1 &&".replace(" ", "")


@pytest.fixture(params=[*SHELLS.values()], ids=[*SHELLS])
def shell(request: pytest.FixtureRequest) -> list[str]:
    return t.cast("list[str]", request.param)


def _pod(top: pathlib.Path, repo: pathlib.Path, job: str) -> Pod:
    objects = rendered.applied(repo)
    return Pod(top, rendered.one(objects, "Job", job), objects)


def _source(ended: Ended) -> dict[str, str]:
    """The variables that say which volume this is."""
    assert ended.environ is not None
    names = ("VOLUME_REF", "IMAGES", "IIIF_MANIFEST_URL")
    return {name: value for name, value in ended.environ.items() if name in names}


LETTERS = [
    {"VOLUME_REF": "R0001203", "IIIF_MANIFEST_URL": "https://iiif.example.org/arkis!R0001203/manifest"},
    {"VOLUME_REF": "0012345", "IIIF_MANIFEST_URL": "https://iiif.example.org/arkis!0012345/manifest"},
    {"VOLUME_REF": "30002056", "IIIF_MANIFEST_URL": "https://iiif.example.org/arkis!30002056/manifest"},
    {
        "VOLUME_REF": "by-manifest",
        "IIIF_MANIFEST_URL": "https://iiif.example.org/a,b/$(HOME)/'x'/manifest?a=1&b=%20#~",
    },
    {
        "VOLUME_REF": "Loose.Scans_1",
        "IMAGES": "https://example.org/full/2500,/0/default.jpg https://bilder.example.org/räkenskaper/1.jpg",
    },
]


@pytest.mark.parametrize("index", range(5))
def test_each_index_gets_its_own_volume(index: int, shell: list[str], tmp_path: pathlib.Path) -> None:
    ended = _pod(tmp_path, FEATURES, "letters").run("wrapper", shell, index, GIVEN)
    assert (ended.code, ended.stderr, ended.argv) == (0, "", ["-m", "htrflow_batch"])
    assert _source(ended) == LETTERS[index]


@pytest.mark.parametrize("index", [5, 6, 9_999])
def test_an_index_past_the_end_is_not_retried(index: int, shell: list[str], tmp_path: pathlib.Path) -> None:
    ended = _pod(tmp_path, FEATURES, "letters").run("wrapper", shell, index, GIVEN)
    assert (ended.code, ended.stderr) == (13, f"no volume for index {index}\n")
    assert ended.argv is None


def test_the_wrapper_gets_the_whole_rendered_environment(shell: list[str], tmp_path: pathlib.Path) -> None:
    ended = _pod(tmp_path, FEATURES, "letters").run("wrapper", shell, 0, GIVEN)
    assert ended.environ is not None
    own = {"PATH", "PWD", "OLDPWD", "SHLVL", "_", *LETTERS[0]}
    assert {name: value for name, value in ended.environ.items() if name not in own} == {
        "PIPELINE_PATH": "/config/pipeline.yaml",
        "PIPELINE_ID": "default-size",
        "CAMPAIGN": "letters",
        "S3_PREFIX": "archive-htr/",
        "RESULTS_URL": "https://htr.example.org/$(HOME)/$$/results",
        "IMAGE_DIGEST": "registry.example.org/htrflow-batch@sha256:" + "0123456789abcdef" * 4,
        "HF_HUB_OFFLINE": "1",
        "INDEX_FAILURE_COUNT": "0",
        "BACKOFF_LIMIT_PER_INDEX": "3",
        "HF_HOME": "/data/hf",
        "HOME": "/work/home",
        "TMPDIR": "/work/tmp",
        "YOLO_CONFIG_DIR": "/work/ultralytics",
        "WORKDIR_PATH": "/work",
        "S3_BUCKET": "results",
        "S3_ENDPOINT": "https://s3.example.org",
        "AWS_SHARED_CREDENTIALS_FILE": "/secrets/s3/credentials",
        "MANIFEST_MAX_BYTES": "1048576",
        "FETCH_MAX_BYTES": "2097152",
        "LOOKAHEAD_BYTES": str(1024**3),
        "JOB_COMPLETION_INDEX": "0",
    }


def test_the_wrapper_finds_its_folders(shell: list[str], tmp_path: pathlib.Path) -> None:
    _pod(tmp_path, FEATURES, "letters").run("wrapper", shell, 0, GIVEN)
    assert sorted(folder.name for folder in (tmp_path / "volumes" / "work").iterdir()) == ["home", "tmp", "ultralytics"]


def test_an_endpoint_is_optional_and_a_bucket_is_not(shell: list[str], tmp_path: pathlib.Path) -> None:
    pod = _pod(tmp_path, FEATURES, "letters")
    without = {name: value for name, value in GIVEN.items() if name != "S3_ENDPOINT"}
    ended = pod.run("wrapper", shell, 0, without)
    assert ended.code == 0
    assert "S3_ENDPOINT" not in (ended.environ or {})
    with pytest.raises(KeyError, match="S3_BUCKET"):
        pod.run("wrapper", shell, 0, {name: value for name, value in GIVEN.items() if name != "S3_BUCKET"})


class Volume(t.NamedTuple):
    """An archival volume as a campaign file names it."""

    id: str
    manifest: str | None
    images: tuple[str, ...] = ()

    @property
    def written(self) -> Object:
        source = {"manifest": self.manifest} if self.manifest else {"images": [*self.images]}
        return {"id": self.id, **source}


def _objects(top: pathlib.Path, volumes: t.Sequence[Volume], converter: Object) -> list[Object]:
    """The objects of a repo with the campaign ``c``, whose files are written into ``top``."""
    shutil.copytree(EXAMPLE, top)
    (top / "converter.yaml").write_text(yaml.safe_dump(converter), encoding="utf-8")
    (top / "campaigns" / "example.yaml").unlink()
    campaign = {"pipeline": "demo-v1", "volumes": [volume.written for volume in volumes]}
    (top / "campaigns" / "c.yaml").write_text(yaml.safe_dump(campaign), encoding="utf-8")
    return rendered.applied(top)


# What YAML can hold; surrogates are no characters.
_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
_SIGN = st.sampled_from(_SIGNS)
_URLS = st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a", "example.org", "räksmörgås.se", "[::1]:8080", "127.0.0.1", "xn--a.b_c.org:65535"]),
    st.text(_SIGN | _CHARACTERS, max_size=40),
).filter(lambda url: urls.fault(url) is None)
_IDS = st.from_regex(schemas.pattern("campaign", "properties", "volumes", "items", "else"), fullmatch=True)
_VOLUMES = st.builds(Volume, _IDS, _URLS) | st.builds(
    Volume, _IDS, st.none(), st.lists(_URLS, min_size=1, max_size=3).map(tuple)
)


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
@hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], max_examples=40)
@hypothesis.given(volumes=st.lists(_VOLUMES, min_size=1, max_size=4, unique_by=lambda volume: volume.id))
@hypothesis.example(volumes=[Volume("a", f"https://a/{_SIGNS}"), Volume("b", None, (f"https://a/{_SIGNS}",) * 2)])
@hypothesis.example(volumes=[Volume("a", "https://a/images:"), Volume("images", None, ("https://a/b",))])
@hypothesis.example(volumes=[Volume("a", "https://a/%5Cn%5C0%s%n"), Volume("e", "https://a/-n")])
def test_every_address_that_is_accepted_arrives_unchanged(shell: list[str], volumes: list[Volume]) -> None:
    with tempfile.TemporaryDirectory() as top:
        objects = _objects(pathlib.Path(top, "repo"), volumes, {})
        pod = Pod(pathlib.Path(top, "pod"), rendered.one(objects, "Job", "c"), objects)
        for index, volume in enumerate(volumes):
            ended = pod.run("wrapper", shell, index, GIVEN)
            assert (ended.code, ended.stderr) == (0, "")
            source = {"IIIF_MANIFEST_URL": volume.manifest} if volume.manifest else {"IMAGES": " ".join(volume.images)}
            assert _source(ended) == {"VOLUME_REF": volume.id, **source}
        assert pod.run("wrapper", shell, len(volumes), GIVEN).code == 13


@hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(url=_URLS.filter(lambda url: not {*"?#"} & {*url}).map("{}/results".format))
@hypothesis.example(url="https://a/$$(HOME)/$$$(HOME)/$$$$/$(HOME/$)/$/results")
def test_every_results_address_that_is_accepted_arrives_unchanged(url: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        objects = _objects(pathlib.Path(top, "repo"), [Volume("a", "https://a/")], {"results_url": url})
    (container,) = rendered.one(objects, "Job", "c")["spec"]["template"]["spec"]["containers"]
    (value,) = (variable["value"] for variable in container["env"] if variable["name"] == "RESULTS_URL")
    assert expand(value, {"HOME": "replaced", "HOME/$": "replaced"}) == url


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("$A ${A} $", "$A ${A} $"),
        ("$$", "$"),
        ("$(A)$(A)", "11"),
        ("$((A)) $(", "$((A)) $("),
    ],
)
def test_variables_are_replaced_as_kubernetes_documents_it(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


def test_a_line_of_100_kib_arrives_unchanged(shell: list[str], tmp_path: pathlib.Path) -> None:
    repo = rendered.REPOS["over-900-kib"](tmp_path / "repo")
    pod = _pod(tmp_path / "pod", repo, "c-part2")
    ended = pod.run("wrapper", shell, 0, GIVEN)
    source = _source(ended)
    assert source["VOLUME_REF"] == "v8"
    assert len(f"v8\timages:{source['IMAGES']}") == 100 * 1024


def test_the_warm_up_starts_with_its_folders_and_token(shell: list[str], tmp_path: pathlib.Path) -> None:
    ended = _pod(tmp_path, FEATURES, "htr-warmup-default-size").run("warmup", shell, 0, GIVEN)
    assert (ended.code, ended.stderr, ended.argv) == (0, "", ["-m", "htrflow_batch.warmup"])
    assert ended.environ is not None
    assert ended.environ["HF_TOKEN"] == GIVEN["HF_TOKEN"]
    assert ended.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert "HF_HUB_OFFLINE" not in ended.environ
    assert sorted(folder.name for folder in (tmp_path / "volumes" / "work").iterdir()) == ["home", "tmp", "ultralytics"]
    assert [folder.name for folder in (tmp_path / "volumes" / "data").iterdir()] == ["hf"]


def test_a_pod_whose_models_are_there_does_not_wait(shell: list[str], tmp_path: pathlib.Path) -> None:
    pod = _pod(tmp_path, EXAMPLE, "example")
    (tmp_path / "volumes" / "data" / "warmup").mkdir()
    (tmp_path / "volumes" / "data" / "warmup" / "demo-v1.done").touch()
    assert pod.run("warmup-wait", shell) == Ended(0, "", None, None, [])


def test_a_pod_waits_until_its_models_are_there(shell: list[str], tmp_path: pathlib.Path) -> None:
    pod = _pod(tmp_path, EXAMPLE, "example")
    pod.after_sleeps(3, "warmup/demo-v1.done")
    assert pod.run("warmup-wait", shell) == Ended(0, "", None, None, [10, 10, 10])


@pytest.mark.parametrize(
    ("repo", "job", "pipeline", "seconds", "slept"),
    [
        (EXAMPLE, "example", "demo-v1", 900, 900),
        # A deadline of 605 seconds, less the ten before which the pod speaks up.
        (FEATURES, "paused", "swedish-v1.2", 595, 590),
        (FEATURES, "letters", "default-size", 7190, 7190),
    ],
)
def test_a_pod_whose_models_do_not_come_gives_up_before_its_deadline(
    repo: pathlib.Path,
    job: str,
    pipeline: str,
    seconds: int,
    slept: int,
    tmp_path: pathlib.Path,
) -> None:
    ended = _pod(tmp_path, repo, job).run("warmup-wait", SHELLS["sh"])
    assert (ended.code, ended.stderr) == (
        13,
        f"no warm-up marker at /data/warmup/{pipeline}.done after {seconds}s: "
        "the pipeline's warm-up Job has not finished\n",
    )
    assert sum(ended.slept) == slept
