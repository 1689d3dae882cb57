"""Runs a workflow with the action in it, without GitHub and without a container: the program ``act`` is the runner."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import typing as t

from tests.action.runner import COMMIT, TOP, Done, Workspace

#: What the checkout of the action holds that a run needs.
PARTS = (
    "action.yml",
    "action",
    "cmp-plugin/htrflow_campaigns",
    "helm/htrflow-batch/files",
    "helm/htrflow-batch/policies",
    "requirements/action.lock",
    "schemas",
    "wrapper/htrflow_batch",
)
USES = "AI-Riksarkivet/htrflow-campaigns@0123456789abcdef0123456789abcdef01234567"
_ATTEMPTS = 3


def checkout_of_the_action(folder: pathlib.Path) -> pathlib.Path:
    """A copy of what a runner downloads for ``uses:``."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / part).is_dir():
            shutil.copytree(TOP / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(TOP / part, target)
    return folder


def environment(folder: pathlib.Path) -> pathlib.Path:
    """A Python as ``install.sh`` finds it the second time, with the libraries of this one: nothing is downloaded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    shutil.copy2(TOP / "requirements" / "action.lock", folder / "installed.lock")
    return folder


class Runner(t.NamedTuple):
    """``act``, the action that it runs, and the environment that the action finds installed (None: it installs it)."""

    act: pathlib.Path
    action: pathlib.Path
    python: pathlib.Path | None

    def run(
        self, workspace: Workspace, event: str, payload: t.Any, *, env: t.Mapping[str, str] | None = None, **given: str
    ) -> Done:
        """Commits the workspace with a workflow, and runs that. act now and then drops what a step says as it ends, so
        that a run without the last words of the action is run again."""
        seen = workspace.temp / "seen"
        workflow = workspace.path / ".github" / "workflows" / "check.yaml"
        workflow.parent.mkdir(parents=True, exist_ok=True)
        workflow.write_text(_workflow(event, seen, self.python, given), encoding="utf-8")
        workspace.commit()
        for _ in range(_ATTEMPTS):
            shutil.rmtree(seen, ignore_errors=True)
            seen.mkdir()
            done = self._once(workspace, event, payload, seen, env or {})
            if done.outputs.get("problems") or done.outputs.get("outcome") == "failure":
                break
        return done

    def _once(
        self, workspace: Workspace, event: str, payload: t.Any, seen: pathlib.Path, env: t.Mapping[str, str]
    ) -> Done:
        command = [str(self.act), event, "--json", "-P", "ubuntu-latest=-self-hosted"]
        command += ["--eventpath", workspace.event(payload), "--local-repository", f"{USES}={self.action}"]
        command += [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
        done = subprocess.run(
            command,
            cwd=workspace.path,
            env={**os.environ, "XDG_CACHE_HOME": str(workspace.temp / "cache")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        of_action = [entry for entry in said if (entry.get("stepID") or [""])[0] == "check"]
        printed = "".join(str(entry.get("raw") or entry["msg"] * ("raw_output" in entry)) for entry in of_action)
        summaries = {entry["content"]: None for entry in of_action if entry.get("command") == "summary"}
        outputs = {path.name: path.read_text(encoding="utf-8").rstrip("\n") for path in seen.iterdir()}
        return Done(done.returncode, printed or done.stdout + done.stderr, "".join(summaries), outputs)


def _workflow(event: str, seen: pathlib.Path, python: pathlib.Path | None, given: t.Mapping[str, str]) -> str:
    inputs = "".join(f"          {name.replace('_', '-')}: {json.dumps(value)}\n" for name, value in given.items())
    installed = f'      - run: ln -s {python} "$RUNNER_TEMP/htrflow-campaigns-python"\n' if python else ""
    return f"""\
on: {event}
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@{COMMIT}
        with: {{persist-credentials: false}}
{installed}\
      - id: check
        uses: {USES}
        continue-on-error: true
        with:
{inputs}\
      - shell: bash
        env:
          OUTCOME: ${{{{ steps.check.outcome }}}}
          PROBLEMS: ${{{{ steps.check.outputs.problems }}}}
          WARNINGS: ${{{{ steps.check.outputs.warnings }}}}
          RENDERED: ${{{{ steps.check.outputs.rendered }}}}
          PLAN: ${{{{ steps.check.outputs.plan }}}}
        run: |
          cd {seen}
          for name in OUTCOME PROBLEMS WARNINGS RENDERED PLAN; do
            printf '%s\\n' "${{!name}}" >"${{name,,}}"
          done
          if [ -n "$RENDERED" ]; then
            (cd "$RENDERED" && echo */*.yaml) >files
          fi
"""
