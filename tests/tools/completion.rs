//! Completion in the real shells: on a terminal in bash and zsh, by `complete -C` in fish.
use std::fs;
use std::path::PathBuf;

use crate::common::fixtures::runs_to_complete;
use crate::common::{World, source, write};
use crate::terminal::Terminal;
use crate::tool::{
    BASH_COMPLETION, FIND_GIT_BASH_COMPLETION, FISH, GIT_BASH_COMPLETION, TERMINAL, ZSH, trials,
};

trials! {
    bash_without_gits_completion_completes_the_command: [TERMINAL];
    bash_with_gits_completion_completes_git_frites: [TERMINAL, GIT_BASH_COMPLETION];
    bash_completion_loads_the_installed_file: [TERMINAL, GIT_BASH_COMPLETION, BASH_COMPLETION];
    zsh_completes_both_spellings: [ZSH, TERMINAL];
    fish_completes_both_spellings: [FISH];
    fish_completes_on_a_terminal: [FISH, TERMINAL];
}

const TAB: &str = "\t";
/// bash: insert-completions.
const ALL: &str = "\x1b*";

fn completions() -> PathBuf {
    source().join("completions")
}

/// The path of git's own completion for bash.
fn gits_bash_completion(world: &World) -> PathBuf {
    let found = world.run(&world.repo, "sh", ["-c", FIND_GIT_BASH_COMPLETION]).expect(0);
    PathBuf::from(found.out().trim())
}

/// A bash on a terminal with these files sourced. Ctrl-X d gives the line up to now and empties it;
/// ESC `*` puts in all that is offered.
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

/// Types each line, presses `TAB` or what completes in its place, and compares the words of the
/// line then; the order of what is put in is the shell's.
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

fn bash_without_gits_completion_completes_the_command() {
    let world = runs_to_complete();
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

fn bash_with_gits_completion_completes_git_frites() {
    let world = runs_to_complete();
    let git = gits_bash_completion(&world);
    let cases = format!("git -C {} frites judge fi", world.repo.display());
    let completed = format!("git -C {} frites judge fixer", world.repo.display());
    world.git(["config", "--global", "alias.fr", "frites"]);
    world.frites(["task", "1", "GH-1"]).expect(0);
    world.git(["config", "frites.spawn.jobs", "1"]);
    let mut bash = bash(&world, &[git, completions().join("git-frites.bash")]);
    check(
        &mut bash,
        &[
            ("git fri", TAB, "git frites"),
            ("git frites jud", TAB, "git frites judge"),
            ("git frites man tut", TAB, "git frites man tutorial"),
            ("git frites config agents.aider.c", TAB, "git frites config agents.aider.command"),
            ("git config fri", TAB, "git config frites."),
            ("git config --global frites.oracle.te", TAB, "git config --global frites.oracle.test"),
            ("git config frites.agents.aider.c", TAB, "git config frites.agents.aider.command"),
            ("git -c frites.spawn.jo", TAB, "git -c frites.spawn.jobs="),
            ("git config core.bigF", TAB, "git config core.bigFileThreshold"),
            ("git frites apply fixer/", ALL, "git frites apply fixer/alpha fixer/beta"),
            ("git frites spawn --base ", ALL, "git frites spawn --base HEAD main side v1"),
            ("git frites spawn --base=si", TAB, "git frites spawn --base=side"),
            ("git frites diff fixer/alpha@", ALL, "git frites diff fixer/alpha@1 @2"),
            ("git fr apply 1/", ALL, "git fr apply 1/c1 1/c2"),
            ("git frites path task:G", TAB, "git frites path task:GH-1"),
        ],
    );
    bash.press("cd /\n");
    check(
        &mut bash,
        &[(&cases, TAB, &completed), ("git frites judge fi", TAB, "git frites judge fi")],
    );
}

/// bash-completion finds the file by its name, in a directory of the user's, when git's completion
/// asks.
fn bash_completion_loads_the_installed_file() {
    let mut world = runs_to_complete();
    let loader = PathBuf::from("/usr/share/bash-completion/bash_completion");
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
            ("git config frites.spawn.jo", TAB, "git config frites.spawn.jobs"),
            ("git frites spawn -- cat READ", TAB, "git frites spawn -- cat README"),
        ],
    );
}

fn zsh_completes_both_spellings() {
    let world = runs_to_complete();
    world.git(["config", "frites.spawn.jobs", "1"]);
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
            ("git frites man tut", TAB, "git frites man tutorial"),
            ("git frites config agents.aider.c", TAB, "git frites config agents.aider.command"),
            ("git config fri", TAB, "git config frites."),
            ("git config --global frites.oracle.te", TAB, "git config --global frites.oracle.test"),
            ("git config frites.agents.aider.c", TAB, "git config frites.agents.aider.command"),
            ("git config core.bigF", TAB, "git config core.bigFileThreshold"),
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
    check(
        &mut zsh,
        &[
            (&line, TAB, &completed),
            ("git config fri", TAB, "git config frites."),
            ("git -c a.b=c config frites.spawn.jo", TAB, "git -c a.b=c config frites.spawn.jobs"),
            ("git add config frites.spawn.jo", TAB, "git add config frites.spawn.jo"),
        ],
    );
}

/// A world in which fish reads the completion script when it starts.
fn world_of_fish() -> World {
    let world = runs_to_complete();
    let script = fs::read(completions().join("git-frites.fish")).unwrap();
    write(&world.home().join(".config/fish/conf.d/git-frites.fish"), script);
    world
}

fn fish_completes_on_a_terminal() {
    let world = world_of_fish();
    let config = "function fish_prompt; echo -n 'ready> '; end\nset fish_greeting\n\
                  function dump; commandline >$DUMP; commandline ''; end\nbind \\cxd dump\n";
    write(&world.home().join(".config/fish/config.fish"), config);
    let mut fish = Terminal::start(&world, "exec fish -i --features no-query-term");
    fish.wait_for("ready> ");
    check(
        &mut fish,
        &[
            ("git frites jud", TAB, "git frites judge"),
            ("git-frites jud", TAB, "git-frites judge"),
            ("git frites judge fix", TAB, "git frites judge fixer"),
            ("git frites apply fixer/al", TAB, "git frites apply fixer/alpha"),
            ("git-frites apply fixer/al", TAB, "git-frites apply fixer/alpha"),
            ("git frites spawn --bas", TAB, "git frites spawn --base"),
            ("git config --global frites.oracle.te", TAB, "git config --global frites.oracle.test"),
            ("git config frites.agents.aider.c", TAB, "git config frites.agents.aider.command"),
            ("git --no-pager frites stat", TAB, "git --no-pager frites status"),
        ],
    );
}

fn fish_completes_both_spellings() {
    let world = world_of_fish();
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
        for (line, offered) in [
            ("judge fi", "fixer\trun"),
            ("man tut", "tutorial"),
            ("config agents.aider.c", "agents.aider.command\t"),
            ("spawn --bas", "--base\tCommit that every candidate starts from"),
        ] {
            let offers = ask(&format!("{command} {line}"));
            assert!(
                offers.iter().any(|offer| offer.starts_with(offered)),
                "{command} {line}: {offers:?}"
            );
        }
        let mut refs = ask(&format!("{command} spawn --base "));
        refs.sort();
        assert_eq!(
            refs,
            ["HEAD\tcurrent commit", "main\tbranch", "side\tbranch", "v1\ttag"],
            "{command}"
        );
    }
    assert!(ask("git-frites judge READ").is_empty(), "no files where none are taken");
    assert!(ask("git-frites spawn -- cat READ").iter().any(|offer| offer.starts_with("README")));
}
