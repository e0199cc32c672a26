//! `judge` wastes nothing: equal trees, known outcomes, stopping early, checkouts that are used
//! again.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::common::edits::{LARGE, SMALL};
use crate::common::{LONG, World, poll};

/// A test that writes a line to `$HOME/runs` each time, and passes where `needle` is.
fn counted(needle: &str) -> String {
    format!("cat id >> \"$HOME/runs\"; grep -q {needle} src/lib.txt")
}

fn runs(world: &World) -> usize {
    let text = fs::read_to_string(world.home().join("runs")).unwrap_or_default();
    let _ = fs::remove_file(world.home().join("runs"));
    text.lines().count()
}

/// 16 attempts: five are equal, and of the twelve trees the third smallest and larger ones pass.
fn sixteen() -> World {
    let world = World::new();
    let scripts: Vec<String> = (0..16)
        .map(|i| {
            // The larger of twelve distinct trees come first, the five equal ones before all
            // others.
            let size = if i < 5 { 13 } else { 17 - i };
            let word = if size >= 4 { "pass" } else { "fail" };
            format!("for i in $(seq {size}); do echo {word}; done > src/lib.txt; echo {size} > id")
        })
        .collect();
    world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    world
}

#[test]
fn equal_trees_cached_outcomes_and_until_pass_save_runs() {
    let test = counted("pass");
    let world = sixteen();
    let full = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    assert_eq!(runs(&world), 12);
    assert_eq!((&full["effort"]["ran"], &full["effort"]["saved_equal"]), (&12.into(), &4.into()));
    let known = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
    // The two that failed run again.
    assert_eq!(runs(&world), 2);
    assert_eq!(
        (&known["effort"]["ran"], &known["effort"]["saved_cached"]),
        (&2.into(), &10.into())
    );
    assert_eq!(known["candidates"][0]["results"][0]["cached"], true);
    assert_eq!(known["recommended"], full["recommended"]);
    assert_eq!(known["rationale"], full["rationale"]);
    for jobs in [1, 4] {
        let options = ["judge", "--until-pass", "--no-cache", "--test", &test, "-j"];
        let answer =
            world.frites(options.iter().copied().chain([jobs.to_string().as_str()])).expect(0);
        let ran = runs(&world);
        assert!((3..=3 + jobs).contains(&ran), "{ran} runs with {jobs} jobs");
        let early = world.frites(["judge", "--replay", "--json"]).expect(0).json();
        assert_eq!(early["recommended"], full["recommended"]);
        let lengths =
            ["passed", "failed", "not_run"].map(|key| early[key].as_array().unwrap().len());
        assert_eq!(lengths.iter().sum::<usize>(), 16);
        assert!(lengths[0] >= 1 && lengths[1] == 2 && lengths[2] >= 16 - 3 - jobs, "{lengths:?}");
        if jobs == 1 {
            assert_eq!(lengths, [1, 2, 13]);
            assert_eq!(
                answer.out().lines().last().unwrap(),
                "judge: c14 passed test: 8 lines in 2 files; 2 failed, 13 were not run, because none of them could be recommended instead"
            );
            assert!(
                answer
                    .stderr
                    .contains("3 commands ran for the candidates and 1 for the base; 9 were saved because they could not change the recommendation\n"),
                "{}",
                answer.stderr
            );
        }
    }
    // Cached passes are used. The two that failed could still win, and run again.
    let early = world.frites(["judge", "--until-pass", "--json", "--test", &test]).expect(0).json();
    assert_eq!((runs(&world), &early["rationale"]), (2, &full["rationale"]));
    world.assert_clean();
}

#[test]
fn until_pass_kills_commands_that_cannot_win() {
    let world = World::new();
    world.attempts(&[LARGE, SMALL]);
    // The large one never ends by itself; the small one passes once that has begun.
    let test = "if grep -q ONE src/lib.txt; then touch \"$HOME/begun\"; trap '' TERM; sleep 600 & wait; sleep 600; fi
        i=0; until test -e \"$HOME/begun\" || test $i = 2000; do i=$((i+1)); sleep 0.01; done";
    let start = std::time::Instant::now();
    let out = world.frites(["judge", "-j", "2", "--until-pass", "--test", test]).expect(0).out();
    assert!(start.elapsed() < LONG);
    assert!(
        out.lines().last().unwrap().starts_with(
            "judge: c2 passed test: 2 lines in 1 file; 1 was not run, because it could not be recommended instead"
        ),
        "{out}"
    );
    world.assert_clean();
}

#[test]
fn outcome_is_cached_only_under_the_same_conditions() {
    let mut world = World::new();
    world.write(".gitignore", ".env\n");
    world.write(".frites.toml", "[seed]\ncopy = ['.env']\n");
    world.write("id", "base\n");
    world.commit("seeded");
    world.write(".env", "a\n");
    world.attempts(&[SMALL]);
    // The base fails, and a failure is not cached: it is not counted here.
    let test = format!("! grep -q two src/lib.txt || exit 1; {}", counted("TWO"));
    let judge = |world: &World, more: &[&str], expected: usize, why: &str| {
        world.frites(["judge", "--test", &test].iter().chain(more)).expect(0);
        assert_eq!(runs(world), expected, "{why}");
    };
    judge(&world, &[], 1, "nothing is known");
    judge(&world, &[], 0, "the same again");
    judge(&world, &["--no-cache"], 1, "asked to run");
    judge(&world, &["--lint", "true"], 1, "another oracle");
    judge(&world, &["--retries", "1"], 1, "other terms");
    judge(&world, &[], 0, "the first outcome still is");
    world.write(".env", "b\n");
    judge(&world, &[], 1, "another seed");
    judge(&world, &[], 0, "that seed again");
    world.set_env("SSH_CONNECTION", "elsewhere");
    judge(&world, &[], 0, "who sits where does not matter");
    world.set_env("CFLAGS", "-O2");
    judge(&world, &[], 1, "another environment");
    // An equal tree in another run has its outcome and its log from the cache.
    world.attempts(&[SMALL]);
    judge(&world, &[], 0, "the same tree in another run");
    assert!(world.repo.join(".frites/runs/2/c1/test.log").exists());
    world.write(".frites.toml", "[seed]\nlink = ['.env']\n");
    judge(&world, &[], 0, "the same seed, named in another way");
    world.write(".env", "c\n");
    judge(&world, &[], 1, "a linked seed is known by its content");
    world.assert_clean();
}

/// The cause of a failure may have gone: a network that was down, a full disk, a flaky test.
#[test]
fn failure_is_run_again_by_the_next_judge() {
    let world = World::new();
    world.write("id", "base\n");
    world.commit("id");
    world.attempts(&[SMALL]);
    for end in ["exit 3", "kill -KILL $$", "sleep 60"] {
        let test = format!("cat id >> \"$HOME/runs\"; {end}");
        // With the base, for nobody passes.
        for _ in 0..2 {
            world.frites(["judge", "--timeout", "300ms", "--test", &test]).expect(1);
            assert_eq!(runs(&world), 2, "{end}");
        }
    }
    // What failed only because something was missing passes once it is there.
    let test = ["judge", "--json", "--build", "true", "--test", "test -e \"$HOME/service\""];
    world.frites(test).expect(1);
    crate::common::write(&world.home().join("service"), "");
    assert_eq!(world.frites(test).expect(0).json()["effort"]["saved_cached"], 0);
    world.assert_clean();
}

/// Within one `judge`, equal trees run once, whether they pass or fail.
#[test]
fn equal_trees_that_fail_run_once_in_each_judge() {
    let world = World::new();
    world.write("id", "base\n");
    world.commit("id");
    world.attempts(&[SMALL, SMALL, LARGE]);
    let test = counted("NEVER");
    for _ in 0..2 {
        let json = world.frites(["judge", "--json", "--test", &test]).expect(1).json();
        // Two trees, and the base.
        assert_eq!(runs(&world), 3);
        assert_eq!(
            (&json["effort"]["saved_equal"], &json["effort"]["saved_cached"]),
            (&1.into(), &0.into())
        );
    }
    world.assert_clean();
}

/// Rewrites each cached outcome: the content stays the same, and the change time tells.
const REWRITE: &str = "for f in \"$HOME\"/cache/git-frites/*/outcomes/*/outcome.toml; do \
    cp -p \"$f\" \"$f.new\"; mv \"$f.new\" \"$f\"; done";

#[test]
fn outcome_planted_while_an_attempt_ran_is_not_believed() {
    let world = World::new();
    world.attempts(&[SMALL]);
    let test = ["judge", "--json", "--test", "test -e \"$HOME/pass\""];
    let pass = world.home().join("pass");
    crate::common::write(&pass, "");
    world.frites(test).expect(0);
    fs::remove_file(&pass).unwrap();
    assert_eq!(world.frites(test).expect(0).json()["effort"]["ran"], 0, "cached");
    // In the second run, an equal tree is there while its attempt writes to the cache.
    let forge = format!("{SMALL}; {REWRITE}");
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", &forge]).expect(0);
    world.frites(test).expect(1);
    world.assert_clean();
}

/// Nor in any other run, nor when the attempt says that it began later than it did, or clears its
/// record.
#[test]
fn outcome_planted_by_another_runs_attempt_is_not_believed() {
    let world = World::new();
    world.attempts(&[SMALL]);
    let ran = || {
        let test = ["judge", "--json", "1", "--test", "true"];
        world.frites(test).expect(0).json()["effort"]["ran"].clone()
    };
    assert_ne!(ran(), 0);
    let plant = format!("{REWRITE}; cd \"$HOME/repo/.frites/runs/$FRITES_RUN/c1\"");
    let later = "sed 's/^started.*/started = \"2099-01-01T00:00:00Z\"/' candidate.toml > new; mv new candidate.toml";
    for forge in [format!("{plant}; {later}"), format!("{plant}; : >candidate.toml")] {
        assert_eq!(ran(), 0, "cached now");
        world.frites(["spawn", "-n", "1", "--", "sh", "-ec", &forge]).expect(4);
        assert_ne!(ran(), 0, "the planted outcome was believed");
    }
    world.assert_clean();
}

/// Proves that a checkout is its commit byte for byte and nothing else; notes the checkout in
/// `$HOME/places`.
const PROOF: &str = r#"
    export GIT_INDEX_FILE="$HOME/fresh"; rm -f "$HOME/fresh"
    git read-tree HEAD; git update-index -q --refresh; git diff-files --exit-code || exit 3
    test -z "$(git ls-files -o)" || exit 4; unset GIT_INDEX_FILE
    test -z "$(git status --porcelain --ignored)" || exit 5
    test -z "$(find . -type d ! -perm 755)" || exit 6
    main=$(git -C "$HOME/repo" rev-parse main)
    test "$(git rev-parse HEAD)" = "$main" || test "$(git rev-parse HEAD^)" = "$main" || exit 7
    rm -rf "$HOME/tree"; mkdir "$HOME/tree"; git archive HEAD | tar -xC "$HOME/tree" || exit 8
    diff -r --no-dereference -x .git "$HOME/tree" . || exit 9
    pwd >> "$HOME/places""#;

/// Harms a checkout: files with their times, links, modes, directories, the index, HEAD, refs of
/// its own.
const HARM: &str = r#"
    old="$HOME/old"
    # Other content, with the size and the times of before.
    for f in *; do
        test -f "$f" && ! test -L "$f" || continue
        cp -p "$f" "$old"; tr a-z A-Z < "$old" > "$f"; touch -r "$old" "$f"
    done
    rm -f "$old"
    git update-index --assume-unchanged .gitattributes
    echo '* -text' > .gitattributes
    git add -A; git commit -qm hijack; git checkout -q -b hijacked-$$
    rm -rf becomes; ln -s "$HOME/victim" becomes
    mkdir -p out/locked nested; echo x > out/locked/x; git init -q nested
    chmod -R a-w out; chmod 700 .
    echo garbage > "$(git rev-parse --git-dir)/index"; rm .git; mkdir .git
    exit 0"#;

/// Whatever the commands before did to a checkout, the next tree is there byte for byte and nothing
/// else: hashed anew, by an index that knows nothing.
#[test]
fn checkout_is_clean_by_a_full_rehash_whatever_the_one_before_did() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.write(".gitattributes", "*.crlf text eol=crlf\n");
    world.write(".gitignore", "out\n");
    world.write("a.crlf", "x\ny\n");
    world.write("dir/deep/file", "file\n");
    world.write("becomes/a/file", "1\n");
    world.write("run.sh", "#!/bin/sh\n");
    world.sh(&world.repo, "ln -s README link; chmod +x run.sh").expect(0);
    world.commit("all kinds");
    let scripts = [
        "echo 2 > dir/deep/file",
        "rm -r dir; echo file > dir",
        "rm -r becomes; echo x > becomes; ln -sfn dir link; chmod -x run.sh",
        // Equal blobs that check out as different files.
        "echo 'README text eol=crlf' >> .gitattributes",
        "rm link; mkdir link; echo x > link/x; printf 'a\\nb\\n' > a.crlf",
        "git mv README README.md",
        "echo '*' > .gitignore; echo new > new; git add -f new",
    ];
    world.attempts(&scripts);
    world.sh(&world.home(), "umask 022; mkdir victim; echo precious > victim/file").expect(0);
    // The harm names two of the paths that candidates add, which are judged once more for that.
    for (test, more) in
        [(format!("umask 022; {PROOF}"), 0), (format!("umask 022; {PROOF}\n{HARM}"), 2)]
    {
        let answer = world.frites(["judge", "--test", &test]).expect(0);
        assert!(
            answer.out().contains("judge: 7 of 7 passed"),
            "{}\n{}",
            answer.out(),
            answer.stderr
        );
        let places = fs::read_to_string(world.home().join("places")).unwrap();
        fs::remove_file(world.home().join("places")).unwrap();
        let places: Vec<&Path> = places.lines().map(Path::new).collect();
        // The base is judged, too. Three candidates are judged with the base's run.sh, link or
        // .gitignore; one of them with each of the two that it changes.
        assert_eq!(places.len(), 13 + more);
        let parents: BTreeSet<_> = places.iter().map(|path| path.parent()).collect();
        assert_eq!(parents.len(), 13 + more, "each tree has a room of its own");
        assert!(parents.iter().all(|room| !room.unwrap().exists()), "the rooms are removed");
    }
    assert_eq!(fs::read_to_string(world.home().join("victim/file")).unwrap(), "precious\n");
    // Branches that an oracle makes are its own affair.
    for branch in world.git(["branch", "--list", "hijacked-*", "--format=%(refname:short)"]).lines()
    {
        world.git(["branch", "-q", "-D", branch]);
    }
    world.assert_clean();
}

/// With `extensions.worktreeConfig` a new worktree gets a copy of the settings of the user's
/// checkout.
#[test]
fn checkout_has_the_settings_of_a_new_worktree() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.write(".gitattributes", "*.txt filter=shout\n");
    world.commit("attributes");
    world.git(["config", "extensions.worktreeConfig", "true"]);
    world.git(["config", "--worktree", "filter.shout.smudge", "tr a-z A-Z"]);
    world.git(["config", "--worktree", "filter.shout.clean", "tr A-Z a-z"]);
    world.attempts(&["echo one > new.txt", "echo two > new.txt; echo x > more"]);
    world.frites(["judge", "-q", "-j", "1", "--test", "cat new.txt >> \"$HOME/seen\""]).expect(0);
    assert_eq!(fs::read_to_string(world.home().join("seen")).unwrap(), "ONE\nTWO\n");
    world.assert_clean();
}

/// A command can put anything in the place of the checkout that it ran in, and of what git keeps of
/// it.
#[test]
fn link_in_place_of_a_checkout_is_not_followed_by_cleanup() {
    crate::common::in_the_open_world();
    let replace = [
        r#"d=$PWD; cd ..; mv "$d" "$d.moved"; ln -s "$HOME/victim" "$d""#,
        r#"d=$(git rev-parse --absolute-git-dir); rm -r "$d"; ln -s "$HOME/victim/.git" "$d""#,
        r#"d=$PWD; cd ..; rm -r "$d"; echo file > "$d""#,
        r#"d=$PWD; cd ..; rm -r "$d""#,
    ];
    for script in replace {
        let world = World::new();
        world.attempts(&[LARGE, SMALL, "echo x > README"]);
        let victim = world.home().join("victim");
        world
            .sh(&world.home(), "mkdir victim; git init -q victim; echo precious > victim/file")
            .expect(0);
        world.sh(&victim, "chmod 700 .; git add file; git commit -qm precious").expect(0);
        let state = || {
            world
                .sh(&victim, "git fsck; git status --porcelain file; stat -c %a .; cat file")
                .expect(0)
                .out()
        };
        let before = state();
        // Each of them finds its own tree, whatever the one before did.
        let test = format!(
            "test \"$(git write-tree)\" = \"$(git rev-parse HEAD^{{tree}})\" && git diff --exit-code && {script}"
        );
        let answer = world.frites(["judge", "--no-cache", "--test", &test]).expect(0);
        assert!(
            answer.out().contains("judge: 3 of 3 passed"),
            "{script}: {}\n{}",
            answer.out(),
            answer.stderr
        );
        assert_eq!(state(), before, "{script}");
        // A command that finds no checkout any more fails for its own tree alone.
        let script = format!("grep -q two src/lib.txt || {{ {script}; }}");
        let words =
            ["judge", "--json", "--no-cache", "--build", &script, "--test", "test -e README"];
        let json = world.frites(words).expect(0).json();
        assert!(json["passed"].as_array().unwrap().contains(&"c3".into()), "{script}: {json}");
        assert_eq!(state(), before, "{script}");
        world.frites(["status"]).expect(0);
        world.assert_clean();
    }
}

#[test]
fn checkout_that_a_command_has_harmed_changes_no_later_tree() {
    let world = World::new();
    world.write(".gitignore", "out\n");
    world.commit("ignore");
    world.attempts(&["echo 2 > src/a", "echo 3 > src/a", "echo 4 > src/a"]);
    let test = r#"test "$(cat src/a)" = "$(git show HEAD:src/a)" || exit 3; mkdir -p out; rm .git; mkdir -p .git/HEAD; chmod 0 "$PWD"; chmod a-w ..; exit 0"#;
    let answer = world.frites(["judge", "--no-cache", "--test", test]).expect(0);
    assert!(answer.out().contains("judge: 3 of 3 passed"), "{}\n{}", answer.out(), answer.stderr);
    world.frites(["status"]).expect(0);
    world.assert_clean();
}

#[test]
fn judge_in_place_is_never_verified() {
    let mut world = World::new();
    world.write(".gitignore", "built\n");
    world.commit("ignore");
    world.attempts(&[&format!("{SMALL}; touch built"), LARGE]);
    for mode in ["required", "sealed", "landlock"] {
        world.set_env("FRITES_SANDBOX_MODE", mode);
        let refusal = "--in-place confines no command, and sandbox.mode requires a world";
        world.frites(["judge", "--in-place", "--test", "true"]).refuses(128, refusal);
    }
    world.set_env("FRITES_SANDBOX_MODE", "auto");
    let answer = world.frites(["judge", "--in-place", "--test", "test -e built"]).expect(3);
    assert!(answer.out().contains("tests: only c1 of 2 passed test"), "{}", answer.out());
    assert!(answer.stderr.contains("is not verified"), "{}", answer.stderr);
    assert_eq!(
        world.frites(["judge", "--in-place", "-q", "--test", "test -e built"]).expect(3).out(),
        ""
    );
    let why = "nothing verified to land: the run was judged in the worktrees, and other files";
    let refused = world.frites(["apply"]).refuses(1, why);
    assert!(refused.stderr.contains("judge with `git frites judge 1 --test 'test -e built'`"));
    let json = world.frites(["judge", "--replay", "--json"]).expect(3).json();
    assert_eq!((&json["verified"], &json["terms"]["in_place"]), (&false.into(), &true.into()));
    world.frites(["judge", "--test", "test -e built"]).expect(1);
    world.assert_clean();
}

#[test]
fn agreement_is_always_recorded_and_is_shown_where_it_ranks() {
    let world = World::new();
    let base = "alpha beta gamma delta epsilon zeta eta theta iota kappa";
    world.write("words", base);
    world.commit("words");
    let edit = format!("echo '{}' > words", base.replace("epsilon zeta", "ONE TWO"));
    // Three agree on one edit, two of them on more; the smallest does something else in another
    // file.
    let scripts = [
        edit.clone(),
        format!("{edit}; echo x > more"),
        format!("{edit}; echo x > more; echo x > most"),
        "echo x > tiny".to_owned(),
    ];
    world.attempts(&scripts.each_ref().map(String::as_str));
    let by_size = world.frites(["judge", "--json", "--test", "true"]).expect(0).json();
    assert_eq!(by_size["recommended"], "c4");
    let out =
        world.frites(["judge", "--rank", "agreement", "--test", "true", "--explain"]).expect(0);
    assert!(
        out.out().contains("4 of 4 passed; c2 covers most of what the others do (0."),
        "{}",
        out.out()
    );
    assert!(out.stderr.contains("c1 before c4: agreement 0.581, not 0.000"), "{}", out.stderr);
    let by_agreement = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(by_agreement["terms"]["rank"], "agreement");
    let scores = |v: &Value| {
        (0..4).map(|at| v["candidates"][at]["agreement"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(scores(&by_agreement), scores(&by_size));
    assert!(scores(&by_size)[3] == 0.0);
    // Decided again by the other figure, without running anything; apply goes by it.
    let again =
        world.frites(["judge", "--replay", "--rank", "blast-radius", "--json"]).expect(0).json();
    assert_eq!(again["rationale"], by_size["rationale"]);
    assert_eq!(again["other_picks"][0]["rank"], "agreement");
    // One command made them all.
    let auto = world.frites(["judge", "--replay", "--rank", "auto"]).expect(0);
    assert!(auto.out().contains("c4 changes the fewest lines"), "{}", auto.out());
    let line = "; c4 has 0.000)";
    assert!(!auto.stderr.contains("would recommend"), "{}", auto.stderr);
    let explained = world.frites(["explain"]).expect(0).out();
    assert!(
        explained.contains("--rank agreement would recommend c2 (0.") && explained.contains(line),
        "{explained}"
    );
    let table = |rank| world.frites(["judge", "--replay", "--rank", rank]).expect(0).out();
    assert!(table("agreement").contains("  files  agree"));
    assert!(!table("blast-radius").contains("agree"));
    world.frites(["apply"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree("refs/frites/1/c4"));
    world.assert_clean();
}

/// Also with every stage, long names and every flag.
#[test]
fn table_fits_80_columns_and_reads_without_colour() {
    let world = World::unborn();
    world.write("Makefile", "build test lint:\n\tgrep -q 2 value\n");
    world.write("tests/a.sh", "a\n");
    world.write("value", "1\n");
    world.commit("base");
    let run =
        world.spawn(["-c", "a-name-that-goes-on-for-as-long-as-forty-letters", "second", "third"]);
    for (name, script) in [
        (
            "a-name-that-goes-on-for-as-long-as-forty-letters",
            "echo 2 > value; echo '# x' >> Makefile; rm -r tests; seq 100000 > big",
        ),
        ("second", "echo 2 > value; echo b > tests/a.sh"),
        ("third", "echo 3 > value; echo 'echo 1; exit 0' > tests/b.sh"),
    ] {
        world.sh(&world.worktree(&format!("{run}/{name}")), script).expect(0);
    }
    let out = world.frites(["judge"]).expect(0).out();
    let table: Vec<&str> = out.lines().take_while(|l| !l.is_empty()).collect();
    assert!(table.iter().all(|l| l.chars().count() <= 80), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
    let colored = world.frites(["judge", "--color", "always"]).expect(0).out();
    let plain = console::strip_ansi_codes(&colored);
    // The second time outcomes are known, which is another word in the last column.
    assert!(colored.contains('\u{1b}') && plain.contains("tests edited"), "{colored}");
    world.assert_clean();
}

/// The number of judgings: each number of jobs with each way to end. FRITES_TEST_ROUNDS=50 gives
/// the scoreboard's number.
fn rounds() -> u32 {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// SCOREBOARD row 27: judgings of the same candidates, several at a time, in any order.
#[test]
fn judgings_in_any_order_agree() {
    let world = World::new();
    world.attempts(&[LARGE, SMALL, "echo x > README", &format!("{SMALL}; echo x > x")]);
    // Who ends when depends on the process id.
    let test = "sleep 0.0$(($$ % 4)); grep -q TWO src/lib.txt";
    let mut first: Option<Value> = None;
    for round in 0..rounds() {
        let jobs = (1 + round % 4).to_string();
        let until: &[&str] = if round % 5 == 4 { &["--until-pass"] } else { &[] };
        let words = ["judge", "--json", "--no-cache", "-j", &jobs, "--test", test];
        let mut json = world.frites(words.iter().chain(until)).expect(0).json();
        if !until.is_empty() {
            assert_eq!(json["recommended"], first.as_ref().unwrap()["recommended"]);
            continue;
        }
        json["judged"].take();
        json["baseline"]["results"][0]["seconds"].take();
        json["round"].take();
        json["candidates"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|c| c["results"][0]["seconds"] = Value::Null);
        assert_eq!(*first.get_or_insert_with(|| json.clone()), json, "round {round}");
    }
    assert_eq!(
        world.git(["rev-list", "--count", "refs/frites/1/c1"]),
        world.git(["rev-list", "--count", "refs/frites/1/c2"])
    );
    assert!(!Path::new(&world.home().join("cache/git-frites")).join("room").exists());
    world.assert_clean();
}

#[test]
fn failure_removes_the_cached_pass_of_the_same_tree() {
    let world = World::new();
    let broken = world.home().join("broken");
    let run = world.attempts(&["echo x > x"]);
    let test = format!("test ! -e '{}'", broken.display());
    world.frites(["judge", &run, "--test", &test]).expect(0);
    fs::write(&broken, "").unwrap();
    world.frites(["judge", &run, "--test", &test]).expect(0);
    world.frites(["judge", &run, "--no-cache", "--test", &test]).expect(1);
    world.frites(["judge", &run, "--test", &test]).expect(1);
}

/// Its commands could write to the cache, so that nothing there is believed; but a failure counts.
#[test]
fn a_failure_beside_another_judge_removes_the_cached_pass() {
    let world = World::new();
    let [broken, go, began] = ["broken", "go", "began"].map(|name| world.home().join(name));
    let run = world.attempts(&["echo x > x"]);
    let other = world.attempts(&["echo y > y"]);
    let test = format!("test ! -e '{}'", broken.display());
    let judge = ["judge", &run, "--test", &test];
    world.frites(judge).expect(0);
    let waits =
        format!(": > '{}'; until test -e '{}'; do sleep 0.01; done", began.display(), go.display());
    let mut beside = world.command(&world.repo, "git-frites", ["judge", &other, "--test", &waits]);
    let mut beside = beside.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    poll(|| began.exists());
    fs::write(&broken, "").unwrap();
    world.frites(judge).expect(1);
    fs::remove_file(&broken).unwrap();
    fs::write(&go, "").unwrap();
    assert!(beside.wait().unwrap().success());
    let again = world.frites(judge.into_iter().chain(["--json"])).expect(0).json();
    assert_eq!(again["effort"]["ran"], 1, "the pass of before was believed");
}
