"""``python -m tests.cmp_plugin.local.driver``: a runner in a process of its own, to be killed.

Its arguments are the folder of data and a file of JSON with the Jobs and ConfigMaps. It ends when nothing is left.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

from htrflow_campaigns.local.data import Data
from htrflow_campaigns.local.repo import Wanted
from htrflow_campaigns.local.runner import Runner, Settings
from tests.cmp_plugin.local.here import PAUSE, SECRETS


def main() -> None:
    folder, file = map(pathlib.Path, sys.argv[1:])
    given = json.loads(file.read_text(encoding="utf-8"))
    wanted = Wanted(given["config_maps"], given["jobs"], frozenset(), (), "", "", "htr-batch")
    data = Data(folder)
    runner = Runner(data, Settings(8, SECRETS, {}, PAUSE))
    runner.want(wanted)
    while not runner.idle:
        if not runner.step():
            time.sleep(0.002)
    data.close()


if __name__ == "__main__":
    main()
