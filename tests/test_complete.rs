//! Completion, asked as each shell asks, and in the real shells: on a terminal in bash and zsh, by
//! `complete -C` in fish.
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::terminal::{self, Terminal};
use crate::common::{World, skipped, source, write};

/// What is offered for the last of `words`, as fish is told: a value, or a value, a tab and its help.
fn offered(world: &World, dir: &Path, words: &[&str]) -> Vec<String> {
    let mut command = world.command(dir, "git-frites", ["--", "git-frites"]);
    command.args(words).env("FRITES_COMPLETE", "fish");
    let answer = crate::common::answer(&command.output().unwrap()).expect(0);
    assert_eq!(answer.stderr, "", "a TAB prints nothing");
    answer.out().lines().map(str::to_owned).collect()
}

/// The same without the help.
fn values(world: &World, words: &[&str]) -> Vec<String> {
    let offers = offered(world, &world.repo, words);
    offers.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Run 1 with candidates c1 and c2, run `fixer` with alpha (captured twice) and beta, run 2 with c1; a
/// branch and a tag.
fn runs() -> World {
    let world = World::new();
    world.git(["branch", "side"]);
    world.git(["tag", "v1"]);
    world.spawn(["-n", "2"]);
    world.spawn(["--run", "fixer", "-c", "alpha", "beta"]);
    for text in ["one\n", "two\n"] {
        fs::write(world.worktree("fixer/alpha").join("README"), text).unwrap();
        world.frites(["diff", "fixer/alpha"]).expect(0);
    }
    world.spawn(["-n", "1"]);
    world
}

#[test]
fn each_argument_is_offered_what_it_takes() {
    let world = runs();
    world.write(".frites.toml", "[agents.colleague]\ncommand = ['true']\n");
    let cases: &[(&[&str], &[&str])] = &[
        (&["judge", ""], &["2", "1", "fixer"]),
        (&["judge", "f"], &["fixer"]),
        (&["apply", ""], &["2", "1", "fixer", "c1"]),
        (&["apply", "1/"], &["1/c1", "1/c2"]),
        (&["apply", "fix/"], &["fixer/alpha", "fixer/beta"]),
        (&["apply", "fixer/b"], &["fixer/beta"]),
        (&["diff", "fixer/alpha@"], &["fixer/alpha@1", "fixer/alpha@2"]),
        (&["diff", "fixer/alpha", ""], &["alpha", "beta"]),
        (&["diff", "c1", ""], &["c1"]),
        (&["path", "7/"], &[]),
        (&["clean", "1/c1", "fixer/a"], &["fixer/alpha"]),
        (&["log", "f"], &["fixer"]),
        (&["spawn", "--base", ""], &["main", "side", "v1", "HEAD"]),
        (&["spawn", "--base=s"], &["--base=side"]),
        (&["spawn", "--from", "1/"], &["1/c1", "1/c2"]),
        (&["spawn", "--agent", "c"], &["claude", "codex", "colleague"]),
        (&["apply", "--merge", "--into", "s"], &["side"]),
        (&["apply", "--merge", "--into", "1/"], &["1/c1", "1/c2"]),
        (&["config", "oracle.t"], &["oracle.test", "oracle.timeout"]),
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
fn options_are_offered_where_a_dash_is_typed_or_nothing_else_is() {
    let world = runs();
    assert!(!values(&world, &[""]).iter().any(|value| value.starts_with('-')), "commands alone");
    assert!(values(&world, &["apply", "-"]).contains(&"-m".to_owned()));
    assert!(values(&world, &["spawn", ""]).contains(&"--base".to_owned()));
}

#[test]
fn what_is_offered_is_told_about() {
    let world = runs();
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
fn names_are_offered_without_their_records() {
    let world = runs();
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
fn a_tab_says_nothing_where_nothing_can_be_read() {
    let world = World::empty("no repository");
    assert!(values(&world, &["judge", "x"]).is_empty());
    let world = runs();
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
fn the_scripts_are_printed_for_every_shell_and_need_no_repository() {
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

fn completions() -> PathBuf {
    source().join("completions")
}

/// Where git's own completion for bash is, if it is installed.
fn gits_bash_completion() -> Option<PathBuf> {
    let places = [
        "/usr/share/bash-completion/completions/git",
        "/usr/local/share/bash-completion/completions/git",
        "/usr/local/etc/bash_completion.d/git-completion.bash",
        "/opt/homebrew/etc/bash_completion.d/git-completion.bash",
    ];
    places.map(PathBuf::from).into_iter().find(|path| path.exists())
}

/// A bash on a terminal with these files sourced. Ctrl-X d gives the line up to now and empties it; ESC `*`
/// puts in all that is offered.
fn bash(world: &World, sources: &[PathBuf]) -> Terminal {
    let mut rc = String::from(
        "PS1='ready> '\nbind 'set enable-bracketed-paste off' 'set bell-style none' 2>/dev/null\n",
    );
    for source in sources {
        rc.push_str(&format!(". '{}'\n", source.display()));
    }
    rc.push_str("dump() { printf '%s\\n' \"$READLINE_LINE\" >\"$DUMP\"; READLINE_LINE= READLINE_POINT=0; }\n");
    rc.push_str("bind -x '\"\\C-xd\": dump'\n");
    write(&world.home().join(".bashrc"), rc);
    let terminal = Terminal::start(world, "exec bash --noprofile -i");
    terminal.wait_for("ready> ");
    terminal
}

/// Types each line, presses `TAB` or what completes in its place, and compares the words of the line then; the
/// order of what is put in is the shell's.
fn check(terminal: &mut Terminal, cases: &[(&str, &str, &str)]) {
    for (line, keys, expected) in cases {
        let got = terminal.dump(&format!("{line}{keys}\x18d"));
        assert_eq!(words(&got), words(expected), "{line:?}; on the screen:\n{}", terminal.screen());
    }
}

fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.sort_unstable();
    words
}

const TAB: &str = "\t";
/// bash: insert-completions.
const ALL: &str = "\x1b*";

#[test]
fn bash_completes_the_command_without_gits_completion() {
    let world = runs();
    if !terminal::available(&world) {
        return skipped("no terminal can be made with `script`");
    }
    let mut bash = bash(&world, &[completions().join("git-frites.bash")]);
    check(
        &mut bash,
        &[
            ("git-frites jud", TAB, "git-frites judge"),
            ("git-frites judge f", TAB, "git-frites judge fixer"),
            ("git-frites apply fixer/", ALL, "git-frites apply fixer/alpha fixer/beta"),
            ("git-frites diff fixer/alpha@", ALL, "git-frites diff fixer/alpha@1 @2"),
            ("git-frites spawn --base=si", TAB, "git-frites spawn --base=side"),
            (
                "git-frites apply -m 'two words' fixer/al",
                TAB,
                "git-frites apply -m 'two words' fixer/alpha",
            ),
            ("git-frites judge READ", TAB, "git-frites judge READ"),
            ("git-frites spawn -- cat READ", TAB, "git-frites spawn -- cat README"),
        ],
    );
}

#[test]
fn bash_completes_git_frites_through_gits_completion() {
    let world = runs();
    let Some(git) = gits_bash_completion() else {
        return skipped("git's completion for bash is not installed");
    };
    if !terminal::available(&world) {
        return skipped("no terminal can be made with `script`");
    }
    let cases = format!("git -C {} frites judge fi", world.repo.display());
    let completed = format!("git -C {} frites judge fixer", world.repo.display());
    world.git(["config", "--global", "alias.fr", "frites"]);
    let mut bash = bash(&world, &[git, completions().join("git-frites.bash")]);
    check(
        &mut bash,
        &[
            ("git fri", TAB, "git frites"),
            ("git frites jud", TAB, "git frites judge"),
            ("git frites apply fixer/", ALL, "git frites apply fixer/alpha fixer/beta"),
            ("git frites spawn --base ", ALL, "git frites spawn --base HEAD main side v1"),
            ("git frites spawn --base=si", TAB, "git frites spawn --base=side"),
            ("git frites diff fixer/alpha@", ALL, "git frites diff fixer/alpha@1 @2"),
            ("git fr apply 1/", ALL, "git fr apply 1/c1 1/c2"),
        ],
    );
    bash.press("cd /\n");
    check(
        &mut bash,
        &[(&cases, TAB, &completed), ("git frites judge fi", TAB, "git frites judge fi")],
    );
}

/// bash-completion finds the file by its name, in a directory of the user's, when git's completion asks.
#[test]
fn bash_completion_loads_the_installed_file_by_itself() {
    let mut world = runs();
    let loader = PathBuf::from("/usr/share/bash-completion/bash_completion");
    if !loader.exists() || gits_bash_completion().is_none() {
        return skipped("bash-completion or git's completion is not installed");
    }
    if !terminal::available(&world) {
        return skipped("no terminal can be made with `script`");
    }
    let share = world.home().join("share");
    write(
        &share.join("bash-completion/completions/git-frites"),
        fs::read(completions().join("git-frites.bash")).unwrap(),
    );
    world.set_env("XDG_DATA_DIRS", format!("{}:/usr/share", share.display()));
    let mut bash = bash(&world, &[loader]);
    check(
        &mut bash,
        &[
            ("git frites apply fixer/", ALL, "git frites apply fixer/alpha fixer/beta"),
            ("git-frites jud", TAB, "git-frites judge"),
            ("git frites spawn -- cat READ", TAB, "git frites spawn -- cat README"),
        ],
    );
}

#[test]
fn zsh_completes_both_spellings() {
    let world = runs();
    if !terminal::available(&world)
        || world.run(&world.repo, "sh", ["-c", "command -v zsh"]).code != 0
    {
        return skipped("zsh is not installed, or no terminal can be made with `script`");
    }
    let zshrc = format!(
        "PS1='ready> '\nunsetopt beep\nfpath=('{}' $fpath)\nautoload -U compinit; compinit -u -D\n\
         zstyle ':completion:all-matches::::' completer _all_matches _complete\n\
         zstyle ':completion:all-matches:*' insert true\n\
         zle -C all-matches complete-word _generic\nbindkey '^Xa' all-matches\n\
         dump() {{ print -r -- \"$BUFFER\" >\"$DUMP\"; BUFFER= }}\nzle -N dump\nbindkey '^Xd' dump\n",
        completions().display()
    );
    write(&world.home().join(".zshrc"), zshrc);
    let mut zsh = Terminal::start(&world, "unset ZDOTDIR; exec zsh -i");
    zsh.wait_for("ready> ");
    let all = "\x18a";
    check(
        &mut zsh,
        &[
            ("git fri", TAB, "git frites"),
            ("git frites jud", TAB, "git frites judge"),
            ("git-frites jud", TAB, "git-frites judge"),
            ("git frites apply fixer/", all, "git frites apply fixer/alpha fixer/beta"),
            ("git-frites apply fixer/", all, "git-frites apply fixer/alpha fixer/beta"),
            ("git frites spawn --base ", all, "git frites spawn --base main side v1 HEAD"),
            ("git frites spawn --base=si", TAB, "git frites spawn --base=side"),
            (
                "git frites apply -m 'two words' fixer/al",
                TAB,
                "git frites apply -m 'two words' fixer/alpha",
            ),
            ("git frites spawn -- cat READ", TAB, "git frites spawn -- cat README"),
        ],
    );
    zsh.press("git frites \t");
    zsh.wait_for("-- List runs and candidates");
    zsh.dump("\x18d");
    zsh.press("cd /\n");
    let (line, completed) = (
        format!("git -C {} frites judge fi", world.repo.display()),
        format!("git -C {} frites judge fixer", world.repo.display()),
    );
    check(&mut zsh, &[(&line, TAB, &completed)]);
}

#[test]
fn fish_completes_both_spellings() {
    let world = runs();
    let version =
        world.run(&world.repo, "sh", ["-c", "command -v fish >/dev/null && fish --version"]).out();
    if version.is_empty() {
        return skipped("fish is not installed");
    }
    let directory = world.home().join(".config/fish/completions");
    write(
        &directory.join("git-frites.fish"),
        fs::read(completions().join("git-frites.fish")).unwrap(),
    );
    if version.contains("version 3.6.0") {
        skipped(
            "`git frites` in fish 3.6.0 as it is: its `path basename` leaves the `git-` on (upstream, mended in 3.6.1)",
        );
        let gits = fs::read_to_string("/usr/share/fish/completions/git.fish").unwrap();
        let mended =
            gits.replace("(path basename $file)", "(path basename $file | string replace git- '')");
        assert_ne!(gits, mended);
        write(&directory.join("git.fish"), mended);
    }
    let ask = |line: &str| {
        let answer =
            world.run(&world.repo, "fish", ["-c", &format!("complete -C \"{line}\"")]).expect(0);
        assert_eq!(answer.stderr, "", "{line}");
        answer.out().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for command in ["git-frites", "git frites"] {
        let alpha = [
            "fixer/alpha\tcandidate of run fixer, open",
            "fixer/beta\tcandidate of run fixer, open",
        ];
        assert_eq!(ask(&format!("{command} apply fixer/")), alpha, "{command}");
        assert!(
            ask(&format!("{command} ")).contains(&"status\tList runs and candidates".to_owned()),
            "{command}"
        );
        let mut refs = ask(&format!("{command} spawn --base "));
        refs.sort();
        assert_eq!(
            refs,
            ["HEAD\twhere you are", "main\tbranch", "side\tbranch", "v1\ttag"],
            "{command}"
        );
    }
    skipped(
        "`git -C DIR frites` in fish: its completion of git (upstream) hands on no option of git's own",
    );
    assert!(ask("git-frites judge READ").is_empty(), "no files where none are taken");
    assert!(ask("git-frites spawn -- cat READ").iter().any(|offer| offer.starts_with("README")));
}
