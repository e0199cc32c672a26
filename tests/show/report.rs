//! `git frites report`: the page as a file. tests/tools/report.rs looks at it in a browser.
use std::fs;

use crate::common::{World, make_executable, write};

/// A run of two candidates, of which the second passes.
fn judged() -> World {
    let world = World::new();
    world.judged(
        "echo checking; grep -q good src/lib.txt",
        &["echo bad >>src/lib.txt", "sed -i.old s/two/good/ src/lib.txt; rm src/lib.txt.old"],
    );
    world
}

fn page(world: &World, words: &[&str]) -> String {
    let words = ["report", "-o", "-"].iter().chain(words);
    world.frites(words).expect(0).out()
}

#[test]
fn report_is_a_file_beside_the_records_and_changes_nothing_of_the_users() {
    let world = judged();
    let before = (world.belongings(), world.files(), world.events());
    let path = world.frites(["report"]).expect(0).out();
    let file = world.repo.join(".frites/runs/1/report.html");
    assert_eq!(path.trim_end(), file.to_str().unwrap());
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, page(&world, &["1"]), "the same for the same records");
    assert_eq!(before, (world.belongings(), world.files(), world.events()));
    let elsewhere = world.home().join("seen.html");
    let named = world.frites(["report", "-o", elsewhere.to_str().unwrap()]).expect(0).out();
    assert_eq!(named.trim_end(), elsewhere.to_str().unwrap());
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), text);
}

#[test]
fn each_candidate_is_shown_with_its_own_command() {
    let world = World::new();
    let add = |name: &str, command: &[&str]| {
        world.frites([&["add", "1", "-c", name], command].concat()).expect(0);
    };
    world.frites(["spawn", "-c", "first", "--", "sh", "-c", "echo of-the-run > x"]).expect(0);
    add("own", &["--", "sh", "-c", "echo of-its-own > x"]);
    add("open", &[]);
    world.frites(["retry", "1/open", "--", "sh", "-c", "echo later > x"]).expect(0);
    let page = page(&world, &["1"]);
    assert_eq!(page.matches("by sh -c 'echo of-the-run &gt; x'").count(), 1, "{page}");
    assert_eq!(page.matches("by sh -c 'echo of-its-own &gt; x'").count(), 1, "{page}");
}

#[test]
fn report_shows_the_stored_verdict_changes_and_logs() {
    let world = judged();
    let stored = world.frites(["status", "1"]).expect(0).out();
    let reason = stored.lines().find_map(|line| line.strip_prefix("tests: ")).unwrap();
    // What is in a worktree now was not judged.
    write(&world.worktree("1/c2").join("later"), "later\n");
    world.frites(["capture", "1/c2"]).expect(0);
    let page = page(&world, &[]);
    for part in [
        &reason.replace('"', "&quot;")[..],
        "test exit 1",
        "checking",
        "<mark>two</mark>",
        "<mark>good</mark>",
        "recommended",
        "iteration 2 is not shown",
    ] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    assert!(!page.contains("later"), "not judged: {page}");
}

#[test]
fn each_candidate_that_passed_says_so() {
    let world = World::new();
    world.judged("test -e good", &["touch good", "touch bad", "touch good other"]);
    assert_eq!(page(&world, &[]).matches(">It passed<").count(), 2);
}

#[test]
fn run_that_was_not_judged_shows_its_newest_captures() {
    let world = World::new();
    world.attempts(&["echo more >>README", "true"]);
    let page = page(&world, &[]);
    assert!(page.contains("Not judged") && page.contains("git frites judge 1"), "{page}");
    assert!(!page.contains("README"), "a report captures nothing: {page}");
    world.frites(["capture", "1"]).expect(0);
    let page = self::page(&world, &[]);
    assert!(page.contains("README") && page.contains("It changes no file"), "{page}");
}

#[test]
fn outcomes_that_wait_for_a_decision_are_named() {
    let world = World::new();
    world.attempts(&["echo more >>README", "echo x >>README"]);
    let alone = ["judge", "-q", "--candidate", "c1", "--test", "true", "1"];
    world.frites(alone).expect(0);
    let page = page(&world, &[]);
    assert!(
        page.contains("1 outcome of ") && page.contains("git frites judge --replay 1"),
        "{page}"
    );
}

#[test]
fn report_shows_tests_agreement_times_prompt_and_warnings() {
    let world = World::new();
    let check = "
        end() { echo \"<testcase name='$1'>${2-}</testcase>\"; }
        { echo '<testsuite>'; end kept
          if grep -q good README; then end fixed; else end fixed '<failure/>'; fi
          if test -e broken; then end sound '<failure/>'; else end sound; fi
          echo '</testsuite>'; } >junit.xml
        ! grep -q failure junit.xml";
    let attempt = "
        echo good >>README
        test $FRITES_CANDIDATE = c1 || { echo x >broken; git config alias.planted status; }";
    world.write("check", check);
    world.write("attempt", attempt);
    world.commit("scripts");
    world.git(["config", "frites.oracle.junit", "junit.xml"]);
    let run =
        ["run", "-q", "-n", "2", "-p", "Say <good>.", "--test", "sh check", "--", "sh", "attempt"];
    world.frites(run).expect(0);
    let page = page(&world, &[]);
    let (passed, failed, unknown) = (
        r#"<td class="good">passed</td>"#,
        r#"<td class="bad">failed</td>"#,
        r#"<td class="dim">·</td>"#,
    );
    for part in [
        &format!("<code>fixed</code></th>{failed}{unknown}{unknown}")[..],
        &format!("<code>sound</code></th>{passed}{unknown}{failed}"),
        "Say &lt;good&gt;.",
        r#"<td class="dim">–</td><td class="h"#,
        "A dot: the test did not fail there",
        "Attempts over time",
        "<rect x=",
        "test exit 1 (",
        "while commands of attempts ran: ",
        "alias.planted",
        "test, which fails on the base",
    ] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    assert!(!page.contains("<code>kept</code>"), "it failed nowhere: {page}");
}

#[test]
fn long_changes_are_cut_with_the_command_that_shows_them() {
    let world = World::new();
    world.attempts(&["seq 5000 >numbers; head -c 9000 /dev/zero | tr '\\0' x >line"]);
    world.frites(["capture", "1"]).expect(0);
    let page = page(&world, &[]);
    assert!(page.contains("4000 more changed lines: <code>git frites diff 1/c1</code>"), "{page}");
    assert!(page.contains(" 8400 more characters"), "{page}");
}

#[test]
fn browser_is_the_users_and_its_absence_no_failure() {
    let mut world = judged();
    let seen = world.home().join("seen");
    let browser = world.home().join("browser");
    write(&browser, format!("#!/bin/sh\nprintf '%s|' \"$@\" >'{}'\n", seen.display()));
    make_executable(&browser);
    let file = world.repo.join(".frites/runs/1/report.html");
    let cases =
        [("", format!("{}|", file.display())), (" -a %s.x", format!("-a|{}.x|", file.display()))];
    for (arguments, expected) in cases {
        world.set_env("BROWSER", format!("/no/such/program:{}{arguments}", browser.display()));
        let answer = world.frites(["report", "--open"]).expect(0);
        assert_eq!(fs::read_to_string(&seen).unwrap(), expected);
        assert_eq!((answer.out().trim_end(), &answer.stderr[..]), (file.to_str().unwrap(), ""));
    }
    world.set_env("BROWSER", "false");
    // No system's opener is there, either.
    let only_git = world.home().join("only-git");
    fs::create_dir(&only_git).unwrap();
    let place =
        |name: &str| world.run(&world.repo, "sh", ["-c", &format!("command -v {name}")]).out();
    for name in ["git", "git-frites", "sh", "false"] {
        std::os::unix::fs::symlink(place(name).trim_end(), only_git.join(name)).unwrap();
    }
    world.set_env("PATH", only_git);
    let answer = world.frites(["report", "--open"]).expect(0);
    assert!(
        answer.stderr.starts_with("warning: no browser could show the report\nhint: "),
        "{}",
        answer.stderr
    );
}

#[test]
fn report_is_of_a_run_and_a_file_is_needed_to_open_it() {
    let world = judged();
    world.frites(["report", "1/c1"]).refuses(2, "only a whole run can be named here");
    world.frites(["report", "-o", "-", "--open"]).refuses(2, "--open needs a file");
    world
        .frites(["report", "-o", "/no/such/directory/r.html"])
        .refuses(2, "its directory does not exist");
    world.frites(["report", "7"]).refuses(128, "7");
}

#[test]
fn two_candidates_stand_side_by_side() {
    let world = World::new();
    world.judged(
        "true",
        &["echo one >new; echo x >README", "echo two >new", "echo one >new; echo x >README"],
    );
    let page = page(&world, &[]);
    let pair = |names: &str| {
        let (_, rest) = page.split_once(&format!("<summary>{names}: ")).unwrap();
        rest.split_once("</details>").unwrap().0.to_owned()
    };
    let differs = pair("c2 on the left, c1 on the right");
    for part in [
        "2 files differ",
        "del\"><mark>two</mark>",
        "add\"><mark>one</mark>",
        "<code>README</code>",
    ] {
        assert!(differs.contains(part), "{part}: {differs}");
    }
    assert!(pair("c1 on the left, c3 on the right").starts_with("the same files"));
    assert_eq!(page.matches("class=\"pair\"").count(), 3);
}

#[test]
fn comparison_of_many_is_folded_behind_the_best() {
    let world = World::new();
    // The later, the smaller: the last one is the best.
    let attempts: Vec<String> = (0..23).map(|n| format!("seq {} >new", 23 - n)).collect();
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    let rows = |candidates: &[&str]| {
        world.judged("true", candidates);
        let page = page(&world, &[]);
        let (_, table) = page.split_once("<section id=\"comparison\">").unwrap();
        let table = table.split_once("</section>").unwrap().0;
        let (first, rest) = table.split_once("<details>").unwrap_or((table, ""));
        let names = |part: &str| -> Vec<String> {
            let links = part.split("href=\"#c-").skip(1);
            links.map(|link| link.split_once('"').unwrap().0.to_owned()).collect()
        };
        (names(first), names(rest), rest.contains("<summary>3 more candidates</summary>"))
    };
    let best = |from: usize, to: usize| -> Vec<String> {
        (to..=from).rev().map(|n| n.to_string()).collect()
    };
    assert_eq!(rows(&attempts), (best(23, 4), best(3, 1), true));
    assert_eq!(rows(&attempts[..20]), (best(20, 1), vec![], false));
}

#[test]
fn pull_request_says_why_and_what_attempts_wrote_is_text() {
    let world = World::new();
    let evil = "tests/@all [x](y) <b> #1.test.js";
    world.write(evil, "test('x')\n");
    world.commit("tests");
    world.judged("true", &[&format!("echo more >src/lib.txt; echo more >>'{evil}'")]);
    let text = world.frites(["report", "--markdown"]).expect(0).out();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("**` c1 `: "), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("| **→** | ` c1 ` | passed | ")), "{text}");
    assert!(lines.contains(&"* test: ` true `"), "{text}");
    assert!(!text.contains("@all") && !text.contains("<b>") && !text.contains("#1"), "{text}");
    let file = world.home().join("body.md");
    let path = world.frites(["report", "--markdown", "-o", file.to_str().unwrap()]).expect(0).out();
    assert_eq!(path.trim_end(), file.to_str().unwrap());
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}
