"""Writes plain data as YAML that people read in a diff and that Go and Python read alike."""

from __future__ import annotations

import re
import typing as t

import yaml
from yaml.emitter import ScalarAnalysis

#: Texts that a reader of YAML 1.2, or Go's, takes for a number or a truth value and PyYAML leaves unquoted.
_MISREAD_ELSEWHERE = re.compile(r"[yYnN]|[-+]?\.?[0-9][0-9a-fA-FxXoO_.eE:+-]*")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: t.Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        analysis = super().analyze_scalar(scalar)
        # A tab inside a line is fine in a literal block, which PyYAML forgoes for it.
        if "\t" in scalar and "\n" in scalar:
            analysis.allow_block = super().analyze_scalar(scalar.replace("\t", "_")).allow_block
        return analysis


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _MISREAD_ELSEWHERE.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
_Dumper.add_multi_representer(list, yaml.SafeDumper.represent_list)


def dump(data: t.Any) -> str:
    """``data`` as one YAML document, its keys in their order and no line folded."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def dump_all(documents: t.Iterable[t.Any]) -> str:
    """``documents`` as a stream of YAML documents."""
    return "---\n".join(map(dump, documents))
