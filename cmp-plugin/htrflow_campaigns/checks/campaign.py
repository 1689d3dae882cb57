"""``campaigns/*.yaml``: their rules, and the campaigns they become."""

from __future__ import annotations

import re
import typing as t

from htrflow_campaigns import limits, names, parts, schemas, structure, urls
from htrflow_campaigns.document import Document, Mapping, Path, Sequence
from htrflow_campaigns.model import Campaign, Converter, Volume
from htrflow_campaigns.problems import Found, Position, Problem, Words, show
from htrflow_campaigns.rules import campaign as rules


class Context(t.NamedTuple):
    """What a campaign may refer to. ``converter`` is None when it is broken: then nothing is held against it."""

    converter: Converter | None
    pipelines: t.Collection[str]


def check_name(path: str, name: str) -> list[Problem]:
    """What is wrong with a campaign's name."""
    if not names.is_dns_label(name):
        return [rules.NAME.at(Position(path), name=name)]
    return [
        rules.NAME_RESERVED.at(Position(path), name=name, taken=Words(reserved.taken), owner=Words(reserved.owner))
        for reserved in names.RESERVED_CAMPAIGN_NAMES
        if reserved.pattern.fullmatch(name)
    ]


def check(document: Document, name: str, context: Context) -> tuple[Campaign | None, list[Problem]]:
    """The campaign, or None when something is wrong with it, and its problems and warnings."""
    problems = structure.check(document, "campaign")
    problems += check_name(document.path, name)
    root = document.root
    if not isinstance(root, Mapping):
        return None, problems
    volumes, lines, found = _volumes(document, root.get("volumes"), context.converter)
    problems += found
    problems += _references(document, root, context)
    if not problems:
        problems += _pod_names(document, name, lines)
    if problems.is_full or any(problem.rule.level == "problem" for problem in problems):
        return None, problems
    campaign = Campaign(
        name=name,
        path=document.path,
        pipeline=root["pipeline"],
        volumes=tuple(volumes),
        lines=tuple(lines),
        window=root.get("window"),
        priority=root.get("priority") or None,
        suspend=root.get("suspend", False),
        finished=root.get("finished", False),
    )
    return campaign, problems


def _volumes(
    document: Document, items: t.Any, converter: Converter | None
) -> tuple[list[Volume], list[str], list[Problem]]:
    volumes: list[Volume] = []
    lines: list[str] = []
    problems = Found()
    if not isinstance(items, Sequence):
        return volumes, lines, problems
    if len(items) > limits.CAMPAIGN_VOLUMES:
        position = document.at(("volumes", limits.CAMPAIGN_VOLUMES))
        return volumes, lines, [rules.TOO_MANY_VOLUMES.at(position, count=len(items), limit=limits.CAMPAIGN_VOLUMES)]
    template = converter.source_template if converter else None
    is_id = schemas.pattern("campaign", "properties", "volumes", "items", "else").fullmatch
    first: dict[str, int] = {}
    bare: int | None = None
    id_path: Path
    for index, item in enumerate(items):
        if problems.is_full:
            break
        if type(item) is str:
            id_, id_path = item, ("volumes", index)
            volume = Volume(id_, template.replace("{ref}", id_) if template else "")
            bare = index if bare is None and is_id(id_) else bare
        elif isinstance(item, Mapping) and isinstance(item.get("id"), str):
            id_, id_path = item["id"], ("volumes", index, "id")
            volume, found = _named_volume(document, index, item)
            problems += found
        else:
            continue
        if id_ in first:
            earlier = document.at(("volumes", first[id_])).line
            problems.append(rules.VOLUME_TWICE.at(document.at(id_path), id=id_, first=earlier))
        elif not is_id(id_):
            problems.append(_id_problem(document, id_path, id_))
        first.setdefault(id_, index)
        # Only a line that could be too long in UTF-8 is worth encoding.
        line = volume.line
        if len(line) * 4 > limits.VOLUME_LINE_BYTES:
            size = len(line.encode())
            if size > limits.VOLUME_LINE_BYTES:
                limit, position = limits.VOLUME_LINE_BYTES, document.at(("volumes", index))
                problems.append(rules.LINE_TOO_LONG.at(position, id=id_, size=size, limit=limit))
        volumes.append(volume)
        lines.append(line)
    if bare is not None and converter and not template:
        position = document.at(("volumes", bare))
        problems.append(rules.SOURCE_TEMPLATE_MISSING.at(position, id=items[bare]))
    return volumes, lines, problems


def _named_volume(document: Document, index: int, item: Mapping) -> tuple[Volume, list[Problem]]:
    problems = Found()
    manifest, images = item.get("manifest"), item.get("images")
    if type(manifest) is str:
        if fault := _address_fault(manifest):
            problems.append(
                rules.URL.at(document.at(("volumes", index, "manifest")), key=Words("manifest"), **fault._asdict())
            )
    else:
        manifest = None
    images = images if isinstance(images, Sequence) else []
    addresses = [url for url in images if isinstance(url, str)]
    for number, url in enumerate(images):
        if problems.is_full:
            break
        if isinstance(url, str) and (fault := _address_fault(url)):
            key, position = Words(f"image {number + 1}"), document.at(("volumes", index, "images", number))
            problems.append(rules.URL.at(position, key=key, **fault._asdict()))
    return Volume(item["id"], manifest, tuple(addresses)), problems


def _address_fault(url: str) -> urls.Fault | None:
    if "{ref}" in url:
        return urls.Fault(
            Words("holds {ref}, which is filled in only in source_template"), Words("write the whole address")
        )
    return urls.fault(url)


def _id_problem(document: Document, path: Path, id_: str) -> Problem:
    position = document.at(path)
    if "/" in id_ and not id_.lower().startswith(("http:", "https:")):
        return rules.REFERENCE_CODE.at(position, id=id_)
    if id_.lower().startswith(("http:", "https:")):
        reason = "it is an address, which belongs under manifest: of a volume with an id of its own"
    elif not id_:
        reason = "it is empty"
    elif wrong := re.search("[^A-Za-z0-9._-]", id_):
        reason = f"it holds {'a space' if wrong.group() == ' ' else show(wrong.group())}"
    elif len(id_) > limits.NAME_CHARACTERS:
        reason = f"it has {len(id_)} characters"
    else:
        end, sign = ("starts", id_[0]) if id_[0] in "._-" else ("ends", id_[-1])
        reason = f"it {end} with '{sign}'"
    return rules.VOLUME_ID.at(position, id=id_, reason=Words(reason))


def _references(document: Document, root: Mapping, context: Context) -> t.Iterator[Problem]:
    pipeline, priority, window = root.get("pipeline"), root.get("priority"), root.get("window")
    if isinstance(pipeline, str) and pipeline and pipeline not in context.pipelines:
        otherwise = f"add pipelines/{pipeline}.yaml" if names.is_pipeline_id(pipeline) else "name a file in pipelines/"
        instead = structure.suggest(pipeline.rpartition("/")[2], context.pipelines, otherwise)
        yield rules.PIPELINE_UNKNOWN.at(document.at(("pipeline",)), pipeline=pipeline, instead=instead)
    if context.converter is None:
        return
    classes = context.converter.priority_classes
    if isinstance(priority, str) and priority and priority not in classes:
        otherwise = f"write {structure.either(classes)}, or delete the line" if classes else "delete the line"
        instead = structure.suggest(priority, classes, otherwise)
        yield rules.PRIORITY_UNKNOWN.at(document.at(("priority",)), priority=priority, instead=instead)
    limit = context.converter.window
    # A number that has a problem of its own is none to clamp.
    if isinstance(window, int) and limit < window <= limits.INT32_MAX and document.source(("window",)) == str(window):
        yield rules.WINDOW_CLAMPED.at(document.at(("window",)), window=window, limit=limit)


def _pod_names(document: Document, name: str, lines: list[str]) -> t.Iterator[Problem]:
    pieces = parts.split(lines)
    for number, piece in enumerate(pieces, 1):
        job = names.job(name, number if len(pieces) > 1 else None)
        pod = names.last_pod(job, len(piece))
        if (excess := len(pod) - limits.NAME_CHARACTERS) > 0:
            characters = Words(f"{excess} character{'s' if excess > 1 else ''}")
            count = Words(f"{len(lines)} volume{'s' if len(lines) > 1 else ''}")
            position = Position(document.path)
            yield rules.NAME_TOO_LONG.at(position, volumes=count, pod=pod, length=len(pod), excess=characters)
            return
