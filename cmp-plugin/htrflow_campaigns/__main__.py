"""``python -m htrflow_campaigns``."""

import sys

from htrflow_campaigns.cli import main

sys.exit(main())
