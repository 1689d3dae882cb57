"""Whatever stands in a file: sentences or objects come out, and no text of a user's becomes anything but itself."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import typing as t

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from htrflow_campaigns import delivery, generate, load, names, schemas, settings, validate, yaml_writer
from htrflow_campaigns.problems import Problem
from htrflow_campaigns.render import files
from htrflow_campaigns.tree import Entry, Tree

IMAGE = "registry.example.org/htrflow-batch@sha256:" + "0123456789abcdef" * 4
GOOD = {
    "converter.yaml": """\
# The settings of this repo.
results_url: https://htr.example.org/results
source_template: https://iiif.example.org/arkis!{ref}/manifest
node_selector: {nvidia.com/gpu.present: "true"}
tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
flavors: {l4: {nvidia.com/gpu.product: NVIDIA-L4}}
sizes:
  small: {flavor: l4, gpu: 1, cpu: 4, memory: 16Gi, workdir: 2Gi}
default_size: small
""",
    "campaigns/letters.yaml": """\
pipeline: demo-v1
priority: htr-bulk
window: 2
volumes:
  - R0001203
  - 30002056
  - id: letters-1
    manifest: https://iiif.example.org/letters-1/manifest.json
  - id: loose-scans
    images:
      - https://example.org/iiif/full/2500,/0/scan-0001.jpg
      - https://example.org/$(HOME)`id`'x'%20*
""",
    "pipelines/demo-v1.yaml": f"""\
image: {IMAGE}
max_seconds: 7200
steps:
  - step: Segmentation
    settings: {{model: yolo, model_settings: {{model: a/regions, revision: {"0123456789abcdef" * 2}01234567}}}}
  - step: Segmentation
    settings:
      model: yolo
      model_settings: {{model: a/lines}}
""",
}
#: What the hostile content stands in for. Beside it the repo is good, so that whatever is refused is refused for it.
FILES = st.sampled_from([*GOOD])
KINDS: dict[str, schemas.Kind] = {
    "converter.yaml": "converter",
    "campaigns/letters.yaml": "campaign",
    "pipelines/demo-v1.yaml": "pipeline",
}
bounded = hypothesis.settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)

_NASTY = st.sampled_from(
    [
        "$(HOME)",
        "$$(HOME)",
        "`id`",
        "$(id)",
        '"; id; "',
        "';id;'",
        "a\nb",
        "a\tb",
        "a\rb",
        "\u2028",
        "\x85",
        "a b",
        "\ufeff",
        "../..",
        "/etc/passwd",
        "-rf",
        "~",
        "a: b",
        "*a",
        "&a",
        "!a",
        "%a",
        "{ref}",
        "{0}",
        "{}",
        "{what}",
        "%s",
        "",
        " ",
        "0123",
        "1:20",
        "1e3",
        "y",
        "null",
        "2024-01-31",
        "2024-13-45",
        "0x" + "f" * 80,
        ".inf",
        "😀",
        "\u202e",
        "å" * 70,
        "https://example.org/a",
        "https://a b",
        "https://a/\nb",
        "https://u:p@a/",
        "letters-part1",
        "htr-warmup-a",
        "A" * 300,
    ]
)
_TEXTS = _NASTY | st.text(max_size=20) | st.text("abcR0123-._/:$({})\n\t ", max_size=30)
_SCALARS = _TEXTS | st.integers() | st.booleans() | st.none() | st.floats() | st.dates() | st.binary(max_size=3)
_KEYS = st.sampled_from(sorted({key for kind in KINDS.values() for key in schemas.load(kind)["properties"]}))
_KEYS |= st.sampled_from(["id", "manifest", "images", "step", "settings", "model", "model_settings", "revision", "key"])
_KEYS |= st.sampled_from(["operator", "effect", "value", "gpu", "cpu", "memory", "workdir", "flavor", "<<"])
_DATA = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | _TEXTS, inner, max_size=4)
)
_ODD = [
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "*b",
    "!!str ",
    "!!binary ",
    "!a ",
    "<<: *a",
    "| \n",
    ">-\n",
    '"',
    "'",
]
_ODD += [
    "\n",
    "\n  ",
    "\n    ",
    "\t",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "%TAG ! a\n",
    "# a\n",
    "\\",
    "\\x",
    "~",
    "0777",
    "1:2",
    "=",
    "@",
    "`",
]
_ODD += [
    "\r\n",
    "\r",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x00",
    "\x7f",
    "<<<<<<< HEAD\n",
    "id: a\n",
    "volumes:\n",
    "steps:\n",
    "https://",
]
YAMLISH = st.lists(
    st.sampled_from(_ODD) | _KEYS.map("{}: ".format) | _TEXTS | st.sampled_from([*GOOD.values()]), max_size=25
).map("".join)


def _tree(changed: t.Mapping[str, bytes]) -> Tree:
    contents = {**{path: text.encode() for path, text in GOOD.items()}, **changed}
    entries = {path: Entry(path, pathlib.PurePath(path).stem) for path in contents}
    campaigns, pipelines = (
        [entry for path, entry in entries.items() if path.startswith(folder)] for folder in ("campaigns/", "pipelines/")
    )
    return Tree(entries["converter.yaml"], campaigns, pipelines, [], contents.__getitem__)


def check(changed: t.Mapping[str, bytes]) -> list[Problem]:
    """Holds everything that must be true against the good repo with ``changed`` in it, and returns what is wrong."""
    tree = _tree(changed)
    outcome = validate.validate(tree)
    for problem in outcome.problems:
        _check_problem(problem, {**{path: text.encode() for path, text in GOOD.items()}, **changed})
    found = [problem for problem in outcome.problems if problem.rule.level == "problem"]
    loaded = load.load(tree)
    lines = generate.generate(loaded, delivery.ArgoCD(), settings.Settings())
    assert loaded.is_good() == (not found)
    if found:
        said = generate.paragraph(found)
        assert len(said.encode()) <= 6 * 1024
        assert said.replace("\n", " ").isprintable()
    else:
        rendered = [*files(load.load(tree), delivery.Apply())]
        _check_objects(tree, lines)
        assert [path for path, _ in rendered] == ["pipelines/demo-v1.yaml", "campaigns/letters.yaml"]
        for _, text in rendered:
            assert all(yaml.safe_load_all(text))
    return found


def _check_problem(problem: Problem, contents: t.Mapping[str, bytes]) -> None:
    path, line, column = problem.position
    assert problem.message.isprintable(), problem
    assert " — " in problem.message
    assert problem.what.strip()
    assert problem.instead.strip()
    assert len(problem.message) < 1500
    assert path in contents
    text = contents[path].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    lines = re.split(r"\r\n|\r|\n", text)
    assert 1 <= line <= len(lines)
    assert 1 <= column <= len(lines[line - 1]) + 1


def _expand(value: str, known: t.Mapping[str, str]) -> str:
    """``$(NAME)`` in the value of a variable, as the kubelet expands it."""
    return re.sub(
        r"\$\$|\$\(([^)]*)\)",
        lambda match: "$" if match[0] == "$$" else known.get(match[1], match[0]),
        value,
    )


#: From the documentation of labels: at most 63 of these, a letter or digit at both ends.
_LABEL_VALUE = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_OWN = {names.MANAGED_BY_LABEL, names.PIPELINE_LABEL}
_CAMPAIGN = _OWN | {names.CAMPAIGN_LABEL}
_LABELS = {
    ("ConfigMap", "htr-pipeline-demo-v1"): [_OWN],
    ("Job", "htr-warmup-demo-v1"): [_OWN | {"app"}],
    ("ConfigMap", "campaign-letters"): [_CAMPAIGN],
    ("Job", "letters"): [
        _CAMPAIGN | {"app", names.QUEUE_LABEL},
        _CAMPAIGN | {"app", names.QUEUE_LABEL, names.PRIORITY_LABEL},
    ],
}


@functools.cache
def _reference() -> dict[tuple[str, str], t.Any]:
    loaded = load.load(_tree({}))
    objects = [json.loads(line) for line in generate.generate(loaded, delivery.ArgoCD(), settings.Settings())]
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}


def _containers(job: t.Any) -> list[t.Any]:
    spec = job["spec"]["template"]["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def _script(container: t.Any) -> str:
    # Of a script only the seconds of the wait are a user's, and they are a number.
    return re.sub(
        "(?<=-le )[0-9]+ |(?<=after )[0-9]+s", "", "\n".join([*container["command"], *container.get("args", [])])
    )


def _check_objects(tree: Tree, lines: t.Sequence[bytes]) -> None:
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    objects = {(thing["kind"], thing["metadata"]["name"]): thing for thing in map(json.loads, lines)}
    reference = _reference()
    assert objects.keys() == reference.keys()
    loaded = load.load(tree)
    [(campaign, _)] = loaded.campaigns()
    pipeline, converter = loaded.pipelines["demo-v1"], loaded.converter
    assert converter is not None
    for name, thing in objects.items():
        labels = thing["metadata"]["labels"]
        assert {*labels} in _LABELS[name]
        assert all(type(value) is str and _LABEL_VALUE.fullmatch(value) for value in labels.values())
        assert _LABEL_VALUE.fullmatch(thing["metadata"]["namespace"])
        assert all(type(value) is str for value in thing["metadata"].get("annotations", {}).values())

    volumes = objects["ConfigMap", "campaign-letters"]["data"]["volumes.txt"]
    assert volumes.count("\n") == len(campaign.volumes)
    assert volumes.endswith("\n")
    for row, volume in zip(volumes.removesuffix("\n").split("\n"), campaign.volumes, strict=True):
        assert row.count("\t") == 1
        id_, _, source = row.partition("\t")
        assert id_ == volume.id
        assert source == (volume.manifest or "images:" + " ".join(volume.images))
        assert row.replace("\t", "").isprintable()
        assert source.count(" ") == max(0, len(volume.images) - 1)
    config = yaml.safe_load(objects["ConfigMap", "htr-pipeline-demo-v1"]["data"]["pipeline.yaml"])
    assert repr(config) == repr({"steps": json.loads(json.dumps(pipeline.steps))})

    given = {"PIPELINE_ID": "demo-v1", "IMAGE_DIGEST": pipeline.image, "S3_PREFIX": f"{converter.namespace}/"}
    given |= {"RESULTS_URL": converter.results_url}
    for name in (("Job", "letters"), ("Job", "htr-warmup-demo-v1")):
        for container, good in zip(_containers(objects[name]), _containers(reference[name]), strict=True):
            assert _script(container) == _script(good)
            assert container["image"] == pipeline.image
            known: dict[str, str] = {}
            for variable in container.get("env", []):
                assert re.fullmatch("[A-Z0-9_]+", variable["name"])
                if "value" in variable:
                    known[variable["name"]] = _expand(variable["value"], known)
            assert {key: known[key] for key in given if key in known} == {
                key: given[key] for key in given if key in known
            }


def test_the_good_files_are_good() -> None:
    assert check({}) == []


@bounded
@hypothesis.given(FILES, st.binary(max_size=200))
def test_any_bytes_in_any_file(file: str, content: bytes) -> None:
    check({file: content})


@bounded
@hypothesis.given(FILES, st.text(max_size=200))
def test_any_text_in_any_file(file: str, content: str) -> None:
    check({file: content.encode("utf-8", "surrogatepass")})


@bounded
@hypothesis.given(FILES, YAMLISH)
def test_what_looks_like_yaml_in_any_file(file: str, content: str) -> None:
    check({file: content.encode("utf-8", "surrogatepass")})


@st.composite
def _mutated(draw: st.DrawFn, content: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        parts: list[bytes] = content.splitlines(keepends=True) if draw(st.booleans()) else [bytes([b]) for b in content]
        place = draw(st.integers(0, max(0, len(parts) - 1)))
        match draw(st.sampled_from(["delete", "insert", "double", "move"])):
            case "delete":
                del parts[place : place + draw(st.integers(1, 3))]
            case "insert":
                parts.insert(place, draw(st.binary(max_size=3) | YAMLISH.map(lambda text: text[:9].encode())))
            case "double":
                parts[place:place] = parts[place : place + 1] * draw(st.integers(1, 40))
            case _ if parts:
                parts.append(parts.pop(place))
        content = b"".join(parts)
    return content


@bounded
@hypothesis.given(FILES.flatmap(lambda file: st.tuples(st.just(file), _mutated(GOOD[file].encode()))))
def test_a_good_file_with_changes_in_it(change: tuple[str, bytes]) -> None:
    check(dict([change]))


@bounded
@hypothesis.given(FILES, _DATA)
def test_any_data_written_as_yaml(file: str, data: t.Any) -> None:
    check({file: yaml.safe_dump(data, allow_unicode=True).encode()})


def _places(data: t.Any, path: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _places(value, (*path, key))


@st.composite
def _with_one_field(draw: st.DrawFn) -> tuple[str, str]:
    file = draw(FILES)
    data = yaml.safe_load(GOOD[file])
    *way, last = draw(st.sampled_from([path for path in _places(data) if path]))
    container = data
    for step in way:
        container = container[step]
    if isinstance(container, dict) and draw(st.booleans()):
        container[draw(_KEYS | _TEXTS)] = container.pop(last)
    else:
        container[last] = draw(_SCALARS | _DATA)
    return file, yaml.safe_dump(data, allow_unicode=draw(st.booleans()), sort_keys=False)


@hypothesis.settings(bounded, max_examples=250)
@hypothesis.given(_with_one_field())
def test_a_hostile_value_or_key_in_any_field(change: tuple[str, str]) -> None:
    file, content = change
    check({file: content.encode()})


@hypothesis.settings(bounded, max_examples=50)
@hypothesis.given(
    st.lists(
        st.tuples(
            st.from_regex("[A-Za-z0-9]([A-Za-z0-9._-]{0,10}[A-Za-z0-9])?", fullmatch=True),
            st.lists(
                st.from_regex(r"https://[a-z]{1,9}/[!-~]{0,20}", fullmatch=True).filter(
                    lambda url: not {*'<>"\\'} & {*url}
                ),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda volume: volume[0],
    )
)
def test_every_legal_id_and_address_reaches_volumes_txt_as_it_is(volumes: list[tuple[str, list[str]]]) -> None:
    data = {"pipeline": "demo-v1", "volumes": [{"id": id_, "images": urls} for id_, urls in volumes]}
    assert check({"campaigns/letters.yaml": yaml_writer.dump(data).encode()}) == []


CORPUS = sorted((pathlib.Path(__file__).parent / "hostile" / "files").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
@pytest.mark.parametrize("file", [*GOOD])
def test_a_file_of_the_corpus_in_the_place_of_any_file_is_refused(path: pathlib.Path, file: str) -> None:
    assert check({file: path.read_bytes()})


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("converter.yaml", 'default_size: zz\nsizes: {"a\\nb": {gpu: 1, cpu: 1, memory: 9Gi}}\n'),
        ("converter.yaml", 'flavors: {"a\\nb": {}}\nsizes: {a: {flavor: zz, gpu: 1, cpu: 1, memory: 9Gi}}\n'),
        ("converter.yaml", 'sizes: {"a\\nb": {flavor: zz, gpu: 1, cpu: 1, memory: 9Gi, workdir: 9Gi}}\n'),
        ("converter.yaml", 'priority_classes: ["a\\nb"]\n'),
        ("converter.yaml", 'window: "1\\u0085"\n'),
        ("campaigns/letters.yaml", 'pipeline: "a\\nb"\npriority: "c\\nd"\nvolumes: ["e\\tf"]\n'),
        ("campaigns/letters.yaml", 'pipeline: "../a"\nvolumes: [{"id\\n": a, id: "b\\nc", manifest: "d\\ne"}]\n'),
        (
            "pipelines/demo-v1.yaml",
            'image: "a\\nb"\nsize: "c\\nd"\nsteps: [{step: "e\\nf"}, {step: Segmentation, "g\\n": 1}]\n',
        ),
        ("pipelines/demo-v1.yaml", 'steps: [{step: Segmentation, settings: {model: "a\\nb", "c\\nd": 1}}]\n'),
    ],
)
def test_a_line_break_in_a_name_that_a_message_repeats_stays_inside_the_message(file: str, content: str) -> None:
    assert check({file: content.encode()})
