"""The command ``htrflow-campaigns``: arguments in, exit codes out.

What a sub-command needs is imported when it runs: Argo CD starts ``generate`` anew for every application and commit.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import io
import os
import pathlib
import sys
import typing as t

from htrflow_campaigns import __version__

if t.TYPE_CHECKING:
    from htrflow_campaigns.tree import Tree

EXIT_FINE, EXIT_PROBLEMS, EXIT_USAGE = 0, 1, 2


class _UsageError(Exception):
    """A command cannot do what it was called for. The message is one sentence."""


def main(arguments: t.Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code, which :func:`parser` describes."""
    # Short-lived, and without reference cycles worth collecting; with a million small values the collector takes longer
    # than the work.
    gc.disable()
    # Messages hold signs that not every locale has; a file name may even hold what is no character at all.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = parser().parse_args(arguments)
    try:
        return t.cast(int, options.run(options))
    except _UsageError as error:
        print(f"htrflow-campaigns {options.command}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:
        # Whoever reads the output has seen enough; without this, Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PROBLEMS
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    parser = argparse.ArgumentParser(
        prog="htrflow-campaigns",
        description="Checks a campaigns repo and turns it into Kubernetes objects.",
        epilog="Exit codes: 0 fine, 1 problems found or nothing done, 2 wrong usage, 3 (apply) some objects were left.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    init = commands.add_parser("init", help="write a new campaigns repo")
    init.add_argument("folder", metavar="DIR", type=pathlib.Path, help="the folder to write it into")
    init.add_argument("--ci", choices=("github", "none"), default="github", help="which CI to set up (github)")
    init.add_argument("--force", action="store_true", help="write over files that are there")
    init.set_defaults(run=_init)

    validate = commands.add_parser("validate", help="say everything that is wrong with a campaigns repo")
    validate.add_argument("repo", metavar="REPO", type=pathlib.Path, help="the campaigns repo")
    validate.add_argument("--base", metavar="REV", help="also check the change since this git revision")
    validate.add_argument(
        "--format", choices=("text", "github", "json", "sarif"), default="text", help="how to say it (text)"
    )
    validate.add_argument(
        "--values", metavar="FILE", type=pathlib.Path, action="append", default=[],
        help="also compare converter.yaml with values of the chart; may be given several times, as to helm",
    )  # fmt: skip
    validate.add_argument("--strict", action="store_true", help="fail on warnings too")
    validate.add_argument("--fix", action="store_true", help="first repair what has exactly one repair")
    validate.set_defaults(run=_validate)

    render = commands.add_parser("render", help="write the Kubernetes objects into a folder")
    render.add_argument("repo", metavar="REPO", type=pathlib.Path, help="the campaigns repo")
    render.add_argument("--out", metavar="DIR", type=pathlib.Path, required=True, help="the folder to write into")
    render.set_defaults(run=_render)

    generate = commands.add_parser("generate", help="print the Kubernetes objects for Argo CD")
    generate.add_argument(
        "repo", metavar="REPO", type=pathlib.Path, nargs="?", default=pathlib.Path(), help="the campaigns repo (.)"
    )
    generate.set_defaults(run=_generate)

    plan = commands.add_parser("plan", help="say what a change would run, and what Kubernetes would do")
    plan.add_argument("repo", metavar="REPO", type=pathlib.Path, help="the campaigns repo")
    plan.add_argument("--base", metavar="REV", help="the git revision before the change; without it, everything is new")
    plan.add_argument("--format", choices=("markdown", "json"), default="markdown", help="how to say it (markdown)")
    plan.add_argument(
        "--delivery", choices=("argocd", "apply"), default="argocd", help="how objects reach the cluster (argocd)"
    )
    plan.add_argument("--fetch", action="store_true", help="read the manifests of new campaigns and count their pages")
    plan.add_argument("--fetch-private", action="store_true", help="also ask servers in private networks for manifests")
    plan.add_argument(
        "--fetch-seconds", metavar="S", type=_seconds, default=120.0, help="how long servers are asked at most (120)"
    )
    plan.add_argument("--seconds-per-page", metavar="S", type=_seconds, help="how long a page takes on one pod")
    plan.add_argument("--results", metavar="URL", help="the results site, to learn how long a page takes")
    plan.set_defaults(run=_plan)

    apply = commands.add_parser("apply", help="bring a cluster to what a campaigns repo says, without Argo CD")
    apply.add_argument("repo", metavar="REPO", type=pathlib.Path, help="the campaigns repo")
    apply.add_argument("--prune", action="store_true", help="delete what the repo does not have, at the end")
    apply.add_argument("--allow-empty", action="store_true", help="let --prune delete everything for an empty repo")
    apply.add_argument("--namespace", metavar="NS", help="stop if converter.yaml names another namespace")
    apply.add_argument(
        "--pause-wait", metavar="S", type=_seconds, default=10.0,
        help="how long Kueue has to take up new campaigns that are paused (10)",
    )  # fmt: skip
    apply.add_argument("--dry-run", action="store_true", help="only say what would be sent, without the cluster")
    apply.add_argument("--out", metavar="DIR", type=pathlib.Path, help="also write the objects into this folder")
    apply.add_argument("--kubeconfig", metavar="FILE", type=pathlib.Path, help="how to reach the cluster (as kubectl)")
    apply.set_defaults(run=_apply)

    local = commands.add_parser("local", help="run a campaigns repo on this machine, without a cluster")
    local.add_argument("repo", metavar="REPO", type=pathlib.Path, help="the campaigns repo")
    local.add_argument(
        "--data", metavar="DIR", type=pathlib.Path, default=pathlib.Path("htrflow-data"),
        help="the folder for results, models and state (htrflow-data)",
    )  # fmt: skip
    local.add_argument("--port", metavar="N", type=_port, default=8080, help="where to look at results (8080)")
    local.add_argument("--slots", metavar="N", type=_slots, default=2, help="how many volumes are read at once (2)")
    local.add_argument("--watch", action="store_true", help="take up what changes in the repo")
    local.add_argument("--once", action="store_true", help="end when everything is done")
    local.add_argument("--s3", metavar="URL", help="write results into this bucket: its endpoint, a slash, its name")
    local.add_argument("--credentials", metavar="FILE", type=pathlib.Path, help="its keys (~/.aws/credentials)")
    local.set_defaults(run=_local)

    probe = commands.add_parser("probe", help="ask whether the plugin server answers")
    probe.add_argument("--sockets", metavar="DIR", type=pathlib.Path, help="where the plugin servers' sockets lie")
    probe.add_argument("--name", metavar="NAME", help="the plugin's name")
    probe.set_defaults(run=_probe)
    return parser


def _tree(folder: pathlib.Path) -> Tree:
    from htrflow_campaigns import tree

    try:
        return tree.from_folder(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _UsageError(f"{folder} cannot be read ({reason}) — name the folder of a campaigns repo") from None


def _init(options: argparse.Namespace) -> int:
    from htrflow_campaigns import init

    try:
        written = init.write(options.folder, ci=options.ci, force=options.force)
    except (init.InitError, OSError) as error:
        raise _UsageError(str(error)) from None
    print(init.describe(options.folder, written), end="")
    return EXIT_FINE


def _validate(options: argparse.Namespace) -> int:
    from htrflow_campaigns import chart_values, git, progress, validate
    from htrflow_campaigns.reports import formats, github

    tree = _tree(options.repo)
    try:
        values = chart_values.read(options.values) if options.values else None
    except chart_values.ValuesError as error:
        raise _UsageError(str(error)) from None
    if options.fix:
        tree = _fixed(options.repo, tree)
    with contextlib.ExitStack() as stack:
        advance = stack.enter_context(progress.bar("validating", "campaigns"))
        try:
            base = None if options.base is None else stack.enter_context(git.revision(options.repo, options.base))
            outcome = validate.validate(tree, base, advance, values)
        except git.GitError as error:
            raise _UsageError(str(error)) from None
    if options.format in formats.FROM_THE_TOP:
        outcome = formats.from_the_top(outcome, options.repo)
    sys.stdout.write(formats.FORMATS[options.format](outcome))
    sys.stdout.flush()
    if options.format == "github" and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
        with open(summary, "a", encoding="utf-8") as stream:
            stream.write(github.summary_markdown(outcome))
    failed = outcome.count("problem") or (options.strict and outcome.count("warning"))
    return EXIT_PROBLEMS if failed else EXIT_FINE


def _fixed(folder: pathlib.Path, tree: Tree) -> Tree:
    from htrflow_campaigns import fix

    try:
        for path, repairs in fix.fix(folder, tree).items():
            print(f"{path}: {'; '.join(repairs)}", file=sys.stderr)
    except OSError as error:
        raise _UsageError(f"{error.filename} cannot be written ({error.strerror})") from None
    return _tree(folder)


def _render(options: argparse.Namespace) -> int:
    from htrflow_campaigns import delivery, load, render
    from htrflow_campaigns.problems import ordered
    from htrflow_campaigns.reports import Outcome, text

    loaded = load.load(_tree(options.repo))
    if _lies_within(options.out, options.repo):
        raise _UsageError(f"{options.out} is where campaigns and pipelines are read from — write into another folder")
    try:
        written = render.render(loaded, delivery.Apply(), options.out)
    except OSError as error:
        raise _UsageError(f"{error.filename or options.out} cannot be written ({error.strerror})") from None
    if written is None:
        for _ in loaded.campaigns():
            pass
        sys.stderr.write(text.report(Outcome(ordered(loaded.problems), loaded.files)))
        return EXIT_PROBLEMS
    for path in written.removed:
        print(f"removed {path}")
    for path in written.written:
        print(f"wrote {path}")
    print(f"{len(written.written) + len(written.unchanged)} files in {options.out}, {len(written.unchanged)} unchanged")
    return EXIT_FINE


def _lies_within(out: pathlib.Path, repo: pathlib.Path) -> bool:
    """Whether a render into ``out`` would write among the sources, or over them."""
    from htrflow_campaigns import render

    sources = [(repo / name).resolve() for name in render.FOLDERS]
    targets = [folder.resolve() for folder in (out, *(out / name for name in render.FOLDERS))]
    return repo.resolve() in targets or any(target.is_relative_to(source) for target in targets for source in sources)


def _generate(options: argparse.Namespace) -> int:
    from htrflow_campaigns import delivery, generate, load, settings
    from htrflow_campaigns.problems import ordered

    try:
        plugin = settings.from_environment(os.environ)
    except settings.SettingError as error:
        raise _UsageError(str(error)) from None
    loaded = load.load(_tree(options.repo))
    lines = generate.generate(loaded, delivery.ArgoCD(), plugin)
    if not loaded.is_good():
        problems = [problem for problem in ordered(loaded.problems) if problem.rule.level == "problem"]
        print(generate.paragraph(problems), file=sys.stderr)
        return EXIT_PROBLEMS
    sys.stdout.buffer.writelines(lines)
    sys.stdout.buffer.flush()
    return EXIT_FINE


def _plan(options: argparse.Namespace) -> int:
    from htrflow_campaigns.plan import command

    names = [field.name for field in dataclasses.fields(command.Options)]
    chosen = command.Options(**{name: getattr(options, name) for name in names})
    try:
        text, good = command.run(chosen, _tree(options.repo), os.environ)
    except command.PlanError as error:
        raise _UsageError(str(error)) from None
    sys.stdout.write(text)
    sys.stdout.flush()
    return EXIT_FINE if good else EXIT_PROBLEMS


def _apply(options: argparse.Namespace) -> int:
    try:
        from htrflow_campaigns.apply import command
    except ModuleNotFoundError as error:
        raise _UsageError(
            f"{error.name} is not installed — install htrflow-campaigns with its extra apply: pip install"
            " 'htrflow-campaigns[apply]'"
        ) from None

    # Further tries of requests leave cycles behind.
    gc.enable()
    names = [field.name for field in dataclasses.fields(command.Options)]
    chosen = command.Options(**{name: getattr(options, name) for name in names})
    wanted = command.read(_tree(options.repo))
    if wanted is None:
        return EXIT_PROBLEMS
    if options.out is not None and (code := _render(options)) != EXIT_FINE:
        return code
    try:
        return command.run(chosen, wanted)
    except command.ApplyError as error:
        raise _UsageError(str(error)) from None


def _local(options: argparse.Namespace) -> int:
    try:
        from htrflow_campaigns.local import command
    except ModuleNotFoundError as error:
        raise _UsageError(
            f"{error.name} is not installed — install htrflow-campaigns with its extra local: pip install"
            " 'htrflow-campaigns[local]'"
        ) from None

    # It runs for days, with threads.
    gc.enable()
    try:
        return command.run(
            command.Options(
                options.repo,
                options.data,
                options.port,
                options.slots,
                options.watch,
                options.once,
                options.s3,
                options.credentials,
            )
        )
    except command.LocalError as error:
        raise _UsageError(str(error)) from None


def _port(text: str) -> int:
    return _number(text, 0, 65_535)


def _slots(text: str) -> int:
    return _number(text, 1, 10_000)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 86400")
    return seconds


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
    return int(text)


def _probe(options: argparse.Namespace) -> int:
    from htrflow_campaigns import probe

    fault = probe.probe(options.sockets or probe.SOCKETS, options.name or probe.PLUGIN)
    if fault:
        print(f"htrflow-campaigns probe: {fault}", file=sys.stderr)
        return EXIT_PROBLEMS
    return EXIT_FINE
