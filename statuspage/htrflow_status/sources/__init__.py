"""Where campaigns are known from: the Kubernetes API, or the folder of ``htrflow-campaigns local``.

Objects become facts, one module a kind; :mod:`~htrflow_status.sources.objects` makes of the facts of one Job what the
pages show, :mod:`~htrflow_status.sources.cache` keeps all of them. Whatever is missing or unreadable in an object is a
reason among others, and never an error: labels, annotations and status come from elsewhere.
"""
