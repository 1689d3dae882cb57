"""What a changed key of ``converter.yaml`` does to campaigns that are new, and to those that run."""

from __future__ import annotations

_NEW = "campaigns that are new take it; {running}"
_PODS = f"{_NEW}; warm-ups run again"

#: ``{running}`` is what becomes of campaigns that run.
_EFFECTS = {
    "namespace": "everything is created there, runs from its first volume, and writes below another prefix",
    "queue": "campaigns that are new wait in it; those that run stay where they are",
    "window": "how many volumes run at once at most; {window}",
    "priority_classes": "only which priorities a campaign may name",
    "s3_secret": _NEW,
    "hf_token_secret": "warm-ups run again with it; campaigns do not use it",
    "data_pvc": f"{_PODS}, into the new claim",
    "runtime_class": _PODS,
    "node_selector": _PODS,
    "tolerations": _PODS,
    "results_url": _NEW,
    "source_template": "bare codes of campaigns that are new; the list of a campaign that has started is fixed",
    "max_seconds": _NEW,
    "warmup_wait_seconds": _NEW,
    "manifest_max_bytes": _NEW,
    "fetch_max_bytes": _NEW,
    "flavors": f"{_NEW}; warm-ups of pipelines whose size names a changed one run again",
    "sizes": f"{_NEW}; warm-ups of pipelines whose size moves to another flavor run again",
    "default_size": f"{_NEW}: those whose pipeline names no size",
}
_WORDS = {
    "argocd": {
        "running": "what runs goes on with what it was created with",
        "window": "a running campaign that it changes is stopped and queued again",
    },
    "apply": {
        "running": "what runs goes on as it is, and apply names it and ends with exit code 3",
        "window": "apply stops when it changes a running campaign",
    },
}
_TTL = {
    "argocd": "nothing: Argo CD keeps a finished Job until its file is gone",
    "apply": "how long a finished Job stays",
}


def effect(key: str, delivery: str) -> str:
    """The effect of a changed ``key``, as a clause."""
    if key == "ttl_seconds_after_finished":
        return _TTL[delivery]
    return _EFFECTS[key].format(**_WORDS[delivery])
