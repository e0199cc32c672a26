//! The manual: that man/ is what the program makes, that it renders without a warning, that what is
//! installed is what `git frites --help` and `man` open.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{OF_THE_TESTS, World, source};

/// The names of a directory's files.
fn names(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The commands that `-h` lists.
fn verbs(world: &World) -> Vec<String> {
    let help = world.run(&world.repo, "git-frites", ["-h"]).expect(0).out();
    let list =
        help.split("Start attempts:\n").nth(1).unwrap().split("\nOptions:\n").next().unwrap();
    let names = list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    names
        .map(|l| l.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn man_pages_are_up_to_date() {
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

/// The markup knows code and emphasis within a line only.
#[test]
fn code_in_the_manual_ends_on_its_line() {
    let pages = source().join("src/manual");
    for name in names(&pages).iter().filter(|name| name.ends_with(".txt")) {
        let page = fs::read_to_string(pages.join(name)).unwrap();
        for line in page.lines() {
            assert!(line.matches('`').count().is_multiple_of(2), "src/manual/{name}: {line}");
        }
    }
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
fn long_pages_begin_with_three_examples_and_group_their_options() {
    for verb in ["judge", "spawn", "config"] {
        let page = fs::read_to_string(source().join(format!("man/git-frites-{verb}.1"))).unwrap();
        let (before, rest) = page.split_once(".SH EXAMPLES").expect("examples");
        assert!(!before.contains(".SH DESCRIPTION"), "{verb}: examples are behind the description");
        let examples = rest.split(".SH ").next().unwrap();
        assert_eq!(examples.matches(".nf").count(), 3, "{verb}");
        assert!(!page.contains("`[]`"), "{verb}: a default is bold, and not between backquotes");
    }
    let page = fs::read_to_string(source().join("man/git-frites-judge.1")).unwrap();
    let options = page.split(".SH OPTIONS").nth(1).unwrap().split(".SH ").next().unwrap();
    for group in ["Judging", "Decision", "Output"] {
        assert!(options.contains(&format!(".SS \"{group}\"")), "{group}");
    }
    let words = fs::read_to_string(source().join("man/git-frites.1")).unwrap();
    let terms = words.split(".SH TERMS").nth(1).unwrap().split(".SH ").next().unwrap();
    for word in ["oracle", "blast radius", "near\\-miss", "seed", "warm, cold", "layer", "world"] {
        assert!(terms.contains(&format!(".TP\n{word}\n")), "{word}");
    }
}

#[test]
fn help_lists_each_command_once_and_few_options() {
    let world = World::empty("no repository");
    let verbs = verbs(&world);
    let pages = names(&source().join("man"));
    let of_verbs = pages
        .iter()
        .filter_map(|page| page.strip_suffix(".1")?.strip_prefix("git-frites-"))
        // The verbs of `shard` have pages, too.
        .filter(|name| !name.contains('-'));
    let mut sorted = verbs.clone();
    sorted.sort();
    assert_eq!(sorted, of_verbs.collect::<Vec<_>>());
    for verb in verbs {
        let count = |asked: &str| {
            let help = world.run(&world.repo, "git-frites", [verb.as_str(), asked]).expect(0).out();
            help.lines().filter(|line| line.trim_start().starts_with('-')).count()
        };
        assert!(count("-h") <= 14, "{verb}: {}", count("-h"));
        assert!(count("--help") >= count("-h"), "{verb}");
    }
}

#[test]
fn every_variable_of_a_command_is_in_the_manual() {
    crate::common::in_the_open_world();
    let world = World::new();
    let script = "env | sed -n 's/^\\(FRITES_[A-Z_]*\\)=.*/\\1/p' >variables";
    world.spawn(["-n", "1", "-p", "do it", "--", "sh", "-c", script]);
    let told = fs::read_to_string(world.worktree("1/c1").join("variables")).unwrap();
    let page = fs::read_to_string(source().join("man/git-frites-spawn.1")).unwrap();
    assert!(told.lines().count() > 5, "{told}");
    // Settings of the user's reach commands, too.
    for variable in told.lines().filter(|name| !OF_THE_TESTS.contains(name)) {
        assert!(page.contains(variable), "{variable}");
    }
}

/// The tutorial works as it is written, in a shell, from an empty directory.
#[test]
fn tutorial_works_as_it_is_written() {
    let world = World::empty("here");
    let text = fs::read_to_string(source().join("src/manual/tutorial.txt")).unwrap();
    // The last ones are a script around ./attempt.sh, and an agent that would have to be installed.
    let text = text.split("# IN A SCRIPT").next().unwrap();
    let lines =
        text.lines().filter_map(|l| l.strip_prefix("    ")).filter(|l| !l.contains("--agent"));
    let mut script = String::from("set -u\n");
    for line in lines {
        // The text beside a command says that it fails.
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

#[test]
fn man_of_an_unknown_page_is_refused() {
    let world = World::empty("no repository");
    world.run(&world.repo, "git-frites", ["man", "jugde"]).refuses(2, "there is no page 'jugde'");
}

/// Only the line after `.TP` is the label of a paragraph: the rest of a longer label would be its
/// text.
#[test]
fn labels_of_the_pages_fit_on_a_line() {
    for path in fs::read_dir(source().join("man")).unwrap().map(|entry| entry.unwrap().path()) {
        let page = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = page.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == ".TP") {
            let [starts, ends] = [["\\fB", "\\fI"].as_slice(), &["\\fR"]]
                .map(|fonts| fonts.iter().map(|font| pair[1].matches(font).count()).sum::<usize>());
            assert!(starts == ends && !pair[1].ends_with(','), "{}: {}", path.display(), pair[1]);
        }
    }
}
