//! The README and the pages that it leads to: its transcript is the demo's, its blocks work as they
//! are written, the recipes do what they promise.
use std::fs;
use std::path::Path;

use crate::common::{World, make_executable, source, write};

fn readme() -> String {
    fs::read_to_string(source().join("README.md")).unwrap()
}

fn recipes() -> String {
    fs::read_to_string(source().join("docs/RECIPES.md")).unwrap()
}

#[test]
fn newcomer_reads_the_readme_in_ten_minutes() {
    let text = readme();
    let words = text.split_whitespace().count();
    assert!(text.lines().count() <= 200 && words <= 2_000, "{words} words");
}

/// The fenced blocks of a language, each with the line before it.
fn blocks(text: &str, language: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let block: String =
                lines.by_ref().take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
            if info == language {
                found.push((before.to_owned(), block));
            }
        }
        before = line;
    }
    found
}

/// The only block of a language in the recipe that begins so.
fn recipe(begins: &str, language: &str) -> String {
    let text = recipes();
    let recipe = text.split("\n**").find(|r| r.starts_with(begins));
    let found = blocks(recipe.unwrap_or_else(|| panic!("no recipe '{begins}'")), language);
    assert_eq!(found.len(), 1, "{begins}");
    found[0].1.clone()
}

/// Times are of no matter.
fn without_times(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

#[test]
fn transcript_is_what_the_demo_prints() {
    let world = World::empty("elsewhere");
    let demo = source().join("demo/demo.sh");
    let shown = world.run(&world.repo, "sh", [demo.to_str().unwrap()]).expect(0);
    let shown: Vec<String> = without_times(&shown.out()).lines().map(str::to_owned).collect();
    let transcript = blocks(&readme(), "").remove(0).1;
    assert!(
        transcript.contains("$ git frites judge\n") && transcript.contains("$ git frites apply"),
        "{transcript}"
    );
    for line in transcript.lines() {
        assert!(shown.contains(&without_times(line)), "the demo does not print: {line}");
    }
}

#[test]
fn picture_shows_the_table_of_the_transcript() {
    let picture = fs::read_to_string(source().join("docs/judge.svg")).unwrap();
    assert!(readme().contains("](docs/judge.svg)"));
    // Neither a script nor anything from elsewhere.
    assert!(!picture.contains("<script") && !picture.contains("href"), "{picture}");
    let mut shown = String::new();
    for part in picture.split_once("<text").unwrap().1.split('<').skip(1) {
        shown.push_str(part.split_once('>').map_or("", |(_, text)| text));
    }
    let words = |text: &str| without_times(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words(&shown.replace("&apos;", "'").replace("&gt;", ">"));
    let transcript = blocks(&readme(), "").remove(0).1;
    let table = transcript.split("\n$ git frites apply").next().unwrap();
    for line in table.lines().filter(|line| !line.starts_with("hint:")) {
        assert!(shown.contains(&words(line)), "not in the picture: {line}\n{shown}");
    }
}

#[test]
fn every_shell_block_works_as_it_is_written() {
    let mut world = World::empty("checkout");
    // `make install` takes the program under test, and a copy of the source that is not to be
    // built.
    let target = world.home().join("target");
    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_git-frites"), target.join("release/git-frites")).unwrap();
    world.set_env("MAKEFLAGS", format!("-s CARGO=: TARGET={}", target.display()));
    let mut script = String::from("set -eu\n");
    let mut skipped = 0;
    for (before, block) in blocks(&readme(), "sh") {
        if before.starts_with("<!-- ") {
            skipped += 1;
        } else if block.starts_with("make install") {
            script.push_str(&format!(
                "(cd '{}'; {}\n)\nPATH=$HOME/.local/bin:$PATH\n",
                source().display(),
                block.trim_end()
            ));
            script
                .push_str("test \"$(command -v git-frites)\" = \"$HOME/.local/bin/git-frites\"\n");
        } else {
            // MAKEFLAGS is for the installation alone.
            script.push_str(&format!("unset MAKEFLAGS\n{block}"));
        }
    }
    // .ci/run runs `make demo` and `make test`.
    assert_eq!(skipped, 2, "the agents, and those two");
    script.push_str("test \"$(cat greeting)\" = hello\ngit log --format=%s -1\n");
    let answer = world.run(&world.repo, "bash", ["-c", &script]).expect(0);
    assert!(answer.out().ends_with("Fix the greeting again\n"), "{}", answer.out());
    assert!(world.home().join(".local/share/man/man1/git-frites.1").exists());
    let recipes = blocks(&recipes(), "sh").into_iter();
    let by_tests = recipes.filter(|(before, _)| !before.starts_with("<!-- "));
    assert_eq!(by_tests.count(), 2, "each is run by a test below");
}

#[test]
fn configuration_block_is_valid() {
    let world = World::new();
    let block = blocks(&readme(), "toml").remove(0).1;
    world.write(".frites.toml", &block);
    assert_eq!(world.frites(["config", "spawn.jobs"]).expect(0).out(), "4\n");
}

/// A project that greets wrongly, and `attempt.sh`, whose first attempt is right, whose second is
/// longer and whose third is wrong.
fn greeting() -> World {
    let world = World::unborn();
    world.write("greet.sh", "echo helo\n");
    world.write("test.sh", "test \"$(sh greet.sh)\" = hello\n");
    world.commit("greet");
    let attempt = "#!/bin/sh\ncase $FRITES_INDEX in\n1) echo echo hello >greet.sh ;;\n\
                   2) printf '# Greets.\\necho hello\\n' >greet.sh ;;\n3) printf 'echo\\thallo\\n' >greet.sh ;;\nesac\n";
    write(&world.repo.join("attempt.sh"), attempt);
    make_executable(&world.repo.join("attempt.sh"));
    fs::write(world.repo.join(".git/info/exclude"), "attempt.sh\nbisect.sh\nMakefile\n").unwrap();
    world
}

#[test]
fn recipe_oracles_side_by_side() {
    let world = greeting();
    // The recipe indents its recipes by `;` alone; what it greps for is a tab.
    world.write("Makefile", recipe("Checks in parallel", "make"));
    world.git(["add", "-f", "Makefile"]);
    world.git(["commit", "-qm", "make"]);
    let raced = world.run(&world.repo, "make", ["-s", "race"]).expect(0);
    assert!(
        raced.out().contains("judge: 2 of 3 passed; c1 changes the fewest lines"),
        "{}",
        raced.out()
    );
    world.run(&world.repo, "make", ["-s", "land"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:greet.sh"]), "echo hello");
    // The next time, the first attempt changes nothing.
    world.run(&world.repo, "make", ["-s", "race"]).expect(0);
    world.run(&world.repo, "make", ["-s", "land"]).expect(0);
    assert_eq!(world.git(["show", "HEAD:greet.sh"]), "# Greets.\necho hello");
}

#[test]
fn recipe_from_an_issue_to_a_pull_request() {
    let mut world = greeting();
    world.write(".frites.toml", "oracle.test = 'sh test.sh'\n");
    world.commit("configuration");
    let origin = world.home().join("origin.git");
    world.git(["init", "-q", "--bare", origin.to_str().unwrap()]);
    world.git(["remote", "add", "origin", origin.to_str().unwrap()]);
    let bin = world.home().join("bin");
    // What `gh` is asked for, and what it was given.
    let gh = "#!/bin/sh\ncase \"$1 $2\" in\n'issue view') test \"$*\" = \"issue view 17 --json title,body --jq $7\" && \
              printf 'Greet rightly\\n\\nIt says helo.\\n' ;;\n'pr create') shift 2; for word; do echo \"[$word]\"; done; cat ;;\n\
              *) exit 1 ;;\nesac >\"$HOME/answer\"; cat \"$HOME/answer\"\n";
    let claude = "#!/bin/sh\ngrep -q 'Greet rightly' && ./attempt.sh\n";
    for (name, text) in [("gh", gh), ("claude", claude)] {
        write(&bin.join(name), text);
        make_executable(&bin.join(name));
    }
    let path =
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&world.env("PATH"))));
    world.set_env("PATH", path.unwrap());
    world.git(["config", "frites.seed.copy", "attempt.sh"]);
    let script = world.repo.join("attempt-issue");
    write(&script, recipe("From an issue to a pull request", "bash"));
    let answer = world.run(&world.repo, "bash", [script.to_str().unwrap(), "17"]).expect(0);
    let out = answer.out();
    for words in ["[--head]\n[issue-17]\n[--title]\n[Greet rightly]\n", "2 of 3 passed"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(world.git_in(&origin, ["show", "issue-17:greet.sh"]), "echo hello");
    assert!(world.frites(["task", "1"]).expect(0).out().contains("GH-17"));
}

#[test]
fn recipe_go_to_a_candidate() {
    let world = World::new();
    world.spawn(["-n", "2"]);
    let line = format!("{}fcd c2\npwd\nfcd 1/c1\npwd\n", recipe("Go to a candidate.", "sh"));
    let paths =
        format!("{}\n{}\n", world.worktree("1/c2").display(), world.worktree("1/c1").display());
    assert_eq!(world.sh(&world.repo, &line).expect(0).out(), paths);
}

#[test]
fn recipe_an_alias() {
    let world = greeting();
    world.sh(&world.repo, &recipe("An alias", "sh")).expect(0);
    world.write(".frites.toml", "oracle.test = 'sh test.sh'\n");
    let raced = world.git(["race", "./attempt.sh"]);
    assert!(raced.contains("judge: 2 of 3 passed"), "{raced}");
}

/// The lines of each `run: |` of a workflow.
fn steps(workflow: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "run: |" {
            let indent = " ".repeat(line.len() - line.trim_start().len() + 2);
            let mut step = String::new();
            while let Some(more) = lines.next_if(|l| l.starts_with(&indent)) {
                step.push_str(&format!("{}\n", &more[indent.len()..]));
            }
            steps.push(step);
        }
    }
    steps
}

#[test]
fn recipe_github_actions() {
    let world = greeting();
    world.write(".frites.toml", "oracle.test = 'sh test.sh'\n");
    let origin = world.home().join("origin.git");
    world.git(["init", "-q", "--bare", origin.to_str().unwrap()]);
    world.git(["remote", "add", "origin", origin.to_str().unwrap()]);
    let workflow = recipe("GitHub Actions", "yaml");
    assert!(!workflow.contains('\t') && workflow.contains("runs-on: "), "{workflow}");
    let steps = steps(&workflow);
    assert_eq!(steps.len(), 2);
    for step in steps {
        // As the runner does it.
        world
            .run(&world.repo, "bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", &step])
            .expect(0);
    }
    assert_eq!(world.git_in(&origin, ["show", "attempts/greeting:greet.sh"]), "echo hello");
    assert!(
        world.git_in(&origin, ["for-each-ref", "refs/frites"]).contains("refs/frites/1/c2"),
        "whole runs are carried"
    );
}

#[test]
fn recipe_nothing_unverified_leaves() {
    let world = greeting();
    let origin = world.home().join("origin.git");
    world.git(["init", "-q", "--bare", origin.to_str().unwrap()]);
    world.git(["remote", "add", "origin", origin.to_str().unwrap()]);
    let hook = world.repo.join(".git/hooks/pre-push");
    write(&hook, recipe("Push only verified landings.", "bash"));
    make_executable(&hook);
    world.git(["push", "-q", "origin", "main"]);
    world.frites(["run", "-n", "3", "--test", "sh test.sh", "--", "./attempt.sh"]).expect(0);
    let push = |branch: &str| world.run(&world.repo, "git", ["push", "-q", "origin", branch]);
    world.frites(["apply", "-q", "--no-switch", "--branch", "good", "-m", "x"]).expect(0);
    push("good").expect(0);
    world
        .frites([
            "apply",
            "-q",
            "--no-switch",
            "--branch",
            "bad",
            "--allow-unverified",
            "-m",
            "x",
            "1/c3",
        ])
        .expect(0);
    let refused = push("bad").expect(1);
    assert!(
        refused
            .stderr
            .contains("pre-push: refs/heads/bad contains a change that has not passed the oracle"),
        "{}",
        refused.stderr
    );
    push(":good").expect(0);
    world
        .frites([
            "run",
            "-q",
            "-n",
            "1",
            "--test",
            "sh test.sh",
            "--",
            "sh",
            "-c",
            "echo : > test.sh",
        ])
        .expect(3);
    let own = ["apply", "-q", "--no-switch", "--branch", "own", "-m", "x"];
    world.frites(own).refuses(1, "only with its own tests or commands");
    world.frites(own.iter().chain(&["--allow-unverified"])).expect(0);
    push("own").expect(1);
}

#[test]
fn recipe_bisect_with_a_verdict() {
    let world = greeting();
    write(&world.repo.join("bisect.sh"), recipe("Bisect with a verdict", "bash"));
    make_executable(&world.repo.join("bisect.sh"));
    let good = world.git(["rev-parse", "HEAD"]);
    world.write("notes", "one\n");
    world.commit("still fine");
    world.write("test.sh", "test \"$(sh greet.sh)\" = goodbye\n");
    let bad = world.commit("wants another greeting");
    for text in ["two\n", "three\n"] {
        world.write("notes", text);
        world.commit("later");
    }
    world.git(["bisect", "start", "HEAD", &good]);
    let found = world.run(&world.repo, "git", ["bisect", "run", "./bisect.sh"]).expect(0);
    assert!(
        found.out().contains(&format!("{bad} is the first bad commit")),
        "{}\n{}",
        found.out(),
        found.stderr
    );
    world.git(["bisect", "reset"]);
    // The attempt changes nothing: that tells nothing.
    world.write("greet.sh", "echo hello\n");
    world.commit("greets already");
    world.run(&world.repo, "bash", ["./bisect.sh"]).expect(125);
}

#[test]
fn links_lead_to_existing_files() {
    for page in ["README.md", "docs/RECIPES.md", "docs/DECIDING.md", "docs/COMPARISON.md"] {
        let page = source().join(page);
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.starts_with("https://") {
                assert!(page.parent().unwrap().join(link).exists(), "{}: {link}", page.display());
            }
        }
    }
}

/// An agent that has the skill as its only text types these commands in this order.
#[test]
fn every_command_of_the_skill_works_as_it_is_written() {
    let skill = fs::read_to_string(source().join("skills/git-frites/SKILL.md")).unwrap();
    let world = World::new();
    world.write("Makefile", "test:\n\tgrep -qx hello greeting\n");
    world.write("greeting", "helo\n");
    world.commit("Greet");
    let mut others_make_them = Vec::new();
    for line in skill.lines().filter_map(|line| line.strip_prefix("    git ")) {
        if line.contains(" run ") {
            others_make_them.push(line);
            continue;
        }
        let line = line.replace("CMD", "'make test'");
        let answer = world.sh(&world.repo, &format!("git {line}")).expect(0);
        if line.starts_with("frites spawn") {
            for (row, more) in answer.out().lines().zip(["", "more"]) {
                let (address, directory) = row.split_once('\t').unwrap();
                assert_eq!(world.worktree(address), Path::new(directory));
                write(&Path::new(directory).join("greeting"), format!("hello\n{more}"));
            }
        }
        if line.ends_with("--json") {
            assert_eq!(answer.json()["recommended"], "c1");
            assert_eq!(answer.json()["verified"], true);
        }
        if line.starts_with("frites apply 1 ") {
            assert_eq!(world.git(["show", "frites/apply/1:greeting"]), "hello");
            assert_eq!(fs::read_to_string(world.repo.join("greeting")).unwrap(), "helo\n");
        }
    }
    assert_eq!(others_make_them.len(), 2, "{others_make_them:?}");
    world.git(["show-ref", "--verify", "--quiet", "refs/frites/1/c2"]);
    world.assert_clean();
}
