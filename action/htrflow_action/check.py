"""One run of the action: everything that is wrong, said in every place where a person or a program looks."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import tempfile
import typing as t

from htrflow_action import base, comment, event, findings, inputs, kyverno, outputs, planning, policies, summary
from htrflow_action.github_api import Api
from htrflow_action.inputs import Inputs
from htrflow_action.made import Maker
from htrflow_action.places import Places
from htrflow_campaigns import git, load, render, tree, validate
from htrflow_campaigns.delivery import Apply
from htrflow_campaigns.load import Loaded
from htrflow_campaigns.problems import Position, Problem, Rule, Words, ordered
from htrflow_campaigns.reports import Outcome, formats, github, plural
from htrflow_campaigns.reports import summary as counted

EXIT_FINE, EXIT_PROBLEMS, EXIT_USAGE = 0, 1, 2

NO_BASE = Rule("action", "base-missing", "A pull request is compared with its base", "{reason}", "{instead}")
NO_VERDICT = Rule(
    "action",
    "kyverno-failed",
    "The policies are checked",
    "nothing was held to the policies: {reason}",
    "run the check again; if that does not help, mend the policies, or the program in kyverno:",
)
NO_PLAN = Rule(
    "action",
    "plan-failed",
    "A pull request has a plan",
    "{reason}",
    "run htrflow-campaigns plan by hand",
    level="warning",
)


def main() -> int:
    """Runs the check and gives its exit code: 0 fine, 1 problems, 2 inputs that make no sense."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        asked = inputs.read(os.environ)
    except inputs.InputError as error:
        print(f"::error title=htrflow-campaigns::{_data(str(error))}")
        return EXIT_USAGE
    os.environ.pop("INPUT_TOKEN", None)
    base.trust_the_checkout(os.environ)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="htrflow-campaigns-", dir=asked.scratch))
    return Check(asked, event.read(os.environ), scratch).run()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


class Check:
    """One run. ``notes`` are sentences for the summary that are no fault of anybody's."""

    def __init__(self, asked: Inputs, happened: event.Event, scratch: pathlib.Path) -> None:
        self._asked = asked
        self._event = happened
        self._scratch = scratch
        self._notes: list[str] = []
        self._problems: list[Problem] = []
        #: Of files that may lie outside of the campaigns repo, with paths from the top of the checkout.
        self._elsewhere: list[Problem] = []

    def run(self) -> int:
        """Checks, says what it found, and gives the exit code."""
        revision = self._base()
        loaded = load.load(tree.from_folder(self._asked.folder))
        self._validate(loaded, revision)
        rendered = self._render()
        plan = self._plan(revision)
        outcome = self._outcome(loaded.files)
        sys.stdout.write(github.report(outcome))
        for note in self._notes:
            print(note)
        sys.stdout.flush()
        said = counted(outcome)
        if self._asked.comment:
            self._comment(said, plan)
        self._summarise(outcome, plan)
        outputs.write(
            os.environ,
            problems=str(outcome.count("problem")),
            warnings=str(outcome.count("warning")),
            rendered=rendered,
            plan=self._written(plan),
        )
        return EXIT_PROBLEMS if outcome.count("problem") else EXIT_FINE

    def _base(self) -> str | None:
        remote = base.Remote(os.environ.get("GITHUB_SERVER_URL", ""), self._asked.token)
        try:
            revision = base.find(self._asked.folder, self._event, self._asked.base, remote)
        except base.BaseError as error:
            reason, _, instead = str(error).partition(" — ")
            self._say(NO_BASE, reason=Words(reason), instead=Words(instead))
            return None
        if revision is None:
            self._notes.append("There is no base to compare with, so what changed was not checked.")
        return revision

    def _validate(self, loaded: Loaded, revision: str | None) -> None:
        maker = Maker(loaded) if self._asked.policies and loaded.converter else None
        objects = kyverno.Objects(self._scratch / "kyverno") if maker else None
        if objects and maker:
            objects.add(maker.pipelines())
        with contextlib.ExitStack() as stack:
            before = None
            if revision is not None:
                try:
                    before = stack.enter_context(git.revision(self._asked.folder, revision))
                except git.GitError as error:
                    reason, _, instead = str(error).partition(" — ")
                    self._say(NO_BASE, reason=Words(reason), instead=Words(instead))
            try:
                for campaign, _ in validate.checked(loaded, before):
                    if objects and maker:
                        objects.add(maker.campaign(campaign))
            except git.GitError as error:
                reason, _, instead = str(error).partition(" — ")
                self._say(NO_BASE, reason=Words(reason), instead=Words(instead))
        self._problems += loaded.problems
        if objects:
            self._hold_to_policies(loaded, objects)
        elif self._asked.policies:
            self._notes.append("Nothing was held to the policies, since converter.yaml has problems.")
        else:
            self._notes.append("Nothing was held to policies, as policies: none asks for.")

    def _hold_to_policies(self, loaded: Loaded, objects: kyverno.Objects) -> None:
        converter, asked = loaded.converter, self._asked
        assert converter is not None
        assert asked.policies is not None
        assert asked.kyverno is not None
        queues = {converter.namespace: converter.queue}
        found = policies.read(asked.policies, self._top(), queues, asked.repositories)
        self._elsewhere += found.problems
        for name in found.left_out:
            self._notes.append(f"The policy {name} was not checked: the input allowed-repositories is empty.")
        if not found.policies:
            return
        user = f"system:serviceaccount:{converter.namespace}:htrflow-apply"
        try:
            verdict = kyverno.apply(asked.kyverno, found, objects, user)
        except kyverno.KyvernoError as error:
            self._say(NO_VERDICT, reason=Words(kyverno.plain(str(error))))
            return
        self._elsewhere += verdict.problems
        places = Places(loaded.tree)
        self._problems = findings.merged(ordered(self._problems), verdict.rows, found.policies, objects.sources, places)
        policy = "1 policy" if len(found.policies) == 1 else f"{len(found.policies)} policies"
        self._notes.append(f"Kyverno held {plural(verdict.objects, 'object')} to {policy}.")

    def _render(self) -> str:
        out = self._scratch / "rendered"
        written = render.render(load.load(tree.from_folder(self._asked.folder)), Apply(), out)
        return str(out) if written is not None else ""

    def _plan(self, revision: str | None) -> str:
        if not self._asked.plan or revision is None:
            return ""
        try:
            planned = planning.plan(self._asked.folder, revision, self._asked.fetch)
        except planning.PlanError as error:
            self._say(NO_PLAN, reason=Words(str(error)))
            return ""
        self._problems += planned.problems
        return planned.markdown

    def _say(self, rule: Rule, **values: object) -> None:
        self._problems.append(rule.at(Position("converter.yaml"), **values))

    def _top(self) -> pathlib.Path:
        """What paths are relative to: the git checkout around the campaigns repo, or else the workspace."""
        folder = self._asked.folder
        return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), self._asked.workspace)

    def _outcome(self, files: int) -> Outcome:
        outcome, top = Outcome(ordered(self._problems), files), self._top()
        if self._asked.folder != top:
            outcome = formats.below(outcome, self._asked.folder.relative_to(top).as_posix())
        return outcome._replace(problems=ordered([*outcome.problems, *self._elsewhere]))

    def _comment(self, said: str, plan: str) -> None:
        number, repository = self._event.number, os.environ.get("GITHUB_REPOSITORY", "")
        if number is None or not repository:
            self._notes.append("There is no pull request to comment on.")
            return
        api = Api(os.environ.get("GITHUB_API_URL") or "https://api.github.com", self._asked.token)
        text = comment.body(self._asked.path, f"{said[:1].upper()}{said[1:]}.", plan)
        fault = comment.keep(api, repository, number, text)
        if fault:
            print(fault)
            self._notes.append(f"{fault}.")

    def _summarise(self, outcome: Outcome, plan: str) -> None:
        if path := os.environ.get("GITHUB_STEP_SUMMARY"):
            with pathlib.Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(summary.markdown(outcome, self._notes, plan, self._asked.path))

    def _written(self, plan: str) -> str:
        if not plan:
            return ""
        path = self._scratch / "plan.md"
        path.write_text(plan, encoding="utf-8", errors="backslashreplace")
        return str(path)


def rules() -> t.Iterator[Rule]:
    """Every rule of the action itself."""
    for module in (policies, sys.modules[__name__]):
        yield from (value for value in vars(module).values() if isinstance(value, Rule))
