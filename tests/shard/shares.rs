//! A run that is judged in parts on the terms of `shard open`, by machines that share nothing but a
//! repository to push to.
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::spread::{node, on_node, open, refs, replay, three_sizes, with_remote};
use crate::common::{World, answer, make_executable, poll, write};

#[test]
fn run_is_opened_judged_in_shares_by_nodes_that_have_nothing_and_decided() {
    let (world, url) = three_sizes("! grep -qx 9 new && test -e README");
    // The base is a part, too.
    assert_eq!(open(&world).out(), "4\n");
    assert_eq!(refs(&world, &url), "@record @terms c1 c2 c3");
    let pending = on_node(&world, &url, &["list", "1"]).expect(0).out();
    assert_eq!(pending, "1/c1\n1/c2\n1/c3\n1/@base\n");
    let undecided = replay(&world, &[]).expect(3);
    assert!(undecided.stderr.contains("missing: 1/c1 1/c2 1/c3 1/@base\n"), "{}", undecided.stderr);
    // The configuration of a node does not matter.
    world.git_in(&world.home(), ["config", "--global", "frites.oracle.test", "false"]);
    let first = on_node(&world, &url, &["judge", "1", "1/2"]).expect(0);
    assert_eq!(first.out(), "1/c1\ttest: exit 1\n1/c3\tpassed\n");
    let pending = world.frites(["shard", "list", "--remote", "origin", "1"]).expect(0).out();
    assert_eq!(pending, "1/c2\n1/@base\n");
    // Repeated, as an engine does, it only says so.
    let again = on_node(&world, &url, &["judge", "1", "1/2"]).expect(0);
    assert_eq!(again.out(), "1/c1\ttest: exit 1\tstored before\n1/c3\tpassed\tstored before\n");
    world.git_in(&world.home(), ["config", "--global", "--unset", "frites.oracle.test"]);
    let undecided = replay(&world, &[]).expect(3);
    assert!(undecided.out().contains("c2 has no outcome yet and could still win"));
    // The other share by the names of its parts.
    on_node(&world, &url, &["judge", "1/c2"]).expect(0);
    on_node(&world, &url, &["judge", "1/@base"]).expect(0);
    assert_eq!(
        refs(&world, &url),
        "@record @results/@base @results/c1 @results/c2 @results/c3 @terms c1 c2 c3"
    );
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "");
    let there = replay(&world, &["--json"]).expect(0).json();
    let whole = world.frites(["judge", "--json", "--no-cache"]).expect(0).json();
    for key in ["decision", "recommended", "rationale", "ranking", "passed", "failed", "oracle"] {
        assert_eq!(there[key], whole[key], "{key}");
    }
    assert_eq!(
        there["baseline"]["results"][0]["outcome"],
        whole["baseline"]["results"][0]["outcome"]
    );
    // The judging of the whole run began a round: nothing from before counts.
    replay(&world, &[]).expect(0);
    world.frites(["shard", "list", "1"]).refuses(128, "run 1 was not opened for judging in parts");
    world.frites(["apply", "--no-switch", "-m", "land"]).expect(0);
    world.assert_clean();
}

#[test]
fn command_line_that_would_judge_nothing_or_too_much_is_refused() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1"]).refuses(2, "which parts are to be judged?");
    on_node(&world, &url, &["judge", "1/c1", "1/2"]).refuses(2, "is one part");
    world.frites(["judge", "--candidate", "1/c1"]).refuses(2, "not the name of a candidate");
    world.frites(["judge", "--candidate", "c1"]).refuses(128, "was opened for judging in parts");
    let many = ["shard", "judge", "-j", "65", "1", "1/1"];
    world.frites(many).refuses(128, "65 commands at once are more than limits.jobs = 64");
    assert_eq!(refs(&world, &url), "@record @terms c1 c2 c3");
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/@results/"]), "");
}

#[test]
fn changed_configuration_is_accepted_by_the_commands_that_refuse_it() {
    let (mut world, _url) = three_sizes("test -e new");
    world.set_env("FRITES_SPAWN_GUARD", "off");
    let open = ["shard", "open", "--remote", "origin", "1"];
    for words in [&open[..], &["shard", "judge", "1", "1/1"]] {
        let plant = "echo 1 > new; git config frites.spawn.jobs 2";
        world.frites(["spawn", "-n", "1", "--", "sh", "-c", plant]).expect(0);
        world.frites(words).refuses(128, "config 'frites.spawn.jobs'");
        let accepted = world.frites([words, &["--trust-config"]].concat()).expect(0);
        assert!(accepted.stderr.contains("accepted: config 'frites.spawn.jobs'"), "{accepted:?}");
        world.frites(words).expect(0);
        world.git(["config", "--unset", "frites.spawn.jobs"]);
    }
}

#[test]
fn share_is_what_the_variables_of_an_engine_say() {
    let (mut world, url) = three_sizes("true");
    open(&world);
    on_node(&world, &url, &["judge", "1", "auto"]).refuses(2, "no variable of an engine says");
    world.set_env("JOB_COMPLETION_INDEX", "3");
    let out = on_node(&world, &url, &["judge", "1", "auto/4"]).expect(0).out();
    assert_eq!(out, "1/@base\tpassed\n");
    world.set_env("CI_NODE_INDEX", "2");
    world.set_env("CI_NODE_TOTAL", "4");
    assert_eq!(on_node(&world, &url, &["judge", "1", "auto"]).expect(0).out(), "1/c2\tpassed\n");
    // More tasks than parts: nothing to do, and all is well.
    assert_eq!(on_node(&world, &url, &["judge", "1", "5/5"]).expect(0).out(), "");
    on_node(&world, &url, &["judge", "1", "6/5"]).refuses(2, "a share is K/N");
}

#[test]
fn equal_trees_are_one_part_and_share_its_outcome() {
    let world = World::new();
    let url = with_remote(&world);
    world.attempts(&["seq 3 > new", "seq 3 > new", "seq 5 > new"]);
    let open = ["shard", "open", "--remote", "origin", "--test", "! grep -qx 5 new", "1"];
    assert_eq!(world.frites(open).expect(0).out(), "3\n");
    on_node(&world, &url, &["judge", "1/c2"]).refuses(128, "1/c2 has the same tree as 1/c1");
    on_node(&world, &url, &["judge", "1/c9"]).refuses(128, "1/c9 is not part");
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    let json = replay(&world, &["--json"]).expect(0).json();
    assert_eq!(
        (&json["recommended"], &json["passed"]),
        (&"c1".into(), &serde_json::json!(["c1", "c2"]))
    );
    assert_eq!(json["candidates"][1]["same_as"], "c1");
    world.assert_clean();
}

/// What a node lacks is not a candidate's fault, and an engine that tries again elsewhere does
/// right.
#[test]
fn node_that_cannot_judge_stores_nothing_and_says_why() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.write(".frites.toml", "[seed]\ncopy = ['.env']\n[oracle]\ntest = 'grep -q here .env'\n");
    world.commit("seeded");
    let url = with_remote(&world);
    world.write(".env", "here\n");
    world.attempts(&["seq 9 > new"]);
    open(&world);
    let refused = on_node(&world, &url, &["judge", "1", "1/1"]);
    refused
        .refuses(128, "the seeds here are not those that run 1 was opened with: '.env' is missing");
    // A clone whose configuration names no seed, but that has the file.
    let clone = world.home().join("clone");
    world.git(["clone", "-q", &url, clone.to_str().unwrap()]);
    fs::remove_file(clone.join(".frites.toml")).unwrap();
    let there = ["shard", "judge", "--remote", "origin", "1", "1/1"];
    world.frites_in(&clone, there).refuses(128, "'.env' is missing");
    write(&clone.join(".env"), "there\n");
    world.frites_in(&clone, there).refuses(128, "their contents differ");
    assert_eq!(refs(&world, &url), "@record @terms c1");
    write(&clone.join(".env"), "here\n");
    let answer = world.frites_in(&clone, there).expect(0);
    assert_eq!(answer.out(), "1/c1\tpassed\n1/@base\tpassed\n");
    replay(&world, &[]).expect(0);
    // A program that is not installed.
    world
        .frites(["shard", "open", "--remote", "origin", "--test", "no-such-program", "1"])
        .expect(0);
    on_node(&world, &url, &["judge", "1", "1/1"]).refuses(128, "the test command cannot run");
    // Nor can a node judge on terms of its own.
    let own = on_node(&world, &url, &["judge", "1", "1/1", "--test", "true"]);
    own.refuses(2, "unexpected argument '--test'");
    on_node(&world, &url, &["judge", "2", "1/1"]).refuses(128, "there is no run '2'");
    on_node(&world, "/nowhere/at.all", &["judge", "1", "1/1"]).refuses(128, "'/nowhere/at.all'");
    world
        .frites_in(&node(&world), ["shard", "judge", "--remote", "origin", "1", "1/1"])
        .refuses(128, "'origin' is not a URL");
}

#[test]
fn opening_again_on_the_same_terms_keeps_outcomes_and_on_others_it_does_not() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    // A candidate that changed is to be judged again; the others are not.
    world.sh(&world.worktree("1/c2"), "seq 4 > new").expect(0);
    open(&world);
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "1/c2\n");
    let stale = replay(&world, &[]).expect(3);
    assert!(
        stale.stderr.contains("1/c2: the outcome of judging it alone is not used"),
        "{}",
        stale.stderr
    );
    on_node(&world, &url, &["judge", "1", "2/4"]).expect(0);
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c2\n");
    world.frites(["shard", "open", "--remote", "origin", "--retries", "1", "1"]).expect(0);
    let all = "1/c1\n1/c2\n1/c3\n1/@base\n";
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), all);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    world
        .frites(["shard", "open", "--remote", "origin", "--retries", "1", "--no-cache", "1"])
        .expect(0);
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), all);
    world.frites(["judge", "--replay", "--retries", "2", "1"]).refuses(
        128,
        "run 1 was opened on other terms than these options name: its oracle.retries is 1, and here 2",
    );
}

/// Whoever was first stays, whether both say the same or not.
#[test]
fn two_nodes_on_one_part_leave_the_outcome_of_the_first() {
    let (world, url) = three_sizes("n=$(ls \"$HOME/begun\" | wc -l); touch \"$HOME/begun/$n\"
        i=0; until test -e \"$HOME/go$n\" || test $i = 6000; do i=$((i+1)); sleep 0.01; done; test $n != \"$(cat \"$HOME/bad\")\"");
    fs::create_dir(world.home().join("begun")).unwrap();
    open(&world);
    let begun = || fs::read_dir(world.home().join("begun")).unwrap().count();
    let judge = |bad: &str| {
        fs::remove_dir_all(world.home().join("begun")).unwrap();
        fs::create_dir(world.home().join("begun")).unwrap();
        for go in ["go0", "go1"] {
            let _ = fs::remove_file(world.home().join(go));
        }
        write(&world.home().join("bad"), bad);
        let start = || {
            let words = ["shard", "judge", "--remote", &url, "1/c2"];
            let mut command = world.command(&node(&world), "git-frites", words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let first = start();
        poll(|| begun() == 1);
        let second = start();
        poll(|| begun() == 2);
        write(&world.home().join("go0"), "");
        let first = answer(&first.wait_with_output().unwrap()).expect(0);
        write(&world.home().join("go1"), "");
        (first, answer(&second.wait_with_output().unwrap()).expect(0))
    };
    let tip = || world.git_in(Path::new(&url), ["rev-parse", "refs/frites/1/@results/c2"]);
    let (_, second) = judge("none");
    assert!(!second.stderr.contains("disagree"), "{}", second.stderr);
    let parents = |tip: &str| world.git_in(Path::new(&url), ["rev-list", "--parents", "-1", tip]);
    world.frites(["shard", "open", "--remote", "origin", "--no-cache", "1"]).expect(0);
    let (_, second) = judge("1");
    let words = "1/c2: it was judged twice, and the outcomes disagree: first passed (";
    assert!(second.stderr.contains(words), "{}", second.stderr);
    // The file is that of the first; the other one is a parent.
    let text = world.git_in(Path::new(&url), ["show", &format!("{}:outcome.toml", tip())]);
    assert!(text.contains("outcome = \"passed\""), "{text}");
    let other = parents(&tip()).split(' ').nth(2).unwrap().to_owned();
    let text = world.git_in(Path::new(&url), ["show", &format!("{other}:outcome.toml")]);
    assert!(text.contains("outcome = \"failed\""), "{text}");
    let named = replay(&world, &[]).expect(3);
    assert!(named.stderr.contains(words), "{}", named.stderr);
}

/// git-fsck(1) finds errors in the old history of some projects, and a mirror fetches all of it.
#[test]
fn old_faults_in_the_history_of_the_base_stop_no_judge() {
    let world = World::new();
    let script = "export LC_ALL=C
        t=$(git cat-file tree HEAD: | sed 's/40000 src/040000 src/' |
            git hash-object -t tree -w --stdin --literally)
        c=$(git cat-file commit HEAD | sed \"s/^tree .*/tree $t/; s/> />/\" |
            git hash-object -t commit -w --stdin --literally)
        git reset -q --soft $(git commit-tree HEAD^{tree} -p $c -m later)
        git fsck 2>&1 | grep zeroPaddedFilemode && git fsck 2>&1 | grep missingSpaceBeforeDate";
    world.sh(&world.repo, script).expect(0);
    let url = with_remote(&world);
    world.attempts(&["seq 3 > new"]);
    world.frites(["shard", "open", "--remote", "origin", "--test", "true", "1"]).expect(0);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c1\n");
}

/// The nodes' clones may be cut off, and need not have any file.
#[test]
fn shallow_and_partial_clones_judge_too() {
    let (world, url) = three_sizes("test -e new && test -e README");
    for n in 0..3 {
        world.write("more", format!("{n}\n"));
        world.commit("more");
    }
    world.git(["push", "-q", "origin", "main"]);
    world.git_in(Path::new(&url), ["config", "uploadpack.allowFilter", "true"]);
    open(&world);
    let file = format!("file://{url}");
    for (name, option, shard) in [("s", "--depth=1", "1/2"), ("p", "--filter=blob:none", "2/2")] {
        let clone = world.home().join(name);
        world.git(["clone", "-q", option, "--no-checkout", &file, clone.to_str().unwrap()]);
        world.frites_in(&clone, ["shard", "judge", "--remote", "origin", "1", shard]).expect(0);
    }
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c2\n");
    // From a shallow clone a run can be opened, too.
    let clone = world.home().join("opener");
    world.git(["clone", "-q", "--depth=1", &file, clone.to_str().unwrap()]);
    world
        .frites_in(
            &clone,
            ["spawn", "-q", "--run", "far", "-n", "1", "--", "sh", "-c", "echo > new"],
        )
        .expect(0);
    world.frites_in(&clone, ["shard", "open", "--remote", "origin", "far"]).expect(0);
    on_node(&world, &url, &["judge", "far", "1/1"]).expect(0);
    world.frites_in(&clone, ["shard", "collect", "--remote", "origin", "far"]).expect(0);
}

/// The judges' machines differ in what is installed: a shell's 127 tells nothing by itself.
#[test]
fn command_that_a_machine_lacks_is_no_outcome_and_one_that_a_candidate_breaks_is() {
    let mut world = World::new();
    world.write("check", "tool-of-some\n");
    world.write(".frites.toml", "[oracle]\ntest = 'sh ./check'\n");
    world.commit("checked");
    let url = with_remote(&world);
    let script = "echo new > new; test $FRITES_INDEX != 2 || echo no-such-tool >> check";
    world.frites(["spawn", "-q", "-n", "2", "--", "sh", "-c", script]).expect(0);
    open(&world);
    for share in ["1/3", "2/3", "3/3"] {
        let refused = on_node(&world, &url, &["judge", "1", share]);
        refused.refuses(128, "the test command `sh ./check` does not work here");
    }
    assert_eq!(refs(&world, &url), "@record @terms c1 c2");
    let tool = world.home().join("tools/tool-of-some");
    write(&tool, "#!/bin/sh\n");
    make_executable(&tool);
    let mut path = tool.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(world.env("PATH"));
    world.set_env("PATH", path);
    let out = on_node(&world, &url, &["judge", "1", "2/3"]).expect(0).out();
    assert_eq!(out, "1/c2\ttest: exit 127: command not found\n");
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c1\n");
}

/// What is missing in the base may be what the candidates add.
#[test]
fn base_that_lacks_the_command_has_an_outcome_if_a_candidate_brings_it() {
    let world = World::new();
    let url = with_remote(&world);
    world.attempts(&["echo true > check", "echo x > other"]);
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e check || exit 127", "1"];
    world.frites(open).expect(0);
    let out = on_node(&world, &url, &["judge", "1", "3/3"]).expect(0).out();
    assert_eq!(out, "1/@base\ttest: exit 127: command not found\n");
    let out = on_node(&world, &url, &["judge", "1", "2/3"]).expect(0).out();
    assert_eq!(out, "1/c2\ttest: exit 127: command not found\n");
    on_node(&world, &url, &["judge", "1", "1/3"]).expect(0);
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c1\n");
}

/// Machines that may push nothing write their outcomes to files. Whatever else is in such a file
/// stays there.
#[test]
fn outcomes_travel_in_bundles_and_a_bundle_moves_nothing_else() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    let clone = world.home().join("clone");
    world.git(["clone", "-q", "--depth=1", &format!("file://{url}"), clone.to_str().unwrap()]);
    world.git_in(&clone, ["fetch", "-q", "origin", "refs/frites/1/*:refs/frites/1/*"]);
    let words = ["shard", "judge", "--bundle", "one.bundle", "1", "1/2"];
    let elsewhere = world.home().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, clone.join("one.bundle")).unwrap();
    world.frites_in(&clone, words).refuses(2, "is a symbolic link in your checkout");
    fs::remove_file(clone.join("one.bundle")).unwrap();
    world.frites_in(&clone, words).expect(0);
    let two = world.home().join("two.bundle").into_os_string().into_string().unwrap();
    on_node(&world, &url, &["judge", "--bundle", &two, "1", "2/2"]).expect(0);
    assert_eq!(refs(&world, &url), "@record @terms c1 c2 c3");
    // Repeated, a judge writes the same outcomes again.
    fs::remove_file(clone.join("one.bundle")).unwrap();
    let again = world.frites_in(&clone, words).expect(0).out();
    assert_eq!(again, "1/c1\tpassed\tstored before\n1/c3\tpassed\tstored before\n");
    let one = clone.join("one.bundle").into_os_string().into_string().unwrap();
    let replay = |files: &[&str]| {
        let bundles = files.iter().flat_map(|file| ["--bundle", *file]);
        world.frites(["shard", "collect", "1"].into_iter().chain(bundles))
    };
    replay(&[&one]).expect(3);
    assert!(replay(&[&one, &two]).expect(0).out().contains("\n*  1/c2 "));
    // A forged one: an outcome under another name, and a capture.
    world
        .sh(
            &clone,
            "git update-ref refs/frites/1/@results/c2 refs/frites/1/@results/c3
        git update-ref refs/frites/1/c1 HEAD; git branch planted
        git bundle create -q forged.bundle refs/frites/1/@results/c2 refs/frites/1/c1 planted",
        )
        .expect(0);
    let before = world.git(["for-each-ref", "refs/frites/1/", "refs/heads/"]);
    world.git(["update-ref", "-d", "refs/frites/1/@results/c2"]);
    let forged = clone.join("forged.bundle");
    let named = replay(&[forged.to_str().unwrap()]);
    let words = "1/c2: the outcome of judging it alone is not used: it is of 1/c3";
    assert!(named.stderr.contains(words), "{}", named.stderr);
    let after = world.git(["for-each-ref", "refs/frites/1/", "refs/heads/"]);
    let own = |refs: &str| {
        let lines = refs.lines().filter(|l| !l.contains("@results/c2") && !l.contains("@record"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(own(&after), own(&before));
    replay(&["no.bundle"]).refuses(128, "could not read 'no.bundle'");
    let moved = world.frites(["judge", "--bundle", "x", "1"]).refuses(2, "'--bundle'");
    assert!(moved.stderr.contains("`git frites shard judge --bundle FILE RUN K/N`"), "{moved:?}");
}

#[test]
fn outcome_from_a_bundle_takes_the_place_of_none_that_was_found_here() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    world.frites(["shard", "judge", "1", "1/1"]).expect(0);
    let own = || world.git(["show", "refs/frites/1/@results/c2:outcome.toml"]);
    let before = own();
    let clone = world.home().join("clone");
    world.git(["clone", "-q", &format!("file://{url}"), clone.to_str().unwrap()]);
    let others = "git fetch -q origin 'refs/frites/1/*:refs/frites/1/*'
        git config user.name x; git config user.email x@x";
    world.sh(&clone, others).expect(0);
    let bundle = clone.join("x.bundle").into_os_string().into_string().unwrap();
    let judge_there = |open: &[&str]| {
        let _ = fs::remove_file(&bundle);
        world.frites_in(&clone, ["shard", "open"].iter().chain(open).chain(&["1"])).expect(0);
        world.frites_in(&clone, ["shard", "judge", "--bundle", &bundle, "1", "1/1"])
    };
    let collect = || world.frites(["shard", "collect", "1", "--bundle", &bundle]);
    // On other terms, beside this side's outcomes and after them.
    judge_there(&["--retries", "1"]).expect(0);
    let named = collect().expect(0);
    let words = "1/c2: the outcome from '";
    let why = "' does not take the place of the one here: it was found on other terms: its oracle.retries is 1";
    assert!(named.stderr.contains(words) && named.stderr.contains(why), "{}", named.stderr);
    assert_eq!(own(), before);
    assert!(!collect().expect(0).stderr.contains(words), "it is named once");
    world.sh(&clone, &format!("git fetch -q '{}' '+refs/frites/1/@results/*:refs/frites/1/own/*'
        git update-ref refs/frites/1/@results/c2 $(git commit-tree -p refs/frites/1/own/c2 -m x 'refs/frites/1/@results/c2^{{tree}}')
        git bundle create -q x.bundle refs/frites/1/@results/c2", world.repo.display())).expect(0);
    assert!(collect().expect(0).stderr.contains(why), "even if it follows the one here");
    assert_eq!(own(), before);
    // On the same terms, with another answer.
    let fail = "git show refs/frites/1/own/c2:outcome.toml | sed 's/\"passed\"/\"failed\"\\ncode = 1/' > outcome.toml
        blob=$(git hash-object -w outcome.toml)
        tree=$(printf '100644 blob %s\toutcome.toml\n' $blob | git mktree)
        git update-ref refs/frites/1/@results/c2 $(git commit-tree -p refs/frites/1/own/c2 -m x $tree)
        rm x.bundle; git bundle create -q x.bundle refs/frites/1/@results/c2";
    world.sh(&clone, fail).expect(0);
    let named = collect().expect(0);
    assert!(
        named.stderr.contains("1/c2: it was judged twice, and the outcomes disagree: first passed"),
        "{}",
        named.stderr
    );
    assert_eq!(own(), before);
}

/// The number of rounds of the long proof; FRITES_TEST_ROUNDS=20 makes 160 outcomes.
fn rounds() -> usize {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// Eight judges push at once, round after round: each outcome arrives.
#[test]
fn outcomes_of_eight_judges_at_once_all_arrive() {
    let world = World::new();
    let url = with_remote(&world);
    let scripts: Vec<String> = (1..=8).map(|size| format!("seq {size} > new")).collect();
    world.attempts(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut arrived = 0;
    for _ in 0..rounds() {
        world
            .frites(["shard", "open", "--no-cache", "--remote", "origin", "--test", "true", "1"])
            .expect(0);
        let judges: Vec<_> = (1..=8)
            .map(|k| {
                let shard = format!("{k}/9");
                let words = ["shard", "judge", "--remote", &url, "1", &shard];
                let mut command = world.command(&node(&world), "git-frites", words);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for judge in judges {
            let answer = answer(&judge.wait_with_output().unwrap()).expect(0);
            assert!(answer.out().ends_with("\tpassed\n"), "{}{}", answer.out(), answer.stderr);
        }
        let pending = on_node(&world, &url, &["list", "1"]).expect(0).out();
        assert_eq!(pending, "1/@base\n");
        arrived += 8;
    }
    assert_eq!(arrived, 8 * rounds());
    on_node(&world, &url, &["judge", "1/@base"]).expect(0);
    assert_eq!(replay(&world, &["-q"]).expect(0).out(), "1/c1\n");
}

/// Each of eight workers has its share of many candidates, and nothing is lost.
#[test]
fn outcomes_of_many_candidates_on_eight_workers_all_arrive() {
    let world = World::new();
    let url = with_remote(&world);
    // 64 in the long proof.
    let count = (rounds() * 8).min(64);
    let script = "seq $((200 - FRITES_INDEX)) > new";
    world.spawn(["-n", &count.to_string(), "--", "sh", "-c", script]);
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e new", "1"];
    assert_eq!(world.frites(open).expect(0).out(), format!("{}\n", count + 1));
    let workers: Vec<_> = (1..=8)
        .map(|k| {
            let words = ["shard", "judge", "--remote", &url, "1", &format!("{k}/8")];
            let mut command = world.command(&node(&world), "git-frites", words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for worker in workers {
        answer(&worker.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "");
    let json = replay(&world, &["--json"]).expect(0).json();
    assert_eq!(json["passed"].as_array().unwrap().len(), count);
    assert_eq!(json["recommended"], format!("c{count}"));
}
