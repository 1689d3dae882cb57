"""What the converter's way of reading YAML costs beside PyYAML's own and ruamel.yaml's."""

from __future__ import annotations

import dataclasses
import pathlib

from benchmarks.measure import Run, measure

#: What each way of reading YAML does with the bytes of one file. The loop around it is the same.
READERS = {
    "the converter, data with positions": "from htrflow_campaigns.yamldoc import parse; read = lambda b: parse('', b)",
    "PyYAML's C loader, data only": "import yaml; read = lambda b: yaml.load(b, yaml.CSafeLoader)",
    "PyYAML's C composer, nodes with positions": "import yaml; read = lambda b: yaml.compose(b, yaml.CSafeLoader)",
    "PyYAML without C, data only": "import yaml; read = lambda b: yaml.load(b, yaml.SafeLoader)",
    "ruamel.yaml, data with positions": "from ruamel.yaml import YAML; read = YAML(typ='rt').load",
}
_READ_ALL = """
import gc, pathlib, sys
gc.disable()
{reader}
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    read(file.read_bytes())
"""


def measure_readers(python: pathlib.Path, folder: pathlib.Path, output: pathlib.Path) -> dict[str, Run]:
    """Each reader on the 100 files in ``folder``, and on one file with 40 000 volumes for its memory."""
    found = {}
    for name, reader in READERS.items():
        command: list[str | pathlib.Path] = [python, "-c", _READ_ALL.format(reader=reader)]
        run = measure([*command, folder / "campaigns"], output, 3)
        large = measure([*command, folder / "large"], output)
        assert isinstance(run, Run), run
        assert isinstance(large, Run), large
        found[name] = dataclasses.replace(run, megabytes=large.megabytes)
    return found
