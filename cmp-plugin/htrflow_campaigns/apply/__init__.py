"""``apply``: brings a cluster to what a campaigns repo says, for platform teams without Argo CD.

What there is to do is decided by pure functions (:mod:`decide`, :mod:`records`) from two plain values: what the repo
asks for (:mod:`wanted`) and what the cluster has (:mod:`live`). :mod:`deliver` and :mod:`pauses` carry it out, in
order, while :mod:`lease` keeps every other apply out. Whatever stops a run, the next one goes on from there: nothing
is remembered but in the cluster.
"""
