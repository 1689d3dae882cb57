"""Writes plain data as YAML that people read in a diff and that Go and Python read alike."""

from __future__ import annotations

import re
import typing as t

import yaml
from yaml.emitter import ScalarAnalysis

#: Texts that a reader of YAML 1.2, or Go's, takes for a number or a truth value and PyYAML leaves unquoted.
_MISREAD_ELSEWHERE = re.compile(r"[yYnN]|[-+]?\.?[0-9][0-9a-fA-FxXoO_.eE:+-]*")
#: Without these a text can stand there as it is. Some of them end a line for one reader and not for another, and some
#: are dropped or refused.
_TO_ESCAPE = re.compile("[^\\t\\n -~\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010fffe]")
#: Lines whose white space a literal block would not keep for every reader: a first line that is empty or indented, a
#: tab that starts a line, white space that ends one.
_LOOSE_SPACE = re.compile(r"\A[ \n]|^\t|[ \t]$", re.MULTILINE)


def _fits_a_block(text: str) -> bool:
    return "\n" in text and not _TO_ESCAPE.search(text) and not _LOOSE_SPACE.search(text)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: t.Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        # PyYAML forgoes a literal block for a tab inside a line. As a key the text is written in double quotes.
        if _fits_a_block(scalar):
            return ScalarAnalysis(
                scalar=scalar,
                empty=False,
                multiline=True,
                allow_flow_plain=False,
                allow_block_plain=False,
                allow_single_quoted=False,
                allow_double_quoted=True,
                allow_block=True,
            )
        return super().analyze_scalar(scalar)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _fits_a_block(text):
        style = "|"
    elif "\n" in text or _TO_ESCAPE.search(text):
        style = '"'
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
