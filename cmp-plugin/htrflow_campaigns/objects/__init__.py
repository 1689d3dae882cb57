"""The Kubernetes objects, as plain data that looks like the YAML it becomes. Only this package builds them.

They are the same for every delivery; :mod:`htrflow_campaigns.delivery` adds what differs.
"""
