//! A transcript of all commands, without what differs from run to run.
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

/// Runs every command, each as `prepare` has it; gives what both outputs were, without what differs from
/// run to run.
pub fn transcript(prepare: impl Fn(&World, &[&str]) -> Answer) -> String {
    let world = judged_by_true();
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
