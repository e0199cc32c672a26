//! The manual: that man/ is what the program makes, that it renders without a warning, that what is
//! installed is what `git frites --help` and `man` open.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{World, skipped, source};

fn names(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The commands that `-h` lists.
fn verbs(world: &World) -> Vec<String> {
    let help = world.run(&world.repo, "git-frites", ["-h"]).expect(0).out();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    names
        .map(|l| l.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

fn has(world: &World, program: &str) -> bool {
    world.sh(&world.repo, &format!("command -v {program}")).code == 0
}

#[test]
fn the_pages_are_what_the_program_makes() {
    let world = World::empty("no repository");
    let (made, kept) = (world.home().join("made"), source().join("man"));
    world.run(&world.repo, "git-frites", ["man", "--write", made.to_str().unwrap()]).expect(0);
    if std::env::var_os("FRITES_BLESS").is_some() {
        fs::remove_dir_all(&kept).unwrap();
        world.run(&world.repo, "git-frites", ["man", "--write", kept.to_str().unwrap()]).expect(0);
    }
    let pages = |directory: &Path| names(directory).into_iter().collect::<BTreeSet<_>>();
    let stale = |name: &String| fs::read(made.join(name)).ok() != fs::read(kept.join(name)).ok();
    let stale: Vec<String> =
        pages(&made).union(&pages(&kept)).filter(|name| stale(name)).cloned().collect();
    assert!(
        stale.is_empty(),
        "man/ is not what the command line and src/manual/ say: {stale:?}\nmake it again with `make man`, look at \
         `git diff man`, and commit it (a conflict in man/ is resolved the same way)"
    );
}

#[test]
fn every_command_has_a_page_with_all_its_options() {
    let world = World::empty("no repository");
    let verbs = verbs(&world);
    assert!(verbs.len() >= 8, "{verbs:?}");
    for verb in verbs {
        let page = fs::read_to_string(source().join(format!("man/git-frites-{verb}.1")))
            .unwrap()
            .replace("\\-", "-");
        let help = world.run(&world.repo, "git-frites", [&verb, "-h"]).expect(0).out();
        for word in help.split_whitespace().filter(|w| w.starts_with("--") && w.len() > 3) {
            let option = word.trim_end_matches([',', ']', ')', '.', '`']);
            assert!(page.contains(option), "{verb}: {option}");
        }
        for section in
            [".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS", ".SH EXAMPLES", ".SH SEE ALSO"]
        {
            assert!(
                page.replace('"', "").contains(section),
                "git-frites-{verb}(1) has no {section}"
            );
        }
    }
}

#[test]
fn the_pages_render_without_a_warning() {
    let world = World::empty("no repository");
    let mandoc = has(&world, "mandoc");
    if !mandoc {
        skipped("mandoc is not installed");
    }
    // What man-db calls; macOS has another man.
    let man = has(&world, "man") && world.sh(&world.repo, "man --version").out().contains("man 2");
    if !man {
        skipped("man-db is not installed");
    }
    for name in &names(&source().join("man")) {
        let file = source().join("man").join(name);
        if mandoc {
            let lint =
                world.run(&world.repo, "mandoc", ["-Tlint", "-Wall", file.to_str().unwrap()]);
            assert_eq!((lint.code, lint.out()), (0, String::new()), "{name}");
        }
        if man {
            let line = "MANROFFSEQ= MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z \"$1\" >/dev/null";
            let warned = world.run(&world.repo, "sh", ["-euc", line, "sh", file.to_str().unwrap()]);
            assert_eq!((warned.code, warned.stderr.as_str()), (0, ""), "{name}");
        }
    }
}

/// Installs with the program that is being tested, which saves a release build.
fn install(world: &World, arguments: &[&str]) {
    let target = world.home().join("target");
    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_git-frites"), target.join("release/git-frites")).unwrap();
    let target = format!("TARGET={}", target.display());
    let arguments = [&["-s", "install", "CARGO=:", &target], arguments].concat();
    world.run(&source(), "make", arguments).expect(0);
}

#[test]
fn what_is_installed_is_what_help_opens() {
    let mut world = World::new();
    if !has(&world, "man") {
        return skipped("man is not installed");
    }
    let prefix = world.home().join("a prefix");
    install(&world, &[&format!("PREFIX={}", prefix.display())]);
    // The manual path is taken apart at colons alone, so the blank is no matter; git's own pages may be missing.
    world.set_env("MANPATH", prefix.join("share/man"));
    world.set_env("MANWIDTH", "80");
    let path = std::env::join_paths(
        std::iter::once(prefix.join("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    world.set_env("PATH", path.unwrap());
    let cases: &[(&str, &[&str], &str)] = &[
        ("git", &["frites", "--help"], "GIT-FRITES(1)"),
        ("git", &["help", "frites"], "GIT-FRITES(1)"),
        ("git", &["help", "git-frites-judge"], "GIT-FRITES-JUDGE(1)"),
        ("man", &["git-frites-judge"], "GIT-FRITES-JUDGE(1)"),
        ("man", &["git-frites-tutorial"], "GIT-FRITES-TUTORIAL(7)"),
    ];
    for (program, arguments, title) in cases {
        let page = world.run(&world.repo, program, *arguments).expect(0).out();
        assert!(page.starts_with(title), "{program} {arguments:?}:\n{page}");
        assert!(page.contains("EXAMPLES") || page.contains("NEXT STEPS"), "{page}");
    }
}

#[test]
fn installing_respects_destdir_and_is_undone_by_uninstall() {
    let world = World::empty("root");
    let destination = format!("DESTDIR={}", world.repo.display());
    install(&world, &[&destination, "PREFIX=/usr"]);
    let installed: BTreeSet<String> = crate::common::files_below(&world.repo)
        .into_iter()
        .map(|path| path.strip_prefix(&world.repo).unwrap().to_str().unwrap().to_owned())
        .collect();
    let pages = names(&source().join("man")).into_iter();
    let mut expected: BTreeSet<String> = pages
        .map(|page| format!("usr/share/man/man{}/{page}", page.rsplit('.').next().unwrap()))
        .collect();
    expected.extend(
        [
            "usr/bin/git-frites",
            "usr/share/git-frites/git-frites.schema.json",
            "usr/share/bash-completion/completions/git-frites",
            "usr/share/zsh/site-functions/_git-frites",
            "usr/share/fish/vendor_completions.d/git-frites.fish",
        ]
        .map(str::to_owned),
    );
    assert_eq!(installed, expected);
    world.run(&source(), "make", ["-s", "uninstall", &destination, "PREFIX=/usr"]).expect(0);
    assert_eq!(crate::common::files_below(&world.repo), Vec::<PathBuf>::new());
}

#[test]
fn the_program_shows_its_pages_itself() {
    let world = World::empty("no repository");
    world.run(&world.repo, "git-frites", ["man", "jugde"]).refuses(2, "there is no page 'jugde'");
    if !has(&world, "man") {
        return skipped("man is not installed");
    }
    for (page, title) in
        [("judge", "GIT-FRITES-JUDGE(1)"), ("git-frites-spawn", "GIT-FRITES-SPAWN(1)")]
    {
        let shown = world.run(&world.repo, "git-frites", ["man", page]).expect(0);
        assert!(shown.out().starts_with(title), "{}", shown.out());
    }
    assert!(
        world.run(&world.repo, "git-frites", ["man"]).expect(0).out().starts_with("GIT-FRITES(1)")
    );
}

#[test]
fn every_variable_that_a_command_is_told_is_in_the_manual() {
    let world = World::new();
    let script = "env | sed -n 's/^\\(FRITES_[A-Z_]*\\)=.*/\\1/p' >variables";
    world.spawn(["-n", "1", "-p", "do it", "--", "sh", "-c", script]);
    let told = fs::read_to_string(world.worktree("1/c1").join("variables")).unwrap();
    let page = fs::read_to_string(source().join("man/git-frites-spawn.1")).unwrap();
    assert!(told.lines().count() > 5, "{told}");
    for variable in told.lines() {
        assert!(page.contains(variable), "{variable}");
    }
}

/// The tutorial works as it is written, in a shell, from an empty directory.
#[test]
fn the_tutorial_can_be_typed_along() {
    let world = World::empty("here");
    let text = fs::read_to_string(source().join("src/manual/tutorial.txt")).unwrap();
    // The last ones are a script around ./attempt.sh, and an agent that would have to be installed.
    let text = text.split("# IN A SCRIPT").next().unwrap();
    let lines =
        text.lines().filter_map(|l| l.strip_prefix("    ")).filter(|l| !l.contains("--agent"));
    let mut script = String::from("set -u\n");
    for line in lines {
        // What fails is told of in the text beside it.
        let fails = line == "git frites judge"
            && script.contains("hello $FRITES_INDEX")
            && !script.contains("code 1");
        let expected = if fails { "1 # code 1" } else { "0" };
        script.push_str(&format!(
            "{line}\ncode=$?; test $code = {expected}\ntest $? = 0 || {{ echo \"$code: $0\" >&2; exit 9; }}\n"
        ));
    }
    let answer = world.run(&world.repo, "sh", ["-c", &script]).expect(0);
    let (out, tour) = (answer.out(), world.repo.join("tour"));
    for words in [
        "judge: 2 of 2 passed; c1 changes the fewest lines",
        "near-miss: none of 2 passed",
        "Fix it at last",
    ] {
        assert!(
            out.contains(words)
                || world.git_in(&tour, ["log", "--all", "--format=%s"]).contains(words),
            "{out}"
        );
    }
    assert_eq!(fs::read_to_string(tour.join("greeting")).unwrap(), "hello\n");
}
