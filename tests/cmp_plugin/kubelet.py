"""What the kubelet does to start a container, without a cluster: replace variables, put mounts in place, run.

A mount is put in place by writing its folder's real path wherever the container's command or environment names the
mount. That needs no privilege, so it works the same on every machine. All else is the container's own text.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

from tests.cmp_plugin.object_checks import Object, containers, pod_spec


def expand(text: str, variables: t.Mapping[str, str]) -> str:
    """``text`` with ``$(NAME)`` replaced, as Kubernetes documents it for commands, arguments and environments.

    ``$$`` is a dollar sign, and a reference to a variable that is not there stays as it is.
    """

    def replace(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", replace, text)


def environment(container: Object, given: t.Mapping[str, str]) -> dict[str, str]:
    """The variables of a container. ``given`` has those that come from elsewhere; it may lack optional ones."""
    resolved: dict[str, str] = {}
    for variable in container.get("env", []):
        name = variable["name"]
        if "valueFrom" not in variable:
            resolved[name] = expand(variable.get("value", ""), resolved)
        elif name in given:
            resolved[name] = given[name]
        elif not variable["valueFrom"].get("secretKeyRef", {}).get("optional"):
            raise KeyError(name)
    return resolved


class Ended(t.NamedTuple):
    """How a container ended. ``argv`` and ``environ`` are those of the program it became, or None when it became none.

    Paths in ``stderr`` and ``environ`` are those inside of the container. ``slept`` has the seconds of each sleep.
    """

    code: int
    stderr: str
    argv: list[str] | None
    environ: dict[str, str] | None
    slept: list[int]


class Pod:
    """One pod of a Job: its mounts as folders below ``top``, with the content of its ConfigMaps."""

    def __init__(self, top: pathlib.Path, job: Object, objects: t.Iterable[Object]) -> None:
        self.top = top
        self._job = job
        data = {found["metadata"]["name"]: found["data"] for found in objects if found["kind"] == "ConfigMap"}
        for volume in pod_spec(job)["volumes"]:
            folder = top / "volumes" / volume["name"]
            folder.mkdir(parents=True)
            for name, text in data[volume["configMap"]["name"]].items() if "configMap" in volume else ():
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
        self._programs = top / "bin"
        self._programs.mkdir()
        # The interpreter is where the container's script ends and the wrapper begins.
        self._stub("python", f"cat /proc/$$/cmdline >'{top}/argv'\ncat /proc/$$/environ >'{top}/environ'\nexit 0")
        self._stub("sleep", f'echo "$1" >>"{top}/slept"')

    def _stub(self, name: str, script: str) -> None:
        (self._programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (self._programs / name).chmod(0o755)

    def after_sleeps(self, count: int, marker: str) -> None:
        """Lets ``marker``, a path below the mount ``data``, appear while the container sleeps for the n-th time."""
        file = self.top / "volumes" / "data" / marker
        test = f'[ "$(wc -l <"{self.top}/slept")" -lt {count} ] || {{ mkdir -p "{file.parent}" && : >"{file}"; }}'
        self._stub("sleep", f'echo "$1" >>"{self.top}/slept"\n{test}')

    def run(self, name: str, shell: t.Sequence[str], index: int = 0, variables: t.Mapping[str, str] = {}) -> Ended:
        """Runs the container ``name`` with ``shell`` in the place of ``/bin/sh``."""
        (container,) = (found for found in containers(self._job) if found["name"] == name)
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        given = {"JOB_COMPLETION_INDEX": str(index), **variables}
        resolved = environment(container, given)
        # The Job controller adds this one.
        resolved["JOB_COMPLETION_INDEX"] = given["JOB_COMPLETION_INDEX"]
        command = [expand(text, resolved) for text in [*container["command"], *container.get("args", [])]]
        assert command[0] == "/bin/sh"
        path = f"{self._programs}:/usr/local/bin:/usr/bin:/bin"
        placed = {key: self._place(value, mounts, whole=True) for key, value in resolved.items()} | {"PATH": path}
        done = subprocess.run(
            [*shell, *(self._place(text, mounts, whole=False) for text in command[1:])],
            cwd=self.top,
            env={key.encode(): value.encode() for key, value in placed.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        argv, environ = self._left("argv"), self._left("environ")
        slept = self.top / "slept"
        return Ended(
            done.returncode,
            self._inside(done.stderr.decode(), mounts),
            # A script's own argv begins with its interpreter and its path.
            argv and argv[2:],
            None if environ is None else self._variables(environ, mounts),
            [int(line) for line in slept.read_text().split()] if slept.exists() else [],
        )

    def _variables(self, pairs: t.Iterable[str], mounts: t.Mapping[str, str]) -> dict[str, str]:
        split = (pair.partition("=") for pair in pairs)
        return {name: self._inside(value, mounts) for name, _, value in split}

    def _left(self, name: str) -> list[str] | None:
        file = self.top / name
        if not file.exists():
            return None
        content = file.read_bytes().decode().removesuffix("\0").split("\0")
        file.unlink()
        return content

    def _place(self, text: str, mounts: t.Mapping[str, str], *, whole: bool) -> str:
        """``text`` with real paths for those of mounts: at its start only, or wherever a word of a script begins."""
        for mount, name in mounts.items():
            start = "^" if whole else r"(?<![\w/.])"
            text = re.sub(f"{start}{re.escape(mount)}(?=/|$)", lambda _, n=name: str(self.top / "volumes" / n), text)  # type: ignore[misc]
        return text

    def _inside(self, text: str, mounts: t.Mapping[str, str]) -> str:
        for mount, name in mounts.items():
            text = text.replace(str(self.top / "volumes" / name), mount)
        return text
