//! Output on a terminal, which `script` makes: widths, colours, the pager, progress.
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::transcript::{judged_by_true, transcript};
use crate::common::{Answer, World, answer};
use crate::terminal::Terminal;
use crate::tool::{TERMINAL, trials};

trials! {
    terminal_cuts_tables_and_a_dumb_one_gets_no_escapes: [TERMINAL];
    status_watch_redraws_in_place: [TERMINAL];
    diff_is_paged_on_a_terminal_only: [TERMINAL];
    diff_is_coloured_on_a_terminal_unless_switched_off: [TERMINAL];
    output_is_paged_and_controls_nothing_on_a_terminal: [TERMINAL];
    run_shows_a_progress_line_per_candidate: [TERMINAL];
    another_round_of_the_same_command_is_asked_for: [TERMINAL];
}

fn run(command: &mut Command) -> Answer {
    answer(&command.output().unwrap())
}

/// A run of two candidates: `c1` adds lines, `c2` changes nothing.
fn with_a_change() -> World {
    let world = World::new();
    world.attempts(&["echo more >>README; echo x >new", "true"]);
    world
}

/// The transcript on a terminal that is so many columns wide.
fn transcript_on_a_terminal(columns: &str, term: &str) -> String {
    transcript(|world, words| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("git frites {}", quoted.join(" "));
        let mut command = world.command(&world.repo, "script", ["-qec", &line, "/dev/null"]);
        run(command
            .env("COLUMNS", columns)
            .env("TERM", term)
            .env("GIT_PAGER", "cat")
            .env("SHELL", "/bin/sh"))
    })
}

fn terminal_cuts_tables_and_a_dumb_one_gets_no_escapes() {
    for term in ["dumb", "xterm"] {
        let narrow = transcript_on_a_terminal("40", term);
        assert_eq!(narrow.contains('\x1b'), term != "dumb", "{narrow}");
        let narrow = console::strip_ansi_codes(&narrow).into_owned();
        let table =
            narrow.split("$ git frites config\n").nth(1).unwrap().split("=> 0").next().unwrap();
        assert!(table.lines().any(|line| line.ends_with('…')), "{table}");
        for line in table.lines().filter(|line| !line.starts_with("hint:")) {
            assert!(console::measure_text_width(line) <= 40, "{line}");
        }
        let wide = console::strip_ansi_codes(&transcript_on_a_terminal("200", term)).into_owned();
        let wide = wide.split_once("$ git frites --version").unwrap().1;
        assert!(!wide.contains('…'), "{wide}");
        for words in [
            "judge: 2 of 2 passed; one changes the fewest lines",
            "Größe 日本 👍",
            "limits.min-free-disk",
        ] {
            assert!(wide.contains(words), "{words}:\n{wide}");
        }
    }
}

fn status_watch_redraws_in_place() {
    let world = judged_by_true();
    world.attempts(&["echo x >>README"]);
    let line = "stty rows 24 cols 60; TERM=xterm git frites status -w; echo \"exit $?\"";
    let shown = Terminal::start(&world, line);
    let lines = shown.wait_for_lines((24, 60), |lines| lines.iter().any(|line| line == "exit 0"));
    let looks = shown.screen().matches("1/c1").count();
    assert!(looks >= 2, "{looks} looks");
    assert!(lines[0].starts_with("run 1, ") && lines[3].starts_with("disk: "), "{lines:#?}");
    assert_eq!(lines[4], "exit 0", "each look is drawn over the one before: {lines:#?}");
}

/// On a terminal that `script` makes; gives what the terminal showed.
fn on_a_terminal(
    world: &World,
    command: &str,
    pager: Option<&str>,
    env: &[(&str, &str)],
) -> (i32, String) {
    let mut call = world.command(&world.repo, "script", ["-qefc", command, "/dev/null"]);
    call.envs(env.iter().copied()).env("SHELL", "/bin/sh");
    if let Some(pager) = pager {
        call.env("GIT_PAGER", pager);
    }
    let answer = answer(&call.output().unwrap());
    (answer.code, answer.out().replace('\r', ""))
}

fn diff_is_paged_on_a_terminal_only() {
    let world = with_a_change();
    let patch = world.frites(["diff", "1/c1"]).expect(0).out();
    let paged: String = patch.lines().map(|l| format!("PAGED:{l}\n")).collect();
    let sed = "sed s/^/PAGED:/";
    assert_eq!(on_a_terminal(&world, "git frites diff 1/c1", Some(sed), &[]), (0, paged.clone()));
    assert_eq!(
        on_a_terminal(&world, "git frites diff --exit-code 1/c1", Some(sed), &[]),
        (1, paged.clone())
    );
    assert_eq!(
        on_a_terminal(&world, "git frites diff 1/c1 | cat", Some(sed), &[]),
        (0, patch.clone())
    );
    assert_eq!(on_a_terminal(&world, "git frites diff 1/c1", Some("cat"), &[]), (0, patch.clone()));
    assert_eq!(
        on_a_terminal(&world, "git frites diff 1/c2", Some(sed), &[]),
        (0, String::new()),
        "nothing to page"
    );
    assert_eq!(
        on_a_terminal(&world, "git frites diff 1/c1", Some("head -n 1"), &[]).0,
        0,
        "a pager that is quit"
    );
    world.git(["config", "--global", "core.pager", sed]);
    assert_eq!(
        on_a_terminal(&world, "git frites diff 1/c1", None, &[]),
        (0, paged),
        "git's own setting"
    );
    world.attempts(&["printf 'a\\033]0;title\\007\\n' >>README"]);
    let (code, shown) = on_a_terminal(&world, "git frites diff 2/c1", Some("cat"), &[]);
    assert!(code == 0 && shown.contains(r"a\u{1b}]0;title\u{7}"), "{shown}");
}

fn diff_is_coloured_on_a_terminal_unless_switched_off() {
    let world = with_a_change();
    let green = "\u{1b}[32m";
    let on = [("TERM", "xterm")];
    let colored = |command: &str, env: &[(&str, &str)]| {
        on_a_terminal(&world, command, Some("cat"), env).1.contains(green)
    };
    assert!(colored("git frites diff 1/c1", &on));
    assert!(!colored("git frites --color=never diff 1/c1", &on));
    assert!(!colored("git frites diff 1/c1", &[("TERM", "xterm"), ("NO_COLOR", "1")]));
    assert!(!colored("git frites diff -z --patch 1/c1", &on));
    assert!(world.frites(["--color=always", "diff", "1/c1"]).expect(0).out().contains(green));
    assert!(!world.frites(["diff", "1/c1"]).expect(0).out().contains(green));
}

fn run_shows_a_progress_line_per_candidate() {
    let world = World::new();
    let gate = world.home().join("gate");
    let wait = |gate: &Path| format!("until test -e '{}'; do sleep 0.01; done", gate.display());
    let script = format!(
        "echo \"thinking about $FRITES_CANDIDATE\"; {}; echo good >> src/lib.txt",
        wait(&gate)
    );
    let judged = world.home().join("judged");
    // The base, which is judged while the attempts run, fails at once.
    let test = format!("grep -q good src/lib.txt || exit 1; echo checking; {}", wait(&judged));
    world.write("attempt", script);
    world.write("check", test);
    world.commit("scripts");
    let line = "stty rows 24 cols 60; TERM=xterm NO_COLOR=1 git frites run -n 2 -j 1 --test 'sh check' -- sh attempt; echo \"exit $?\"";
    let shown = Terminal::start(&world, line);
    shown.wait_for("1/c1  running");
    shown.wait_for("thinking about c1");
    shown.wait_for("1/c2  waiting");
    fs::write(gate, "").unwrap();
    shown.wait_for("1/c2: succeeded in");
    shown.wait_for("checking");
    fs::write(judged, "").unwrap();
    shown.wait_for("exit 0");
    let screen = shown.screen();
    assert!(
        screen.contains("judge: 2 of 2 passed") || screen.contains("made the same tree"),
        "{screen}"
    );
    assert!(screen.contains("\x1b["), "lines are drawn over");
    // No line of progress is left on the last screen: each was erased or drawn over.
    let lines = shown.wait_for_lines((24, 60), |lines| lines.iter().any(|line| line == "exit 0"));
    assert!(lines.iter().all(|line| !line.starts_with("● ")), "{lines:#?}");
}

fn output_is_paged_and_controls_nothing_on_a_terminal() {
    let world = World::new();
    let evil = r"printf '\033[31mred\033[0m\n10%%\r20%%\n\033]0;title\007 \033[2Jend'; exit 1";
    let line = format!("git frites spawn -n 1 -- sh -c {}", shell_words::quote(evil));
    let (code, seen) = on_a_terminal(&world, &line, None, &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert_eq!(code, 4);
    assert!(seen.contains("\n  | red\n  | 20%\n  | "), "{seen:?}");
    assert!(!seen.contains("\x1b[31m") && !seen.contains("\x1b]0"), "{seen:?}");
    let sed = "sed s/^/PAGED:/";
    let shown = |command: &str| on_a_terminal(&world, command, Some(sed), &[("TERM", "xterm")]).1;
    let seen = shown("git frites output 1/c1");
    assert!(seen.starts_with("PAGED:red\nPAGED:20%\nPAGED:") && !seen.contains('\x1b'), "{seen:?}");
    let seen = shown("git frites output -f --tail 2 c1");
    assert!(seen.starts_with("20%\n") && !seen.contains('\x1b'), "{seen:?}");
}

fn another_round_of_the_same_command_is_asked_for() {
    let world = World::new();
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", "echo x >> README"]).expect(0);
    let lines = || world.git(["show", "refs/frites/1/c1:README"]).lines().count();
    let before = lines();
    for (key, told, more) in [("n\n", "nothing was run", 0), ("y\n", "compare with", 1)] {
        let mut asked = Terminal::start(&world, "git frites retry 1/c1");
        asked.wait_for("1/c1 runs this again: sh -c 'echo x >> README'");
        asked.wait_for("run it? [y/N] ");
        asked.press(key);
        asked.wait_for(told);
        assert_eq!(lines(), before + more);
    }
    world.assert_clean();
}
