//! Completion, asked as each shell asks, and in the real shells: on a terminal in bash and zsh, by
//! `complete -C` in fish.
use std::fs;
use std::path::Path;

use crate::common::fixtures::runs_to_complete;
use crate::common::{World, source};

/// The offers for the last of `words`, in the form for fish: a value, or a value, a tab and its
/// help.
fn offered(world: &World, dir: &Path, words: &[&str]) -> Vec<String> {
    let mut command = world.command(dir, "git-frites", ["--", "git-frites"]);
    command.args(words).env("FRITES_COMPLETE", "fish");
    let answer = crate::common::answer(&command.output().unwrap()).expect(0);
    assert_eq!(answer.stderr, "", "a TAB prints nothing");
    answer.out().lines().map(str::to_owned).collect()
}

/// The values that are offered for the last of `words`, without their help.
fn values(world: &World, words: &[&str]) -> Vec<String> {
    let offers = offered(world, &world.repo, words);
    offers.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// The keys of one agent.
const CLAUDE: &[&str] = &[
    "agents.claude.command",
    "agents.claude.stdin",
    "agents.claude.framing",
    "agents.claude.limit",
    "agents.claude.usage",
    "agents.claude.state",
];

#[test]
fn each_page_of_the_manual_is_offered() {
    let world = World::new();
    let pages = world.home().join("pages");
    world.frites(["man", "--write", pages.to_str().unwrap()]).expect(0);
    let written = fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name());
    let names = written.map(|name| name.into_string().unwrap());
    let short = |name: &str| {
        let page = name.rsplit_once('.').unwrap().0;
        page.strip_prefix("git-frites-").unwrap_or(page).to_owned()
    };
    let mut written: Vec<String> = names.map(|name| short(&name)).collect();
    let mut offered = values(&world, &["man", ""]);
    written.sort();
    offered.sort();
    assert_eq!(offered, written);
}

#[test]
fn each_argument_completes_to_its_kind_of_value() {
    let world = runs_to_complete();
    world.write(".frites.toml", "[agents.colleague]\ncommand = ['true']\n");
    world.frites(["task", "1", "GH-1"]).expect(0);
    world.frites(["task", "fixer/beta", "GH-2"]).expect(0);
    world.git(["branch", "elsewhere"]);
    let elsewhere = world.home().join("elsewhere");
    world.git(["worktree", "add", "-q", elsewhere.to_str().unwrap(), "elsewhere"]);
    let cases: &[(&[&str], &[&str])] = &[
        (&["judge", "task:"], &["task:GH-1", "task:GH-2"]),
        (&["exec", "fixer/alpha@"], &[]),
        (&["retry", "f"], &["fixer/alpha", "fixer/beta"]),
        (&["shard", "run", "2"], &["2/c1"]),
        (&["shard", "judge", "c"], &[]),
        (&["shard", "judge", "f"], &["fixer"]),
        (&["spawn", "--from", "1"], &["1/c1", "1/c2"]),
        (&["spawn", "--run", "f"], &[]),
        (&["apply", "--merge", "--into", "e"], &[]),
        (&["apply", "--merge", "--into", "f"], &["fixer/alpha", "fixer/beta"]),
        (&["judge", ""], &["2", "1", "fixer"]),
        (&["judge", "f"], &["fixer"]),
        (&["apply", ""], &["2", "1", "fixer", "c1"]),
        (&["apply", "1/"], &["1/c1", "1/c2"]),
        (&["apply", "fix/"], &["fixer/alpha", "fixer/beta"]),
        (&["apply", "fixer/b"], &["fixer/beta"]),
        (&["diff", "fixer/alpha@"], &["fixer/alpha@1", "fixer/alpha@2"]),
        (&["diff", "fixer/alpha", ""], &["alpha", "beta"]),
        (&["diff", "c1", ""], &["c1"]),
        (&["output", "1/"], &["1/c1", "1/c2", "1/@base"]),
        (&["output", "@"], &[]),
        (&["output", "1/c1", ""], &["agent", "setup", "build", "lint", "test"]),
        (&["path", "7/"], &[]),
        (&["clean", "1/c1", "fixer/a"], &["fixer/alpha"]),
        (&["log", "f"], &["fixer"]),
        (&["path", "task:"], &["task:GH-1", "task:GH-2"]),
        (&["log", "task:GH-2"], &["task:GH-2"]),
        (&["status", "--task", "G"], &["GH-1", "GH-2"]),
        (&["judge", "task:GH-1", "--candidate", ""], &["c1", "c2"]),
        (&["spawn", "--base", ""], &["elsewhere", "main", "side", "v1", "HEAD"]),
        (&["spawn", "--base=s"], &["--base=side"]),
        (&["spawn", "--from", "1/"], &["1/c1", "1/c2"]),
        (&["spawn", "--agent", "c"], &["claude", "codex", "colleague"]),
        (&["apply", "--merge", "--into", "s"], &["side"]),
        (&["apply", "--merge", "--into", "1/"], &["1/c1", "1/c2"]),
        (&["config", "oracle.t"], &["oracle.test", "oracle.timeout", "oracle.trust-exit"]),
        (&["config", "agents.cla"], CLAUDE),
        (&["config", "agents.colleague.c"], &["agents.colleague.command"]),
        (&["man", "sp"], &["spawn", "spread"]),
        (&["shard", ""], &["open", "list", "judge", "collect", "run", "help"]),
        (&["shard", "judge", "1/"], &["1/c1", "1/c2", "1/@base"]),
        (&["shard", "judge", "--bun"], &["--bundle"]),
        (&["shard", "run", "1/"], &["1/c1", "1/c2"]),
        (&["add", "f"], &["fixer"]),
        (&["add", "1", "--commit", "s"], &["side"]),
        (&["retry", "1/"], &["1/c1", "1/c2"]),
        (&["retry", "1/c1", "--agent", "cl"], &["claude"]),
        (&["man", "git"], &["git-frites"]),
        (&["jud"], &["judge"]),
        (&["judge", "--rep"], &["--replay"]),
        (&["status", "--color", "a"], &["auto", "always"]),
        (&["completions", "z"], &["zsh"]),
    ];
    for (words, expected) in cases {
        assert_eq!(values(&world, words), *expected, "{words:?}");
    }
}

#[test]
fn options_complete_after_a_dash_or_when_nothing_else_fits() {
    let world = runs_to_complete();
    assert!(!values(&world, &[""]).iter().any(|value| value.starts_with('-')), "commands alone");
    assert!(values(&world, &["apply", "-"]).contains(&"-m".to_owned()));
    assert!(values(&world, &["spawn", ""]).contains(&"--base".to_owned()));
}

#[test]
fn offers_have_descriptions() {
    let world = runs_to_complete();
    let offers = offered(&world, &world.repo, &["apply", ""]);
    assert!(
        offers[2].starts_with("fixer\trun of 2 candidates, ") && offers[2].ends_with(" ago"),
        "{offers:?}"
    );
    assert_eq!(offers[3], "c1\tcandidate of run 2, open");
    let offers = offered(&world, &world.repo, &["stat"]);
    assert_eq!(offers, ["status\tList runs and candidates"]);
}

/// A record takes long to read: a TAB reads those that it needs.
#[test]
fn names_complete_even_without_records() {
    let world = runs_to_complete();
    world.spawn(["-n", "18"]);
    let damage = "blob=$(echo damaged | git hash-object -w --stdin) &&
        tree=$(printf '100644 blob %s\\trun.toml\\n' $blob | git mktree) &&
        git update-ref refs/frites/fixer/@record $(git commit-tree -m damaged $tree)";
    world.sh(&world.repo, damage).expect(0);
    assert_eq!(values(&world, &["judge", ""]), ["3", "2", "1", "fixer"]);
    assert_eq!(values(&world, &["apply", "1/"]), ["1/c1", "1/c2"]);
    assert!(
        values(&world, &["apply", "fixer/"]).iter().all(|value| value.starts_with('-')),
        "it cannot be read"
    );
    let offers = offered(&world, &world.repo, &["apply", "3/"]);
    assert_eq!(
        (offers[15].as_str(), offers[16].as_str()),
        ("3/c16\tcandidate of run 3, open", "3/c17")
    );
}

#[test]
fn completion_is_silent_where_nothing_can_be_read() {
    let world = World::empty("no repository");
    assert!(values(&world, &["judge", "x"]).is_empty());
    let world = runs_to_complete();
    let damages = [
        "printf damaged >.frites/runs/fixer/alpha/candidate.toml",
        "printf damaged >.git/refs/heads/side",
        "printf damaged >.git/refs/frites/fixer/@record",
        "printf '[core' >.git/config",
        "rm -r .git",
    ];
    for line in damages {
        world.sh(&world.repo, line).expect(0);
        values(&world, &["apply", ""]);
        values(&world, &["spawn", "--base", ""]);
    }
    assert!(
        values(&world, &["apply", ""]).iter().all(|value| value.starts_with('-')),
        "options are left"
    );
    let mut command = world.command(&world.repo, "git-frites", ["--", "git-frites", "judge", ""]);
    let answer =
        crate::common::answer(&command.env("FRITES_COMPLETE", "no-shell").output().unwrap());
    assert_eq!((answer.code, answer.out().as_str(), answer.stderr.as_str()), (1, "", ""));
}

#[test]
fn completion_scripts_are_printed_outside_a_repository() {
    let world = World::empty("no repository");
    let directory = source().join("completions");
    for (shell, file) in
        [("bash", "git-frites.bash"), ("zsh", "_git-frites"), ("fish", "git-frites.fish")]
    {
        let printed = world.run(&world.repo, "git-frites", ["completions", shell]).expect(0);
        assert_eq!(printed.stdout, fs::read(directory.join(file)).unwrap(), "{shell}");
    }
    for shell in ["elvish", "powershell"] {
        let printed = world.run(&world.repo, "git-frites", ["completions", shell]).expect(0).out();
        assert!(printed.contains("FRITES_COMPLETE") && printed.contains("git-frites"), "{printed}");
    }
    world.run(&world.repo, "git-frites", ["completions", "csh"]).refuses(2, "invalid value 'csh'");
}

/// The file that the Debian package brings for each shell, below a data directory.
const IN_THE_PACKAGE: [(&str, &str, &str); 3] = [
    ("bash", "git-frites.bash", "bash-completion/completions/git-frites"),
    ("zsh", "_git-frites", "zsh/vendor-completions/_git-frites"),
    ("fish", "git-frites.fish", "fish/vendor_conf.d/git-frites.fish"),
];

#[test]
fn completion_is_installed_where_the_shell_looks_and_doctor_finds_it() {
    let mut world = World::empty("no repository");
    let data = world.home().join("data");
    world.set_env("XDG_DATA_DIRS", &data);
    let manifest = fs::read_to_string(source().join("Cargo.toml")).unwrap();
    for (shell, script, packaged) in IN_THE_PACKAGE {
        assert!(manifest.contains(&format!("\"usr/share/{packaged}\"")), "{packaged}");
        world.set_env("SHELL", format!("/bin/{shell}"));
        let doctor = || world.run(&world.repo, "git-frites", ["doctor"]).stderr;
        let advice = format!("`git frites completions --install {shell}` puts it there");
        assert!(doctor().contains(&advice), "{}", doctor());
        let answer = world.run(&world.repo, "git-frites", ["completions", "--install"]).expect(0);
        let file = Path::new(answer.out().trim_end()).to_owned();
        assert!(file.starts_with(world.home()), "{}", file.display());
        let bytes = fs::read(source().join("completions").join(script)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), bytes);
        assert!(!doctor().contains(&advice), "{}", doctor());
        let there = data.join(packaged);
        fs::create_dir_all(there.parent().unwrap()).unwrap();
        fs::rename(file, there).unwrap();
        assert!(!doctor().contains(&advice), "{}", doctor());
    }
    world.set_env("SHELL", "/bin/csh");
    let words = "there is no known place for a completion of 'csh'";
    world.run(&world.repo, "git-frites", ["completions", "--install"]).refuses(128, words);
}
