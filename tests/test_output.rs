//! What people see: the same words on every kind of output, cut and coloured on a terminal alone, and a
//! clean end where the output cannot be written.
use std::fs;
use std::process::{Command, Stdio};

use crate::common::terminal;
use crate::common::{Answer, World, answer, poll, skipped, source};

/// Every command that needs no pager, in an order that makes each of them do something.
const COMMANDS: &[&[&str]] = &[
    &["-h"],
    &["--version"],
    &["config"],
    &["config", "oracle.test"],
    &[
        "spawn",
        "-j",
        "1",
        "--task",
        "Größe 日本 👍",
        "-c",
        "one",
        "two",
        "none",
        "--",
        "sh",
        "-c",
        SCRIPT,
    ],
    &["status"],
    &["diff"],
    &["diff", "--stat"],
    &["diff", "1/two"],
    &["judge"],
    &["judge", "--replay"],
    &["path", "1/one"],
    &["apply", "-m", "Land it"],
    &["apply"],
    &["status", "1/two"],
    &["clean", "-n"],
    &["clean"],
    &["log"],
    &["run", "--run", "again", "-j", "1", "--base", "main", "-c", "one", "--", "sh", "-c", SCRIPT],
];
const SCRIPT: &str =
    "case $FRITES_CANDIDATE in one) echo one >>README;; two) seq 2 >>README;; esac";

fn world() -> World {
    let world = World::new();
    world.write(".frites.toml", "oracle.test = 'true'\n");
    world.commit("configuration");
    world
}

/// Runs every command, each as `prepare` has it; gives what both outputs were, without what differs from
/// run to run.
fn transcript(prepare: impl Fn(&World, &[&str]) -> Answer) -> String {
    let world = world();
    let mut text = String::new();
    for words in COMMANDS {
        let answer = prepare(&world, words);
        text.push_str(&format!(
            "$ git frites {}\n{}",
            words.join(" "),
            answer.out().replace('\r', "")
        ));
        text.push_str(
            &answer.stderr.lines().map(|line| format!("2> {line}\n")).collect::<String>(),
        );
        text.push_str(&format!("=> {}\n\n", answer.code));
    }
    normal(&world, &text)
}

/// Without paths of this world, ids, times and sizes; blanks in a row are two.
fn normal(world: &World, text: &str) -> String {
    let text = text.replace(world.home().to_str().unwrap(), "~");
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        for word in line.split(' ') {
            let (before, last) = word.split_at(word.rfind(['=', '(', '\t']).map_or(0, |at| at + 1));
            let core = last.trim_end_matches([',', ';', ')', ':']);
            let number = core.trim_end_matches('s').parse::<f64>().is_ok();
            let kind = match core {
                _ if core.len() >= 7 && core.bytes().all(|b| b.is_ascii_hexdigit()) => "ID",
                _ if core.contains("..")
                    && core.len() > 14
                    && core.bytes().all(|b| b.is_ascii_hexdigit() || b == b'.') =>
                {
                    "IDS"
                }
                _ if core.len() == 10
                    && core.starts_with("20")
                    && core.matches('-').count() == 2 =>
                {
                    "DATE"
                }
                _ if core.len() == 8 && core.matches(':').count() == 2 => "CLOCK",
                _ if number && (core.contains('.') || core.ends_with('s')) => "N",
                "B" | "KiB" | "MiB" | "GiB" => "SIZE",
                _ if number && before.starts_with("bytes=") => "N",
                other => other,
            };
            words.push(format!("{before}{kind}{}", &last[core.len()..]));
        }
        let mut line = words.join(" ");
        while line.contains("   ") {
            line = line.replace("   ", "  ");
        }
        // What is told without a fraction: bytes, and seconds that have passed.
        let words: Vec<&str> = line.split(' ').collect();
        let told = |at: usize| {
            matches!(words.get(at + 1), Some(&"s" | &"SIZE" | &"SIZE," | &"SIZE)"))
                || words[at] == "SIZE"
        };
        let line: Vec<&str> = (0..words.len())
            .map(|at| if told(at) && words[at].parse::<f64>().is_ok() { "N" } else { words[at] })
            .collect();
        let line = line.join(" ").replace("N SIZE", "SIZE");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn plain(command: &mut Command) -> Answer {
    answer(&command.output().unwrap())
}

fn frites(world: &World, words: &[&str]) -> Command {
    let words: Vec<&str> = std::iter::once("frites").chain(words.iter().copied()).collect();
    world.command(&world.repo, "git", words)
}

#[test]
fn every_command_says_what_the_transcript_says() {
    let seen = transcript(|world, words| {
        let answer = plain(&mut frites(world, words));
        // These grow with every option and key, and are held against the manual elsewhere.
        if [&["-h"][..], &["config"]].contains(&words) {
            Answer { stdout: b"...\n".to_vec(), ..answer }
        } else {
            answer
        }
    });
    let file = source().join("tests/transcript.txt");
    if std::env::var_os("FRITES_BLESS").is_some() {
        fs::write(&file, &seen).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    for (n, (seen, kept)) in seen.lines().zip(kept.lines()).enumerate() {
        assert_eq!(
            seen,
            kept,
            "line {} of tests/transcript.txt; FRITES_BLESS=1 writes it anew",
            n + 1
        );
    }
    assert_eq!(seen.lines().count(), kept.lines().count(), "FRITES_BLESS=1 writes it anew");
    assert!(!seen.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn a_pipe_is_never_cut_or_coloured_whatever_the_environment_says() {
    let expected = transcript(|world, words| plain(&mut frites(world, words)));
    // -h is clap's, which breaks its lines to COLUMNS as it should.
    let without_help = |text: &str| text.split_once("$ git frites --version").unwrap().1.to_owned();
    for (name, value) in [("COLUMNS", "40"), ("NO_COLOR", "1"), ("TERM", "xterm-256color")] {
        let seen = transcript(|world, words| plain(frites(world, words).env(name, value)));
        assert_eq!(without_help(&seen), without_help(&expected), "{name}={value}");
    }
}

#[test]
fn colours_are_forced_and_forbidden_as_people_expect() {
    let world = world();
    world.attempts(&["echo x >>README"]);
    let colored = |words: &[&str], env: &[(&str, &str)]| {
        let mut command = frites(&world, words);
        let answer = plain(command.envs(env.iter().copied())).expect(0);
        answer.out().contains('\x1b')
    };
    assert!(!colored(&["judge"], &[]));
    /// Options, variables, whether there is colour.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], bool);
    let cases: &[Case<'_>] = &[
        (&["--color=always"], &[], true),
        (&["--color=always"], &[("NO_COLOR", "1")], true),
        (&["--color=never"], &[("CLICOLOR_FORCE", "1")], false),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "0")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")], true),
    ];
    for (options, env, expected) in cases {
        for verb in [&["status"][..], &["judge", "--replay"], &["config"], &["diff", "1/c1"]] {
            assert_eq!(
                colored(&[verb, *options].concat(), env),
                *expected,
                "{verb:?} {options:?} {env:?}"
            );
        }
    }
    // An error's first word is coloured, and says the same without.
    let refused = plain(frites(&world, &["status", "nothing"]).env("CLICOLOR_FORCE", "1"));
    assert!(
        refused.stderr.starts_with("\x1b[31mfatal:\x1b[0m there is no run"),
        "{}",
        refused.stderr
    );
}

/// The same commands on a terminal of some width.
fn on_a_terminal(columns: &str, term: &str) -> String {
    transcript(|world, words| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("git frites {}", quoted.join(" "));
        let mut command = world.command(&world.repo, "script", ["-qec", &line, "/dev/null"]);
        plain(
            command
                .env("COLUMNS", columns)
                .env("TERM", term)
                .env("GIT_PAGER", "cat")
                .env("SHELL", "/bin/sh"),
        )
    })
}

#[test]
fn a_terminal_cuts_tables_and_a_dumb_one_sees_no_escape() {
    if !terminal::available(&World::new()) {
        return skipped("no terminal can be made with `script`");
    }
    for term in ["dumb", "xterm"] {
        let narrow = on_a_terminal("40", term);
        assert_eq!(narrow.contains('\x1b'), term != "dumb", "{narrow}");
        let narrow = console::strip_ansi_codes(&narrow).into_owned();
        let table =
            narrow.split("$ git frites config\n").nth(1).unwrap().split("=> 0").next().unwrap();
        assert!(table.lines().any(|line| line.ends_with('…')), "{table}");
        for line in table.lines().filter(|line| !line.starts_with("hint:")) {
            assert!(console::measure_text_width(line) <= 40, "{line}");
        }
        let wide = console::strip_ansi_codes(&on_a_terminal("200", term)).into_owned();
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

#[test]
fn an_output_that_is_closed_or_full_or_read_by_nobody_ends_the_command_cleanly() {
    let full = cfg!(target_os = "linux");
    let world = world();
    world.attempts(&["echo x >>README", "seq 5000 >>README"]);
    world.frites(["judge"]).expect(0);
    let commands: &[&str] = &[
        "-h",
        "--version",
        "config",
        "status",
        "diff",
        "diff 1/c2",
        "judge --replay",
        "log",
        "path 1/c1",
        "completions zsh",
    ];
    for words in commands {
        let line =
            |redirection: &str| world.sh(&world.repo, &format!("git-frites {words} {redirection}"));
        let closed = line(">&-");
        assert_eq!(
            (closed.code, closed.stderr.contains("fatal")),
            (0, false),
            "{words}: {}",
            closed.stderr
        );
        if full {
            let answer = line(">/dev/full")
                .refuses(128, "could not write the output: No space left on device");
            assert!(answer.stderr.contains("make room"), "{}", answer.stderr);
        }
        // The reader is gone before anything is written.
        let gone = "{ until test -e gone; do sleep 0.01; done; code=0; git-frites WORDS 2>err || code=$?; echo $code >code; } \
                    | { exec <&-; : >gone; }; cat code err; rm gone code err";
        let answer = world.sh(&world.repo, &gone.replace("WORDS", words)).expect(0);
        assert!(
            answer.out().starts_with("141\n") && !answer.out().contains("fatal"),
            "{words}: {}",
            answer.out()
        );
    }
    world.assert_clean();
}

#[test]
fn standard_error_may_be_gone() {
    let world = world();
    let answer = world
        .sh(&world.repo, "git-frites spawn -q 2>&-; git-frites judge 2>&- || echo $?")
        .expect(0);
    assert_eq!(answer.out(), "1\n4\n".replace("4\n", &answer.out()[2..]), "{}", answer.out());
    assert!(answer.out().ends_with("4\n"), "{}", answer.out());
}

#[test]
fn a_repository_that_cannot_be_written_can_be_read() {
    let world = world();
    world.attempts(&["echo x >>README"]);
    world.frites(["judge"]).expect(0);
    let readonly = |words: &str| {
        let script = format!(
            "mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && exec git frites {words}"
        );
        world.run(&world.repo, "unshare", ["-rm", "sh", "-c", &script])
    };
    let probe = world.run(
        &world.repo,
        "unshare",
        [
            "-rm",
            "sh",
            "-c",
            "mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && ! : 2>/dev/null >x",
        ],
    );
    if probe.code != 0 {
        return skipped("a read-only mount cannot be made here (unshare -rm)");
    }
    let belongings = world.belongings();
    for words in [
        "status",
        "status 1/c1",
        "diff",
        "diff --no-capture 1/c1",
        "judge --replay",
        "log",
        "path 1/c1",
        "config",
    ] {
        let answer = readonly(words).expect(0);
        assert!(!answer.out().is_empty(), "{words}");
    }
    for words in
        ["spawn", "judge", "apply", "apply --merge", "clean", "config --init", "run -n 1 -- true"]
    {
        let answer = readonly(words);
        if words == "config --init" {
            answer.refuses(128, "exists already");
        } else {
            let answer = answer.refuses(128, "Read-only file system");
            assert!(answer.stderr.contains("mounted read-only"), "{words}: {}", answer.stderr);
        }
    }
    assert_eq!(world.belongings(), belongings);
    world.assert_clean();
}

#[test]
fn watching_tells_each_change_once_and_ends_when_nothing_runs() {
    let world = world();
    let script = "until test -e go; do sleep 0.01; done; echo x >>README";
    let mut spawn = world.command(
        &world.repo,
        "git-frites",
        ["spawn", "-q", "-n", "1", "--", "sh", "-c", script],
    );
    let mut spawn = spawn.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| world.frites(["status", "1"]).out().contains("running"));
    let watch = world
        .command(&world.repo, "git-frites", ["status", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(world.worktree("1/c1").join("go"), "").unwrap();
    let told = answer(&watch.wait_with_output().unwrap()).expect(0).out();
    assert!(
        ["1/c1\trunning\n1/c1\tsucceeded\n", "1/c1\tsucceeded\n"].contains(&told.as_str()),
        "{told}"
    );
    assert!(spawn.wait().unwrap().success());
    world.frites(["status", "--watch", "--json"]).refuses(2, "cannot be used with");
}

#[test]
fn watching_draws_over_itself_on_a_terminal() {
    let world = world();
    world.attempts(&["echo x >>README"]);
    if !terminal::available(&world) {
        return skipped("no terminal can be made with `script`");
    }
    let mut command =
        world.command(&world.repo, "script", ["-qec", "git frites status -w", "/dev/null"]);
    let seen = plain(command.env("TERM", "xterm").env("COLUMNS", "60").env("SHELL", "/bin/sh"))
        .expect(0)
        .out();
    let frames: Vec<&str> = seen.split("\x1b[J").collect();
    assert_eq!(frames.len(), 3, "two looks, and nothing after them: {seen:?}");
    assert!(frames[1].starts_with("\x1b[4A\r") && frames[1].contains("1/c1"), "{seen:?}");
}
