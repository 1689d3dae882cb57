"""Contents of files that attack the converter's time, memory and messages."""

from __future__ import annotations

import random
import typing as t

MIB = 1024 * 1024
#: The largest file that is read, less the room for a few bytes around an attack.
FULL = 10 * MIB - 256

Content = t.Callable[[], bytes]

IMAGE = b"registry.example.org/htrflow-batch@sha256:" + b"0123456789abcdef" * 4


def _fill(unit: str | bytes, size: int = FULL) -> bytes:
    unit = unit.encode() if isinstance(unit, str) else unit
    return unit * (size // len(unit))


def _numbered(form: str, count: int) -> bytes:
    return "".join(form.format(number) for number in range(count)).encode()


def _list_bomb() -> bytes:
    levels = [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)]
    return "".join(["a0: &a0 [x,x,x,x,x,x,x,x,x]\n", *levels]).encode()


def _mapping_bomb() -> bytes:
    levels = [
        f"a{level}: &a{level} {{{', '.join(f'k{key}: *a{level - 1}' for key in range(9))}}}\n" for level in range(1, 10)
    ]
    return "".join(["a0: &a0 {k: x, l: x}\n", *levels]).encode()


def _merge_bomb() -> bytes:
    entries = b", ".join(b"k%d: x" % number for number in range(20_000))
    return b"a: &a {" + entries + b"}\nb:\n  <<: [" + b",".join([b"*a"] * 20_000) + b"]\n"


def _merge_chain() -> bytes:
    links = (f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: x}}\n" for n in range(1, 5_000))
    return "".join(["a0: &a0 {k: x}\n", *links]).encode()


def _merge_overridden() -> bytes:
    entries = b", ".join(b"k%d: x" % number for number in range(60_000))
    return b"a: &a {" + entries + b"}\nb: {<<: *a, " + entries + b"}\n"


#: Contents that are an attack in whichever of the three files they stand.
WHOLE: dict[str, Content] = {
    "aliases of lists, nine levels": _list_bomb,
    "aliases of mappings, nine levels": _mapping_bomb,
    "one mapping merged 20 000 times": _merge_bomb,
    "merges of merges": _merge_chain,
    "60 000 merged keys written again": _merge_overridden,
    "400 000 anchors": lambda: _numbered("- &a{} x\n", 390_000),
    "two million aliases": lambda: b"- &a x\n" + _fill("- *a\n"),
    "the name of an alias": lambda: b"*" + b"a" * FULL,
    "100 000 lists in lists, in brackets": lambda: b"[" * 100_000,
    "100 000 mappings in mappings, in braces": lambda: b"{a: " * 100_000,
    "100 000 lists in lists, by dashes": lambda: b"- " * 100_000,
    "100 000 keys of keys": lambda: b"? " * 100_000,
    "ten million brackets": lambda: b"[" * FULL,
    "mappings in mappings, each line further in": lambda: "".join(" " * n + "a:\n" for n in range(4_000)).encode(),
    "one line": lambda: b"a" * FULL,
    "one line of words": lambda: _fill("a "),
    "list items": lambda: _fill("- a\n"),
    "list items in brackets": lambda: b"[" + _fill("a,") + b"]",
    "numbers": lambda: _fill("- 1\n"),
    "a quote that never ends": lambda: b'"' + b"a" * FULL,
    "a quote over many lines that never ends": lambda: b'k: "' + _fill("a\n"),
    "escapes": lambda: b'"' + _fill(r"\u0041"),
    "tabs": lambda: b"\t" * FULL,
    "lines that start with a tab": lambda: _fill("\ta\n"),
    "hash signs": lambda: b"#" * FULL,
    "comments": lambda: _fill("#\n"),
    "emoji": lambda: _fill("😀"),
    "one emoji and letters": lambda: "😀".encode() + b"a" * FULL,
    "NULs": lambda: b"\0" * FULL,
    "random bytes": lambda: random.Random(0).randbytes(FULL),  # noqa: S311
    "one byte too many": lambda: b"#" * (10 * MIB + 1),
    "spaces": lambda: b" " * FULL,
    "line feeds": lambda: b"\n" * FULL + b"- ]",
    "carriage returns": lambda: b"\r" * FULL + b"zz: 1",
    "Windows line ends": lambda: _fill("\r\n") + b"zz: 1",
    "next-line characters": lambda: _fill("\x85") + b"zz: 1",
    "line separators": lambda: _fill("\u2028") + b"zz: 1",
    "byte-order marks": lambda: _fill("\ufeff"),
    "one key": lambda: b"k" * FULL + b": v",
    "one quoted key": lambda: b'? "' + b"k" * FULL + b'"\n: v',
    "colons": lambda: _fill(": "),
    "a literal text": lambda: b"a: |\n" + _fill(" a\n"),
    "a folded text": lambda: b"a: >\n" + _fill(" a\n"),
    "documents": lambda: _fill("---\n"),
    "document ends": lambda: _fill("...\n"),
    "tags": lambda: _fill("- !a x\n"),
    "%TAG lines": lambda: b"".join([*(b"%%TAG !a%d! x\n" % n for n in range(400_000)), b"--- a"]),
    "%TAG lines after the first document": lambda: b"a\n...\n" + _numbered("%TAG !a{}! x\n", 400_000) + b"--- a",
    "unknown % lines": lambda: _fill("%A b\n"),
    "a hexadecimal number": lambda: b"a: 0x" + b"f" * FULL,
    "a hexadecimal number of 6 000 digits": lambda: b"a: 0x" + b"f" * 6_000,
    "a binary number": lambda: b"a: 0b" + b"1" * FULL,
    "an octal number": lambda: b"a: 0" + b"7" * FULL,
    "a decimal number": lambda: b"a: " + b"1" * FULL,
    "a decimal number of 6 000 digits": lambda: b"a: " + b"1" * 6_000,
    "a decimal number of 100 000 digits": lambda: b"a: " + b"1" * 100_000,
    "a sexagesimal number of 10 000 parts": lambda: b"a: 1" + b":1" * 10_000,
    "a sexagesimal number": lambda: b"a: 1" + _fill(":1"),
    "a sexagesimal fraction": lambda: b"a: 1" + _fill(":1") + b".5",
    "an exponent": lambda: b"a: 1.0e+" + b"9" * FULL,
    "digits and underscores": lambda: b"a: 1" + b"_" * FULL,
    "a date and spaces": lambda: b"a: 2024-01-01" + b" " * FULL + b"x",
    "a fraction of a second": lambda: b"a: 2024-01-01T00:00:00." + b"9" * FULL,
    "dates out of range": lambda: b"a: 2024-13-45\nb: 9999-12-31T23:59:59-23:59\nc: 2024-01-01T00:00:00+99:99\n",
    "one key 190 000 times": lambda: b"a: 1\n" * 190_000,
    "95 000 keys twice": lambda: _numbered("k{}: 1\n", 95_000) * 2,
    "95 000 pairs of keys": lambda: _numbered("k{0}: 1\nk{0}: 1\n", 95_000),
    "190 000 unknown keys": lambda: _numbered("window{}: 1\n", 190_000),
    "90 000 long unknown keys": lambda: _numbered("w" * 80 + "{}: 1\n", 90_000),
    "190 000 keys that are numbers": lambda: _numbered("{}: 1\n", 190_000),
    "190 000 keys that are nothing": lambda: b"~: 1\n" * 190_000,
    "99 000 keys that are mappings": lambda: b"? {a: b}\n: c\n" * 99_000,
    "190 000 merges of nothing": lambda: b"<<: a\n" * 190_000,
}
_LONG = FULL - 1_000


def _volumes(content: bytes) -> bytes:
    return b"pipeline: demo-v1\nvolumes:\n" + content


def _address(url: bytes) -> bytes:
    return _volumes(b"  - id: a\n    manifest: " + url)


#: Attacks on the values of a campaign.
CAMPAIGN: dict[str, Content] = {
    "pipeline": lambda: b"volumes: [a]\npipeline: " + b"a" * _LONG,
    "priority": lambda: _volumes(b"  - a\npriority: ") + b"a" * _LONG,
    "suspend": lambda: _volumes(b"  - a\nsuspend: '") + b" " * MIB + b"true'",
    "window": lambda: _volumes(b"  - a\nwindow: '") + b"1" * 1_000_000 + b"'",
    "id": lambda: _volumes(b"  - ") + b"a" * _LONG,
    "id with an emoji": lambda: _volumes("  - 😀".encode()) + b"a" * _LONG,
    "id of dots": lambda: _volumes(b"  - ") + b"a." * 500_000,
    "id of dashes": lambda: _volumes(b"  - ") + b"a-" * 500_000,
    "id of slashes": lambda: _volumes(b"  - ") + b"a/" * 500_000,
    "address": lambda: _address(b"https://example.org/" + b"a" * _LONG),
    "host of dots": lambda: _address(b"https://" + b"a." * 500_000),
    "host of dashes": lambda: _address(b"https://" + b"a-" * 500_000),
    "host of underscores": lambda: _address(b"https://" + b"_" * 1_000_000),
    "host of other letters": lambda: _address(b"https://" + _fill("å.", 1_000_000)),
    "host that grows": lambda: _address(b"https://" + _fill("\ufdfa", 3_000_000)),
    "port": lambda: _address(b"https://a:" + b"1" * 1_000_000),
    "at signs": lambda: _address(b"https://" + b"@" * 1_000_000),
    "scheme": lambda: _address(b"a" * 1_000_000 + b"://a"),
    "100 000 images": lambda: _volumes(
        b"  - id: a\n    images:\n" + b"      - https://example.org/scan-0001.jpg\n" * 100_000
    ),
    "100 000 bad images": lambda: _volumes(
        b"  - id: a\n    images:\n" + b"      - https://exam ple.org/0001.jpg\n" * 100_000
    ),
    "390 000 bad images": lambda: _volumes(b"  - id: a\n    images: [" + b"x," * 390_000 + b"]"),
    "390 000 numbers as images": lambda: _volumes(b"  - id: a\n    images: [" + b"1," * 390_000 + b"]"),
    "390 000 dates as images": lambda: _volumes(b"  - id: a\n    images: [" + b"2024-01-01," * 390_000 + b"]"),
    "10 000 bad ids": lambda: _volumes(_numbered("  - bad_{}_\n", 10_000)),
    "390 000 bad ids": lambda: _volumes(_numbered("  - bad_{}_\n", 390_000)),
    "390 000 equal ids": lambda: _volumes(b"  - a\n" * 390_000),
    "390 000 good ids": lambda: _volumes(_numbered("  - a{}\n", 390_000)),
    "390 000 octal ids": lambda: _volumes(_numbered("  - 0{}\n", 390_000)),
    "390 000 dates as ids": lambda: _volumes(b"  - 2024-01-31\n" * 390_000),
    "390 000 ids that are nothing": lambda: _volumes(b"  -\n" * 390_000),
    "390 000 empty volumes": lambda: _volumes(b"  - {}\n" * 390_000),
    "130 000 volumes with an unknown key": lambda: _volumes(_numbered("  - {{id: a{0}, manifest{0}: a}}\n", 130_000)),
    "79 000 good volumes": lambda: _volumes(
        _numbered("  - {{id: a{0}, manifest: 'https://example.org/{0}'}}\n", 79_000)
    ),
    "one volume with 190 000 unknown keys": lambda: _volumes(
        b"  - {id: a, manifest: 'https://example.org/', " + _numbered("manifest{}: a, ", 190_000) + b"}"
    ),
}


def _pipeline(image: bytes = IMAGE, steps: bytes = b"  - step: Segmentation\n", more: bytes = b"") -> bytes:
    return b"image: " + image + b"\nsteps:\n" + steps + more


def _settings(settings: bytes) -> bytes:
    model = b"model: yolo, model_settings: {model: a/b, "
    return _pipeline(steps=b"  - step: Segmentation\n    settings: {" + model + settings + b"}\n")


#: Attacks on the values of a pipeline.
PIPELINE: dict[str, Content] = {
    "image": lambda: _pipeline(b"a" * _LONG),
    "image with an emoji": lambda: _pipeline("😀".encode() + b"a" * _LONG),
    "image of dots": lambda: _pipeline(b"a." * 500_000),
    "image of dashes": lambda: _pipeline(b"a-" * 500_000 + b"!"),
    "image of dashes only": lambda: _pipeline(b"a" + b"-" * 1_000_000),
    "image of underscores": lambda: _pipeline(b"a__" * 333_000 + b"@"),
    "image of slashes": lambda: _pipeline(b"a/" * 500_000),
    "step": lambda: _pipeline(steps=b"  - step: " + b"a" * _LONG),
    "model": lambda: _pipeline(steps=b"  - step: Segmentation\n    settings: {model: " + b"a" * 1_000_000 + b"}\n"),
    "revision": lambda: _settings(b"revision: " + b"a" * 1_000_000 + b"}"),
    "a setting": lambda: _settings(b"x: " + b"a" * 850_000 + b"}"),
    "a setting of line feeds": lambda: _settings(b'x: "' + b"\\n" * 400_000 + b'"}'),
    "a setting of bells": lambda: _settings(b'x: "' + b"\\a" * 500_000 + b'"}'),
    "a setting nested deep": lambda: _settings(b"x: " + b"[" * 33 + b"]" * 33 + b"}"),
    "190 000 unknown steps": lambda: _pipeline(steps=b"  - step: zz\n" * 130_000),
    "130 000 steps without a model": lambda: _pipeline(steps=b"  - step: Segmentation\n" * 130_000),
    "390 000 dates": lambda: _settings(b"x: [" + b"2024-01-01," * 390_000 + b"]}"),
    "390 000 numbers": lambda: _settings(b"x: [" + b"1," * 390_000 + b"]}"),
    "190 000 settings in the wrong place": lambda: _settings(b"}, " + _numbered("k{}: x, ", 190_000)),
    "size": lambda: _pipeline(more=b"size: " + b"a" * 1_000_000),
}
#: Attacks on the values of converter.yaml.
CONVERTER: dict[str, Content] = {
    **{
        key: lambda key=key: f"{key}: ".encode() + b"a" * _LONG  # type: ignore[misc]
        for key in ("namespace", "s3_secret", "results_url", "source_template", "default_size", "window")
    },
    "secret of dots": lambda: b"s3_secret: " + b"a." * 500_000,
    "queue of dashes": lambda: b"queue: " + b"a-" * 500_000,
    "templates": lambda: b"source_template: https://example.org/" + b"{ref}" * 200_000,
    "a long template": lambda: b"source_template: https://example.org/{ref}/" + b"a" * 1_000_000,
    "a taint": lambda: b"tolerations: [{key: " + b"a/" * 500_000 + b"}]",
    "390 000 bad classes": lambda: b"priority_classes: [" + b"A," * 390_000 + b"]",
    "390 000 good classes": lambda: b"priority_classes: [" + b"a," * 390_000 + b"]",
    "390 000 tolerations without a key": lambda: b"tolerations: [" + b"{}," * 390_000 + b"]",
    "190 000 bad node labels": lambda: b"node_selector: {" + _numbered("-{}: x, ", 190_000) + b"}",
    "190 000 node labels": lambda: b"node_selector: {" + _numbered("k{}: x, ", 190_000) + b"}",
    "100 000 flavors": lambda: b"flavors: {" + _numbered("k{}: {{a: '!'}}, ", 100_000) + b"}",
    "130 000 empty sizes": lambda: b"sizes: {" + _numbered("k{}: {{}}, ", 130_000) + b"}",
    "sizes that name no flavor, of 20 000": lambda: b"".join(
        [
            b"flavors: {",
            _numbered("smalx{}: {{}}, ", 20_000),
            b"}\nsizes: {",
            _numbered("k{}: {{flavor: small, gpu: 1, cpu: 1, memory: 9Gi}}, ", 20_000),
            b"}",
        ]
    ),
    "an unknown default among 40 000 sizes": lambda: (
        b"default_size: zz\nsizes: {" + _numbered("k{}: {{gpu: 1, cpu: 1, memory: 9Gi}}, ", 40_000) + b"}"
    ),
    "an amount": lambda: b"sizes: {a: {gpu: 1, cpu: 1, memory: '" + b"1" * 1_000_000 + b"'}}",
    "an amount out of range": lambda: b"sizes: {a: {gpu: 1, cpu: 1.0e+300, memory: 1}}",
}
VALUES = [
    *(("campaigns/letters.yaml", name, content) for name, content in CAMPAIGN.items()),
    *(("pipelines/demo-v1.yaml", name, content) for name, content in PIPELINE.items()),
    *(("converter.yaml", name, content) for name, content in CONVERTER.items()),
]
