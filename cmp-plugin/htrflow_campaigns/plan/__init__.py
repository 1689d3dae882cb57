"""What a change of a campaigns repo would run, before it is merged: ``htrflow-campaigns plan``.

:mod:`change` compares the files, :mod:`kubernetes` the objects that they become, :mod:`workload` says what a campaign
asks for, :mod:`pages` and :mod:`results` ask servers (only with ``--fetch`` and ``--results``), :mod:`hours` reckons.
"""
