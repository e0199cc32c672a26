//! The rows that change on a terminal while candidates work and are judged, as a terminal shows
//! them.
use std::fs;

use crate::common::World;
use crate::terminal::Terminal;
use crate::tool::{TERMINAL, trials};

trials! {
    thirty_candidates_fit_on_sixteen_rows: [TERMINAL];
    the_end_is_told_as_configured_and_by_default_not_at_all: [TERMINAL];
    one_ctrl_c_is_told_at_once_and_leaves_no_row: [TERMINAL];
    the_base_has_a_row_while_its_commands_run: [TERMINAL];
}

/// Waits until a file exists, in sh.
const WAIT: &str =
    "wait_for() { until test -e \"$HOME/$1\" -o -e \"$HOME/all-$2\"; do sleep 0.01; done; }\n";

/// A project whose attempts and checks wait for files in HOME: `attempt-CAND` and `check-CAND`, or
/// `all-attempts` and `all-checks` for everyone.
fn gated() -> World {
    let world = World::new();
    let attempt = "wait_for \"started-$FRITES_CANDIDATE\" started\n\
                   printf 'one\\n%s\\n' $FRITES_CANDIDATE >made; sed -i 1d old\n\
                   echo \"thinking about $FRITES_CANDIDATE\"\n\
                   wait_for \"attempt-$FRITES_CANDIDATE\" attempts; test $FRITES_CANDIDATE != c1\n";
    let check = "test -s made || exit 1\nname=$(sed -n 2p made)\nwait_for check-$name checks\ntest $name != c3\n";
    world.write("attempt", format!("{WAIT}{attempt}"));
    world.write("check", format!("{WAIT}{check}"));
    world.write("old", "first\nsecond\n");
    world.write("made", "");
    world.commit("scripts");
    // The check compares the content of this file, so it would count as data.
    world.git(["config", "frites.oracle.source", "made"]);
    world.write_home("all-started");
    world
}

trait Gates {
    fn write_home(&self, name: &str);
}

impl Gates for World {
    fn write_home(&self, name: &str) {
        fs::write(self.home().join(name), "").unwrap();
    }
}

/// The lines that begin with a mark.
fn rows<'l>(lines: &'l [String], mark: &str) -> Vec<&'l str> {
    lines.iter().filter(|line| line.starts_with(mark)).map(String::as_str).collect()
}

fn has(lines: &[String], words: &str) -> bool {
    lines.iter().any(|line| line.contains(words))
}

fn thirty_candidates_fit_on_sixteen_rows() {
    for columns in [60, 100, 200] {
        let world = gated();
        let size = (16, columns);
        let line = format!(
            "stty rows 16 cols {columns}; TERM=xterm git frites run -n 30 -j 4 --test 'sh check' -- sh attempt; echo \"exit $?\""
        );
        let shown = Terminal::start(&world, &line);
        // Four work, and say what they changed; the others wait.
        let lines = shown.wait_for_lines(size, |lines| {
            rows(lines, "● 1/c").len() == 4
                && rows(lines, "● ").iter().all(|row| row.contains("+2 −1  thinking about c"))
                // The last row that is drawn.
                && has(lines, "attempts: 0 of 30 done, ")
        });
        assert!(rows(&lines, "● 1/c")[0].starts_with("● 1/c1   running "), "{lines:#?}");
        assert_eq!(rows(&lines, "· 1/c").len(), 7, "{lines:#?}");
        assert!(has(&lines, "  19 more: 19 waiting"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:#?}");
        // One fails: it is told, and the next one starts.
        world.write_home("attempt-c1");
        let lines = shown.wait_for_lines(size, |lines| {
            rows(lines, "✗ 1/c1 ").len() == 1
                && rows(lines, "● 1/c5 ").len() == 1
                && has(lines, "attempts: 1 of 30 done, ")
        });
        assert!(rows(&lines, "✗ ")[0].contains("failed (exit 1)"), "{lines:#?}");
        // Of those that are judged none is `succeeded`.
        world.write_home("all-attempts");
        for name in ["check-c2", "check-c3"] {
            world.write_home(name);
        }
        let lines = shown.wait_for_lines(size, |lines| {
            has(lines, "judging: 2 of 29 done, ")
                && !rows(lines, "✓ ").is_empty()
                && !rows(lines, "✗ ").is_empty()
                && rows(lines, "● ").iter().any(|row| row.starts_with("● 1/c4   test"))
        });
        assert!(rows(&lines, "✓ ")[0].starts_with("✓ 1/c2   passed"), "{lines:#?}");
        assert!(rows(&lines, "✓ ")[0].ends_with("+2 −1"), "{lines:#?}");
        assert!(rows(&lines, "✗ ")[0].starts_with("✗ 1/c3   test exit 1"), "{lines:#?}");
        assert!(has(&lines, "  18 more: 18 waiting"), "{lines:#?}");
        world.write_home("all-checks");
        shown.wait_for("exit 0");
        let lines = shown.wait_for_lines(size, |lines| has(lines, "exit 0"));
        for mark in ["● ", "· ", "✓ ", "✗ ", "judging: "] {
            assert!(rows(&lines, mark).is_empty(), "nothing stays: {lines:#?}");
        }
        assert!(has(&lines, "judge: 28 of 29 passed"), "{lines:#?}");
    }
}

fn one_ctrl_c_is_told_at_once_and_leaves_no_row() {
    let world = World::new();
    let attempt = "trap ': >\"$HOME/told\"; until test -e \"$HOME/end\"; do sleep 0.01; done; exit 1' TERM\n\
                   echo ready; while :; do sleep 0.01; done\n";
    world.write("attempt", attempt);
    world.commit("an attempt");
    let size = (24, 80);
    let line = "stty rows 24 cols 80; TERM=xterm git frites spawn -n 2 -j 2 -- sh attempt";
    let mut shown = Terminal::start(&world, line);
    shown.wait_for_lines(size, |lines| {
        rows(lines, "● 1/c").iter().filter(|r| r.contains("ready")).count() == 2
    });
    // The cursor is back at the start of the line below the rows, which what is typed takes.
    crate::common::poll(|| shown.screen().ends_with('\r'));
    shown.press("typed");
    shown.wait_for("typed");
    shown.press("\x03");
    let lines = shown.wait_for_lines(size, |lines| has(lines, "stopping … (again: kill)"));
    assert!(!has(&lines, "killing"), "one key is one request: {lines:#?}");
    assert_eq!(rows(&lines, "● 1/c").len(), 2, "{lines:#?}");
    crate::common::poll(|| world.home().join("told").exists());
    world.write_home("end");
    let lines = shown.wait_for_lines(size, |lines| has(lines, "--resume 1"));
    assert!(!shown.screen().contains("killing"), "{:?}", shown.screen());
    for words in ["● ", "stopping", "attempts: ", "^C", "typed"] {
        assert!(rows(&lines, words).is_empty(), "nothing stays: {lines:#?}");
    }
    assert!(has(&lines, "1/c1: cancelled"), "{lines:#?}");
}

fn the_base_has_a_row_while_its_commands_run() {
    let world = gated();
    world.write(
        "check",
        "echo \"testing the base\"; until test -e \"$HOME/end\"; do sleep 0.01; done\n",
    );
    world.commit("a check that waits");
    world.attempts(&["echo more >>README"]);
    let size = (24, 80);
    let shown = Terminal::start(
        &world,
        "stty rows 24 cols 80; TERM=xterm git frites judge -j 1 --test 'sh check'; echo \"exit $?\"",
    );
    let at_work = |lines: &[String]| {
        let base = rows(lines, "● 1/@base");
        base.iter().any(|row| row.contains(" test ") && row.contains("testing the base"))
    };
    let lines = shown.wait_for_lines(size, at_work);
    assert_eq!(rows(&lines, "· 1/c1").len(), 1, "it waits for the base: {lines:#?}");
    let watching = "stty rows 24 cols 80; TERM=xterm git frites status --watch";
    for line in ["git frites status 1", watching] {
        let other = Terminal::start(&world, line);
        other.wait_for_lines(size, |lines| has(lines, "1/@base") && has(lines, "testing the base"));
    }
    world.write_home("end");
    shown.wait_for("exit 0");
}

fn the_end_is_told_as_configured_and_by_default_not_at_all() {
    let world = World::new();
    world.attempts(&["echo more >>README"]);
    let judged = |notify: &str, program: &str| {
        let line = format!(
            "TERM=xterm TERM_PROGRAM={program} FRITES_UI_NOTIFY={notify} git frites judge --test true; echo \"exit $?\""
        );
        let shown = Terminal::start(&world, &line);
        shown.wait_for("exit 0");
        shown.screen()
    };
    let told = ["\x07", "\x1b]9;git-frites: 1/c1: single\x1b\\"];
    for (notify, program, expected) in [
        ("off", "WezTerm", None),
        ("bell", "WezTerm", Some(0)),
        ("auto", "WezTerm", Some(1)),
        ("auto", "other", Some(0)),
    ] {
        let screen = judged(notify, program);
        for (at, sequence) in told.iter().enumerate() {
            assert_eq!(
                screen.contains(sequence),
                expected == Some(at),
                "{notify} {program}: {screen:?}"
            );
        }
    }
}
