"""One apply at a time: the Lease that a run holds from its first look at the cluster to its last change."""

from __future__ import annotations

import datetime
import getpass
import os
import secrets
import socket
import time
import typing as t

from htrflow_campaigns.apply.cluster import LEASE, Cluster, RefusedError
from htrflow_campaigns.objects.pod import Object

NAME = "htrflow-campaigns-apply"
#: A Lease that was not renewed for so long belongs to a run that is dead.
EXPIRES = datetime.timedelta(minutes=10)

#: Seconds between two renewals. The longest request, with all its tries, takes about five minutes.
_RENEW_AFTER = 10.0
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
_CONFLICT, _NOT_FOUND = 409, 404


class TakenError(Exception):
    """Another apply holds the Lease, or it cannot be kept. The message is one sentence."""


def identity() -> str:
    """Who runs this, for those who have to wait."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()} (process {os.getpid()}, {secrets.token_hex(4)})"


class Lease:
    """Time is the API server's, from its answers: clocks of two machines may differ by more than ten minutes.

    The local clock only says how long ago this process renewed, which nobody else has to believe.
    """

    def __init__(self, cluster: Cluster, holder: str, renew_after: float = _RENEW_AFTER) -> None:
        self.holder = holder
        self._cluster, self._renew_after = cluster, renew_after
        self._object: Object = {}
        self._renewed = 0.0

    def acquire(self) -> None:
        """Takes the Lease, if nobody has it. Raises :class:`TakenError`."""
        for _ in range(3):
            found = self._cluster.get(LEASE, NAME)
            holder = _spec(found).get("holderIdentity") if found else None
            if found and holder and holder != self.holder and not self._is_dead(found):
                raise TakenError(
                    f"another apply is running in the namespace {self._cluster.namespace}: {holder}, since"
                    f" {_spec(found).get('acquireTime', 'an unknown time')} — wait until it has ended; if it was"
                    f" killed, its Lease {NAME} is free ten minutes after {_renewed(found):%H:%M:%S} UTC"
                )
            try:
                self._write(found, new=True)
                return
            except RefusedError as error:
                # Somebody was quicker, or this is the second try of a request that did get through.
                if error.status not in (_CONFLICT, _NOT_FOUND):
                    raise
                namespace_missing = error.status == _NOT_FOUND and found is None
                if namespace_missing:
                    raise
        raise TakenError(f"the Lease {NAME} changes all the time — see who writes it, and run this again")

    def keep(self) -> None:
        """Renews the Lease if that is due. Raises :class:`TakenError` if another one has it."""
        if _elapsed() - self._renewed >= self._renew_after:
            self.renew()

    def renew(self) -> None:
        """Renews the Lease, or raises :class:`TakenError`."""
        for _ in range(3):
            try:
                self._write(self._object, new=False)
                return
            except RefusedError as error:
                if error.status not in (_CONFLICT, _NOT_FOUND):
                    raise TakenError(f"the Lease {NAME} cannot be renewed: {error}") from None
            try:
                found = self._cluster.get(LEASE, NAME)
            except RefusedError as error:
                raise TakenError(f"the Lease {NAME} cannot be read: {error}") from None
            holder = _spec(found).get("holderIdentity") if found else None
            if found is None or holder != self.holder:
                by = f"taken by {holder}" if holder else "deleted"
                raise TakenError(f"the Lease {NAME} was {by} while this ran — run apply again when no other one runs")
            self._object = found
        raise TakenError(f"the Lease {NAME} changes all the time — see who writes it, and run this again")

    def release(self) -> None:
        """Gives the Lease back, if it is ours. Raises :class:`RefusedError` or :class:`UnreachableError`."""
        found = self._cluster.get(LEASE, NAME)
        if found and _spec(found).get("holderIdentity") == self.holder:
            metadata = found["metadata"]
            self._cluster.delete(LEASE, NAME, uid=metadata["uid"], resourceVersion=metadata["resourceVersion"])

    def _write(self, found: Object | None, *, new: bool) -> None:
        now = self._cluster.now.astimezone(datetime.UTC).strftime(_TIME)
        before = _spec(found)
        spec = {**before, "holderIdentity": self.holder, "renewTime": now}
        if new:
            spec["leaseDurationSeconds"] = int(EXPIRES.total_seconds())
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (before.get("leaseTransitions") or 0) + bool(before.get("holderIdentity"))
        metadata = found["metadata"] if found else {"name": NAME, "namespace": self._cluster.namespace}
        item = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        started = _elapsed()
        self._object = self._cluster.replace(LEASE, item) if found else self._cluster.create(LEASE, item)
        self._renewed = started

    def _is_dead(self, found: Object) -> bool:
        return self._cluster.now - _renewed(found) > EXPIRES


def _spec(found: Object | None) -> Object:
    return t.cast(Object, (found or {}).get("spec") or {})


def _renewed(found: Object) -> datetime.datetime:
    """When a Lease was renewed; at its creation, if it does not say."""
    spec = _spec(found)
    text = spec.get("renewTime") or spec.get("acquireTime") or found["metadata"]["creationTimestamp"]
    return datetime.datetime.fromisoformat(text)


def _elapsed() -> float:
    """Seconds that also pass while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
