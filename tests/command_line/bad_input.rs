//! Bad input is refused in git's form, with a hint and without any effect.
use std::fs;

use crate::common::transcript::{assert_shown, transcript_of};
use crate::common::{Answer, World, files_below};

/// All state that a refused command must not change: the user's and that of git-frites.
fn everything(world: &World) -> String {
    let state = world.repo.join(".frites");
    let ours: Vec<_> =
        ["runs", "worktrees"].iter().flat_map(|d| files_below(&state.join(d))).collect();
    format!(
        "{}\n{}\n{}\n{ours:?}\n{:?}",
        world.belongings(),
        world.git(["for-each-ref"]),
        world.git(["worktree", "list", "--porcelain"]),
        fs::read_to_string(state.join("events.jsonl")).unwrap_or_default(),
    )
}

/// Runs a command, which must be refused with this code and `words` on stderr, a hint that contains
/// `hint`, nothing on stdout, and no effect.
#[track_caller]
fn refused(world: &World, args: &[&str], code: i32, words: &str, hint: &str) -> Answer {
    let before = everything(world);
    let answer = world.frites(args).refuses(code, words);
    assert!(
        answer.stderr.lines().any(|l| l.starts_with("hint: ") && l.contains(hint)),
        "{hint}:\n{}",
        answer.stderr
    );
    assert_eq!(answer.out(), "", "{args:?}");
    assert_eq!(everything(world), before, "{args:?}");
    answer
}

/// The transcript of commands that are each refused with this code, without effect.
#[track_caller]
fn refusals(world: &World, code: i32, commands: &[&[&str]]) -> String {
    let mut text = String::new();
    for words in commands {
        let answer = refused(world, words, code, "", "");
        text.push_str(&transcript_of(world, words, &answer));
    }
    text
}

/// A judged run of two whose first candidate passed.
fn world_with_a_verdict() -> World {
    let world = World::new();
    world.spawn(["-c", "alpha", "beta"]);
    fs::write(world.worktree("1/alpha").join("README"), "better\n").unwrap();
    world.frites(["judge", "--test", "grep -q better README"]).expect(0);
    world
}

#[test]
fn every_command_outside_a_repository_is_refused() {
    let world = World::empty("nowhere");
    for verb in ["spawn", "diff", "capture", "judge", "apply", "clean", "status", "log", "path"] {
        let answer = world.frites([verb]).refuses(128, "not a git repository");
        assert!(answer.stderr.contains("git init"), "{}", answer.stderr);
        assert_eq!(fs::read_dir(&world.repo).unwrap().count(), 0, "{verb} left something");
    }
}

#[test]
fn verbose_option_shows_the_sources_of_an_error() {
    let world = World::empty("nowhere");
    for (args, shown) in [(&["-v", "status"][..], true), (&["status"], false)] {
        let answer = world.frites(args).refuses(128, "not a git repository");
        let source = "caused by: Could not find a git repository";
        assert_eq!(answer.stderr.contains(source), shown, "{}", answer.stderr);
    }
}

#[test]
fn repository_without_a_commit_is_refused_with_a_hint() {
    let world = World::unborn();
    refused(&world, &["spawn"], 128, "HEAD has no commit yet", "git commit");
    assert!(!world.repo.join(".frites").exists());
    // A damaged repository is not an empty one: a new first commit would leave its history behind.
    let world = World::new();
    let head = world.git(["rev-parse", "HEAD"]);
    let (directory, file) = head.split_at(2);
    fs::remove_file(world.repo.join(".git/objects").join(directory).join(file)).unwrap();
    let told = world.frites(["spawn"]).refuses(128, "HEAD leads to no commit that can be read");
    assert!(told.stderr.contains("hint: `git fsck` finds damage"), "{}", told.stderr);
}

#[test]
fn base_that_names_no_commit_is_refused() {
    let world = World::new();
    let blob = world.git(["rev-parse", "HEAD:README"]);
    for base in ["nosuch", "-x", "--all", "", "HEAD~5", "main..main", &blob] {
        let flag = format!("--base={base}");
        refused(
            &world,
            &["spawn", &flag],
            128,
            &format!("'{base}' does not name a commit"),
            "git log",
        );
    }
    assert!(!world.repo.join(".frites").exists());
}

#[test]
fn counts_outside_their_range_are_refused() {
    let world = World::new();
    refused(&world, &["spawn", "-n", "0"], 2, "invalid value '0' for '-n <N>'", "spawn -h");
    refused(&world, &["spawn", "-n", "-1"], 2, "-1", "spawn -h");
    refused(&world, &["spawn", "-n", "many"], 2, "invalid value 'many'", "spawn -h");
    refused(&world, &["spawn", "-j", "0"], 2, "invalid value '0'", "spawn -h");
    refused(
        &world,
        &["spawn", "-n", "65"],
        128,
        "65 candidates are more than limits.candidates = 64",
        "git config",
    );
    // Not one name is made: these would take all memory.
    refused(
        &world,
        &["spawn", "-n", "4294967295"],
        128,
        "4294967295 candidates are more than limits.candidates = 64",
        "git config",
    );
    world.git(["config", "frites.limits.candidates", "2"]);
    refused(&world, &["spawn", "-n", "3"], 128, "more than limits.candidates = 2", "git config");
    world.git(["config", "frites.limits.worktrees", "3"]);
    world.spawn(["-n", "2"]);
    refused(&world, &["spawn", "-n", "2"], 128, "limits.worktrees = 3", "git frites clean");
    world.spawn(["-n", "1"]);
}

#[test]
fn invalid_names_are_refused_with_the_rule() {
    let world = World::new();
    let long = "a".repeat(65);
    let bad = [
        "a/b", "a..b", "..", "-a", ".a", &long, "run", "apply", "Run", "x.lock", "x.LOCK", "x.",
        "a b", "", "é",
    ];
    for name in bad {
        let rule = "64";
        let words = format!("'{name}' is not a valid name");
        refused(&world, &["spawn", &format!("--run={name}")], 2, &format!("--run: {words}"), rule);
        refused(&world, &["spawn", "-c", "good", &format!("--candidate={name}")], 2, &words, rule);
        refused(&world, &["spawn", "--run", name], 2, &words, rule);
    }
    for record in ["active", "run.toml", "verdict.toml", "Disk.toml"] {
        let words = format!("--candidate: '{record}' is the name of a run's record");
        refused(&world, &["spawn", "-c", record], 2, &words, "another name");
    }
    refused(
        &world,
        &["spawn", "-c", "one", "Two", "two"],
        2,
        "'two' and 'Two' are the same name",
        "a name of its own",
    );
    refused(&world, &["spawn", "-c", "one,two"], 2, "'one,two' is not a valid name", "put spaces");
    let twice = ["spawn", "-c", "one", "-c", "one"];
    refused(&world, &twice, 2, "the name 'one' is given twice", "a name of its own");
    assert!(!world.repo.join(".frites").exists());
    for good in ["a".repeat(64).as_str(), "runs", "x.lockd", "A_b.c-1"] {
        assert_eq!(world.spawn(["--run", good, "-n", "1"]), good);
    }
}

#[test]
fn run_name_that_exists_is_refused_in_any_letter_case() {
    let world = World::new();
    world.spawn(["--run", "fix", "-n", "1"]);
    for name in ["fix", "Fix", "FIX"] {
        refused(
            &world,
            &["spawn", "--run", name],
            128,
            "a run named 'fix' exists",
            "clean --forget fix",
        );
    }
    world.frites(["clean", "fix"]).expect(0);
    refused(
        &world,
        &["spawn", "--run", "fix"],
        128,
        "a run named 'fix' exists",
        "clean --forget fix",
    );
    world.assert_clean();
}

#[test]
fn branch_that_belongs_to_no_run_is_named_with_the_command_that_deletes_it() {
    let world = World::new();
    world.git(["branch", "frites/run/fix/c1"]);
    let message = "the branch 'frites/run/fix/c1' has a name that run fix needs";
    let hint = "git branch -D frites/run/fix/c1";
    refused(&world, &["spawn", "--run", "fix"], 128, message, hint);
    world.git(["branch", "-D", "frites/run/fix/c1"]);
    world.frites(["spawn", "--run", "fix"]).expect(0);
}

#[test]
fn users_branch_in_the_way_is_named() {
    let world = World::new();
    for branch in ["frites", "frites/run"] {
        world.git(["branch", branch]);
        refused(
            &world,
            &["spawn"],
            128,
            &format!("a branch named '{branch}' is in the way"),
            "git branch -m",
        );
        world.git(["branch", "-D", branch]);
    }
    world.spawn([""; 0]);
}

#[test]
fn apply_refuses_a_checkout_with_uncommitted_changes() {
    let world = world_with_a_verdict();
    world.write("src/lib.txt", "mine\n");
    refused(&world, &["apply"], 128, "uncommitted changes: src/lib.txt", "git stash");
    world.git(["add", "-A"]);
    refused(&world, &["apply"], 128, "uncommitted changes: src/lib.txt", "git stash");
    world.git(["reset", "-q", "--hard"]);
    world.write("staged", "new\n");
    world.git(["add", "staged"]);
    refused(&world, &["apply"], 128, "uncommitted changes: staged", "git stash");
    world.git(["rm", "-q", "-f", "staged"]);
    fs::remove_file(world.repo.join("README")).unwrap();
    refused(&world, &["apply"], 128, "uncommitted changes: README", "git stash");
    world.git(["checkout", "-q", "README"]);
    world.write("untracked", "stays\n");
    world.frites(["apply"]).expect(0);
    assert_eq!(fs::read(world.repo.join("untracked")).unwrap(), b"stays\n");
    world.assert_clean();
}

#[test]
fn apply_refuses_in_the_middle_of_a_merge() {
    let world = world_with_a_verdict();
    world.git(["switch", "-q", "-c", "side"]);
    world.write("side", "side\n");
    world.commit("side");
    world.git(["switch", "-q", "main"]);
    world.git(["merge", "-q", "--no-ff", "--no-commit", "side"]);
    world.git(["rm", "-q", "-f", "side"]); // nothing is staged any more, but MERGE_HEAD is there
    refused(&world, &["apply"], 128, "a merge is in progress", "git merge --abort");
    world.git(["merge", "--abort"]);
    world.frites(["apply"]).expect(0);
}

#[test]
fn apply_refuses_a_branch_that_exists() {
    let world = world_with_a_verdict();
    for (branch, args) in
        [("frites/apply/1", vec!["apply"]), ("mine", vec!["apply", "--branch", "mine"])]
    {
        let beside = format!("--branch {branch}-2");
        world.git(["branch", branch]);
        refused(
            &world,
            &args,
            128,
            &format!("a branch named '{branch}' exists"),
            &format!("git branch -D {branch}"),
        );
        let aside = [&args[..], &["--no-switch", "-m", "x"]].concat();
        refused(&world, &aside, 128, &format!("a branch named '{branch}' exists"), &beside);
    }
    for name in ["a..b", "-x", "x.lock", "", "a b"] {
        refused(
            &world,
            &["apply", &format!("--branch={name}")],
            2,
            "is not a valid branch name",
            "check-ref-format",
        );
    }
}

#[test]
fn apply_refuses_inside_a_candidate_and_in_a_bare_repository() {
    let world = world_with_a_verdict();
    let before = everything(&world);
    let inside = world.worktree("1/beta").join("src");
    let answer = world.frites_in(&inside, ["apply"]).refuses(128, "this is a candidate's worktree");
    assert!(answer.stderr.contains("your own checkout"), "{}", answer.stderr);
    assert_eq!(everything(&world), before);

    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    world.frites_in(&bare, ["spawn", "-q", "-n", "1"]).expect(0);
    fs::write(bare.join(".frites/worktrees/2/c1/README"), "better\n").unwrap();
    world.frites_in(&bare, ["judge", "--test", "true"]).expect(0);
    let refs = world.git_in(&bare, ["for-each-ref"]);
    let answer = world.frites_in(&bare, ["apply"]).refuses(128, "it is bare");
    assert!(answer.stderr.contains("--no-switch"), "{}", answer.stderr);
    assert_eq!(world.git_in(&bare, ["for-each-ref"]), refs);
}

#[test]
fn unknown_address_is_refused_with_the_nearest_name() {
    let world = World::new();
    for verb in ["diff", "capture", "judge", "apply", "clean", "path"] {
        refused(&world, &[verb], 128, "there is no run yet", "git frites spawn");
    }
    world.spawn(["--run", "fixer", "-c", "alpha", "beta"]);
    fs::write(world.worktree("fixer/alpha").join("README"), "x\n").unwrap();
    world.frites(["diff", "fixer"]).expect(0);
    for verb in ["diff", "capture", "judge", "apply", "clean", "status", "path"] {
        refused(&world, &[verb, "fixre"], 128, "there is no run 'fixre'", "did you mean 'fixer'?");
        refused(&world, &[verb, "7"], 128, "there is no run '7'", "git frites status");
        if verb != "judge" {
            let words = "run fixer has no candidate 'alpah'";
            refused(&world, &[verb, "fixer/alpah"], 128, words, "did you mean 'fixer/alpha'?");
            refused(
                &world,
                &[verb, "fixer/zz"],
                128,
                "run fixer has no candidate 'zz'",
                "it has alpha, beta",
            );
        }
        refused(&world, &[verb, "a/b/c"], 2, "is not a valid name", "RUN/CANDIDATE@ITERATION");
    }
    // A word alone may have been meant for a candidate of the newest run.
    let commands: &[&[&str]] =
        &[&["diff", "alpah"], &["path", "c9"], &["log", "7"], &["diff", "fixer/zz"]];
    assert_shown("unknown_addresses", refusals(&world, 128, commands));
    let unknown = "fixer/alpha has no iteration 9: it was captured once";
    refused(&world, &["diff", "fixer/alpha@9"], 128, unknown, "iterations count from 1");
    refused(&world, &["apply", "fixer/alpha@9"], 128, unknown, "iterations count from 1");
    refused(
        &world,
        &["diff", "fixer/alpha@0"],
        2,
        "'fixer/alpha@0' does not end in an iteration",
        "RUN/CANDIDATE",
    );
    refused(
        &world,
        &["diff", "fixer@1"],
        2,
        "an iteration belongs to a candidate",
        "fixer/CANDIDATE@ITERATION",
    );
    refused(&world, &["path", "fixer"], 2, "run fixer has 2 candidates", "fixer/alpha");
    // An iteration is refused where it would be ignored, although there is none.
    let whole = "'fixer/alpha@9' is an iteration, and only a whole candidate";
    for verb in [
        "path",
        "status",
        "explain",
        "exec",
        "retry",
        "capture",
        "task",
        "clean",
        "spawn --from",
        "apply --undo",
    ] {
        let words: Vec<_> = verb.split(' ').chain(["fixer/alpha@9"]).collect();
        refused(&world, &words, 2, whole, "name the candidate: fixer/alpha");
    }
    let whole = "'fixer/alpha' is a candidate, and only a whole run";
    for verb in ["judge", "judge -n", "report", "run --resume", "add", "shard open"] {
        for address in ["fixer/alpha", "fixer/alpha@9"] {
            let words: Vec<_> = verb.split(' ').chain([address]).collect();
            refused(&world, &words, 2, whole, "name the run: fixer");
        }
    }
    refused(&world, &["output", "fixer/alpha/@base"], 2, whole, "name the run: fixer");
    // A run to remove must be named in full; a run to look at need not.
    refused(&world, &["clean", "fix"], 128, "there is no run 'fix'", "did you mean 'fixer'?");
    for verb in ["diff", "log"] {
        assert!(world.frites([verb, "fix"]).expect(0).out().contains("fixer"));
    }
    refused(&world, &["log", "fixre"], 128, "there is no run 'fixre'", "did you mean 'fixer'?");
    world.spawn(["--run", "later", "-n", "1"]);
    refused(&world, &["diff", "alpha"], 128, "there is no run 'alpha'", "mean 'fixer/alpha'?");
}

#[test]
fn unknown_words_on_the_command_line_are_usage_errors() {
    let world = World::new();
    let commands: &[&[&str]] = &[
        &["spwan"],
        &["help", "jugde"],
        &["nonsense"],
        &["spawn", "--nosuch"],
        &["judge", "--tset", "x"],
        &["judge", "--rank", "agrement"],
        &["run", "-n", "3", "make", "-j2"],
        &["spawn", "-n", "0"],
        &["judge", "-j", "two"],
        &["judge", "--retries", "101"],
        &["spawn", "-n", "2", "-c", "a"],
        &["spawn", "-n"],
        &["diff", "--stat", "--patch"],
        &["judge", "--replay", "--no-cache"],
        &["status", "--color=sometimes"],
        &["spawn", "-c", "a", "b", "--nosuch"],
        &["spawn", "-c", "a", "-b"],
    ];
    assert_shown("usage_errors", refusals(&world, 2, commands));
    let help = world.frites([""; 0]).expect(2);
    assert!(help.stderr.contains("Usage: git frites"), "{}", help.stderr);
    assert_eq!(help.out(), "");
}

#[test]
fn missing_program_is_refused_before_anything_is_made() {
    let world = World::new();
    let missing = "nosuchprogram' is not on PATH";
    refused(&world, &["spawn", "--", "nosuchprogram", "-x"], 128, missing, "sh -c");
    refused(&world, &["spawn", "--", "echo one; echo two"], 128, "is not on PATH", "sh -c");
    refused(&world, &["spawn", "--", "echo one > src/new"], 128, "is not on PATH", "sh -c");
    assert!(!world.repo.join(".frites").exists());

    world.write(
        ".frites.toml",
        "[oracle]\nbuild = \"true\"\ntest = [\"nosuchprogram\", \"--all\"]\n",
    );
    world.spawn(["-n", "1"]);
    fs::write(world.worktree("1/c1").join("README"), "x\n").unwrap();
    let answer = refused(&world, &["judge"], 128, missing, "--test CMD");
    assert!(
        answer.stderr.contains("the test command cannot run")
            && answer.stderr.contains(".frites.toml")
    );
    world.frites(["judge", "--test", "true"]).expect(0);
}

#[test]
fn wrong_file_setting_is_named_with_its_place_and_nearest_key() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    let texts = [
        "[oracle]\ntest = \"x\"\nbiuld = \"y\"\n",
        "[orcale]\ntest = \"x\"\n",
        "  nonsense = 1\n",
        "[spawn]\njobs = \"four\"\n",
        "[spawn]\njobs = 0\n",
        "[oracle]\ntest = 3\n",
        "[oracle]\ntest = []\n",
        "[oracle]\ndetect = \"no\"\n",
        "oracle = 1\n",
        "[oracle\ntest = 1\n",
        "[oracle]\ntest = \"a\"\ntest = \"b\"\n",
    ];
    let mut seen = String::new();
    for text in texts {
        world.write(".frites.toml", text);
        seen.push_str(text);
        seen.push_str(&refusals(&world, 128, &[&["spawn"]]));
    }
    assert_shown("wrong_file_settings", seen);
    for args in [["judge"].as_slice(), &["diff", "1"], &["apply"], &["clean"], &["config"]] {
        refused(&world, args, 128, "duplicate key", "TOML");
    }
    world.write(".frites.toml", b"[oracle]\ntest = \"\xff\"\n");
    refused(&world, &["spawn"], 128, ".frites.toml:2: this is not UTF-8", "TOML");
}

#[test]
fn wrong_git_setting_is_named_with_its_place_and_nearest_key() {
    let world = World::new();
    let settings = [
        ("frites.oracle.tset", "x"),
        ("frites.nonsense", "x"),
        ("frites.spawn.jobs", "four"),
        ("frites.oracle.detect", "perhaps"),
    ];
    let mut seen = String::new();
    for (key, value) in settings {
        world.git(["config", key, value]);
        seen.push_str(&refusals(&world, 128, &[&["spawn"]]));
        world.git(["config", "--unset", key]);
    }
    assert_shown("wrong_git_settings", seen);
    world.git(["config", "--global", "frites.oracle.lnit", "x"]);
    let answer = refused(&world, &["spawn"], 128, "unknown key 'oracle.lnit'", "oracle.lint");
    assert!(answer.stderr.contains(".gitconfig"), "the file is named:\n{}", answer.stderr);
}

#[test]
fn wrong_environment_variable_is_named() {
    let mut world = World::new();
    world.set_env("FRITES_SPAWN_JOBS", "none");
    refused(
        &world,
        &["spawn"],
        128,
        "FRITES_SPAWN_JOBS: 'spawn.jobs' takes a whole number from 1",
        "spawn.jobs",
    );
}
