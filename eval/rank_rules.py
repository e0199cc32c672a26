#!/usr/bin/env python3
"""How often each ranking rule of git-frites recommends a candidate that is right: see README.md.

  eval/rank_rules.py [--json] DIRECTORY
"""
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RULES = ["blast-radius", "agreement", "cross"]
RESAMPLES = 10_000


def run(where, *words):
    # No settings of the user's, so that everybody gets the same figures.
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(words, cwd=where, env=environment, text=True, stdout=subprocess.PIPE)


def git(where, *words):
    identity = ["-c", "user.name=eval", "-c", "user.email=eval@localhost", "-c", "commit.gpgsign=false"]
    done = run(where, "git", *identity, *words)
    if done.returncode != 0:
        sys.exit(f"fatal: git {shlex.join(words)} failed in {where}")
    return done.stdout


def verdicts(task, test, names, room):
    """The verdict of the program under each rule; it judges in a new repository, and reads no hidden outcome."""
    repository = Path(room) / task.name
    shutil.copytree(task / "base", repository)
    git(repository, "init", "-q")
    git(repository, "add", "-A", "-f")
    git(repository, "commit", "-q", "-m", "base")
    # The attempt number N copies the candidate number N.
    copy = 'shift "$FRITES_INDEX"; cp -R "$1/." .'
    paths = [str((task / "candidates" / name).resolve()) for name in names]
    spawn = ["frites", "spawn", "-q", "--run", "task", "-n", str(len(names)), "--", "sh", "-c", copy, "sh", "-"]
    git(repository, *spawn, *paths)
    for rule in RULES:
        words = ["git", "frites", "judge", "-q", "--json", "--cross", "--rank", rule, "--test", test, "task"]
        # Its exit code says how the candidates ended, and so does the verdict.
        verdict = json.loads(run(repository, *words).stdout)
        if "candidates" not in verdict:
            sys.exit(f"fatal: {task.name} cannot be judged: {verdict}")
        yield rule, verdict


def figure(rule, entry):
    """The figures by which a rule ranks a candidate. The program orders those that have the same ones by number."""
    size = (entry["lines"], entry["files"])
    if rule == "agreement":
        return (entry.get("agreement"), *size)
    if rule == "cross":
        return (entry.get("cross", {}).get("score"), *size)
    return size


def evaluate(task, room):
    """The share of right candidates among those that passed, and among those that each rule puts first."""
    about = json.loads((task / "task.json").read_text())
    hidden = about["hidden"]
    names = sorted(hidden)
    if names != sorted(path.name for path in (task / "candidates").iterdir()):
        sys.exit(f"fatal: {task}/task.json does not name the directories of candidates/")

    def right(entries):
        return sum(hidden[names[entry["index"] - 1]] for entry in entries) / len(entries)

    shares = {}
    picks = {}
    for rule, verdict in verdicts(task, about["test"], names, room):
        passing = [entry for entry in verdict["candidates"] if entry["passed"]]
        first = [entry for entry in passing if entry["candidate"] == verdict["recommended"]]
        if not first:
            return None
        tied = [entry for entry in passing if figure(rule, entry) == figure(rule, first[0])]
        shares["random"] = right(passing)
        shares[rule] = right(tied)
        picks[rule] = [names[entry["index"] - 1] for entry in tied]
    return {"task": task.name, "picks": picks, "right": shares}


def interval(values):
    """The mean, and its 95 % interval by a bootstrap over tasks whose seed is fixed."""
    chance = random.Random(0)
    count = len(values)
    means = sorted(sum(chance.choices(values, k=count)) / count for _ in range(RESAMPLES))
    return [sum(values) / count, means[int(RESAMPLES * 0.025)], means[int(RESAMPLES * 0.975) - 1]]


def main(words):
    as_json = words[:1] == ["--json"]
    if len(words) != 1 + as_json or not Path(words[-1]).is_dir():
        sys.exit(__doc__.strip())
    tasks = sorted(path.parent for path in Path(words[-1]).glob("*/task.json"))
    with tempfile.TemporaryDirectory(prefix="frites-eval-") as room:
        all_tasks = [evaluate(task, room) for task in tasks]
    done = [task for task in all_tasks if task]
    if not done:
        sys.exit(f"fatal: no candidate passes in any task of {words[-1]}")
    rules = {}
    for rule in ["random", *RULES]:
        values = [task["right"][rule] for task in done]
        gains = [task["right"][rule] - task["right"]["blast-radius"] for task in done]
        rules[rule] = {"right": interval(values), "over-blast-radius": interval(gains)}
    if as_json:
        print(json.dumps({"tasks": done, "without-a-pass": len(tasks) - len(done), "rules": rules}, indent=2))
        return
    for task in done:
        shown = [f"{rule} {'/'.join(picks)} ({task['right'][rule]:.2f})" for rule, picks in task["picks"].items()]
        print(f"{task['task']}: random ({task['right']['random']:.2f}), {', '.join(shown)}")
    print(f"{len(done)} tasks; in {len(tasks) - len(done)} more no candidate passes\n")
    for rule, figures in rules.items():
        mean, low, high = (100 * value for value in figures["right"])
        gain, least, most = (100 * value for value in figures["over-blast-radius"])
        print(f"{rule:13} {mean:5.1f} % [{low:.1f}, {high:.1f}]   {gain:+.1f} [{least:+.1f}, {most:+.1f}] to blast-radius")


if __name__ == "__main__":
    main(sys.argv[1:])
