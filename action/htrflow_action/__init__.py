"""What the GitHub Action does once it is installed: ``python -I -m htrflow_action`` checks one campaigns repo.

:mod:`inputs` and :mod:`event` say what is asked for, :mod:`base` finds the revision to compare with, :mod:`made`
renders, :mod:`policies`, :mod:`kyverno` and :mod:`report` hold what was rendered to the policies, :mod:`places` and
:mod:`findings` bring that back to the lines of the user's files, :mod:`planning` makes the plan, and :mod:`summary`,
:mod:`comment` and :mod:`outputs` say it all.
"""
