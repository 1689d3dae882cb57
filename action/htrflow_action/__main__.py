from __future__ import annotations

import sys

from htrflow_action import check

if __name__ == "__main__":
    sys.exit(check.main())
