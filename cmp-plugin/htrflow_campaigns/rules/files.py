"""The files of a campaigns repo and their YAML."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

NOT_UTF8 = Rule(
    "HTR001",
    "not-utf8",
    "A file is UTF-8 text",
    "this is not UTF-8 text: {reason}",
    "save the file as UTF-8",
)
CONTROL_CHARACTER = Rule(
    "HTR002",
    "control-character",
    "A file holds no control characters",
    "there is a control character here, {character}",
    "delete it",
)
TAB_INDENTATION = Rule(
    "HTR003",
    "tab-indentation",
    "Lines are indented with spaces",
    "a tab indents this line, and YAML takes only spaces",
    "replace the tab with spaces",
    fixable=True,
)
YAML_SYNTAX = Rule("HTR004", "yaml-syntax", "A file is YAML", "{reason}", "{remedy}")
DUPLICATE_KEY = Rule(
    "HTR005",
    "duplicate-key",
    "A key stands once",
    "{key} is written twice, on line {first} and here",
    "keep one of the two",
)
ALIAS = Rule(
    "HTR006",
    "alias",
    "Aliases stay small",
    "{reason}",
    "write the values out; a text that starts with '*' goes in quotes",
)
TAG = Rule(
    "HTR007",
    "yaml-tag",
    "Values carry no YAML tags",
    "the tag {tag} means nothing here",
    "delete the tag, or put the value in quotes if the '!' belongs to it",
)
FILE_TOO_LARGE = Rule(
    "HTR008",
    "file-too-large",
    "A file has at most 10 MiB and 400 000 values",
    "the file holds {found}, and at most {limit} are read",
    "split it into several files",
)
NESTING = Rule(
    "HTR009",
    "nesting",
    "Values are nested at most 40 deep",
    "this value is nested more than {limit} levels deep",
    "write it flatter",
)
SEVERAL_DOCUMENTS = Rule(
    "HTR010",
    "several-documents",
    "A file is one YAML document",
    "a second YAML document starts here, and it would not be read",
    "delete the --- line, or move what follows into a file of its own",
)
EMPTY_FILE = Rule("HTR011", "empty-file", "A file is not empty", "the file is empty", "{instead}")
BYTE_ORDER_MARK = Rule(
    "HTR012",
    "byte-order-mark",
    "A file starts with its text",
    "the file starts with a byte-order mark, which is skipped here but which other tools stumble over",
    "save the file as UTF-8 without a byte-order mark",
    level="warning",
    fixable=True,
)
LINK = Rule(
    "HTR013",
    "symbolic-link",
    "Links stay inside the repo",
    "this is a symbolic link that {reason}",
    "commit what it leads to in its place",
)
NOT_A_FILE = Rule("HTR014", "not-a-file", "A YAML name is a file", "this is {kind}, not a file", "{instead}")
SAME_STEM = Rule(
    "HTR015",
    "same-stem",
    "A name stands for one file",
    "{other} has the same name but for its ending, and both would be {name}",
    "delete or rename one of the two",
)
NOT_READ = Rule(
    "HTR016",
    "file-not-read",
    "No file is silently left out",
    "this file would not be read: {reason}",
    "{instead}",
)
UNREADABLE = Rule(
    "HTR017", "unreadable-file", "Every file can be read", "the file cannot be read ({reason})", "make it readable"
)
CONVERTER_MISSING = Rule(
    "HTR018",
    "converter-missing",
    "A repo has a converter.yaml",
    "there is no converter.yaml in this folder",
    "name the folder of a campaigns repo, or write a new one with: htrflow-campaigns init DIR",
)
NOT_A_FOLDER = Rule(
    "HTR020",
    "not-a-folder",
    "campaigns and pipelines are folders",
    "this is not a folder",
    "{instead}",
)
TOO_MANY_PROBLEMS = Rule(
    "HTR099",
    "too-many-problems",
    "At most 1 000 problems are said of a file",
    "there are more problems from here on, and only the first {limit} of a file are said",
    "correct those above first, then validate again",
)
FILE_NAME = Rule(
    "HTR019",
    "file-name",
    "File names are plain text",
    "this file name holds characters that cannot be shown",
    "rename the file",
)
