//! Transcripts of commands, which tests compare with snapshots.
use super::{Answer, World};

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

/// A repository that is configured to be judged by `true`.
pub fn judged_by_true() -> World {
    let world = World::new();
    world.write(".frites.toml", "oracle.test = 'true'\n");
    world.commit("configuration");
    world
}

/// The transcript of [`COMMANDS`], each of which `prepare` runs.
pub fn transcript(prepare: impl Fn(&World, &[&str]) -> Answer) -> String {
    let world = judged_by_true();
    let mut text = String::new();
    for words in COMMANDS {
        text.push_str(&rendered(words, &prepare(&world, words)));
    }
    normal(&world, &text)
}

/// A command as it was typed, both its outputs and its exit code.
fn rendered(words: &[&str], answer: &Answer) -> String {
    let stderr: String = answer.stderr.lines().map(|line| format!("2> {line}\n")).collect();
    let stdout = answer.out().replace('\r', "");
    format!("$ git frites {}\n{stdout}{stderr}=> {}\n\n", words.join(" "), answer.code)
}

/// Runs a command and gives its transcript, for [`assert_shown`].
pub fn shown(world: &World, words: &[&str]) -> String {
    transcript_of(world, words, &world.frites(words))
}

/// The transcript of a command that has run: its words, outputs and exit code, with placeholders
/// for all that differs from run to run.
pub fn transcript_of(world: &World, words: &[&str], answer: &Answer) -> String {
    normal(world, &rendered(words, answer))
}

/// Compares a text with the snapshot of that name in tests/snapshots/.
/// `INSTA_UPDATE=always cargo test` rewrites the snapshots; review them with
/// `git diff tests/snapshots`.
pub fn assert_shown(name: &str, text: impl AsRef<str>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.as_ref()));
}

/// The text with placeholders for paths of this world, ids, times and sizes, and at most two blanks
/// in a row.
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
                _ if number && core.ends_with('s') => "N",
                "B" | "KiB" | "MiB" | "GiB" => "SIZE",
                _ if number && ["bytes=", "seconds=", "("].contains(&before) => "N",
                other => other,
            };
            words.push(format!("{before}{kind}{}", &last[core.len()..]));
        }
        let mut line = words.join(" ");
        while line.contains("   ") {
            line = line.replace("   ", "  ");
        }
        // Sizes and ages are a number and a unit, in two words.
        let words: Vec<&str> = line.split(' ').collect();
        let has_unit =
            |at: usize| matches!(words.get(at + 1), Some(&"s" | &"SIZE" | &"SIZE," | &"SIZE)"));
        let line: Vec<&str> = (0..words.len())
            .map(
                |at| if has_unit(at) && words[at].parse::<f64>().is_ok() { "N" } else { words[at] },
            )
            .collect();
        let line = line.join(" ").replace("N SIZE", "SIZE");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
