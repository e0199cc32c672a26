//! What machines that judge in parts may find: records of another version of git-frites, and
//! mirrors of their own from before.
use std::fs;
use std::path::Path;

use crate::common::spread::{node, on_node, open, refs, replay, three_sizes, with_remote};
use crate::common::{World, make_executable, write};

/// Changes one file of a record at the remote by a script for sed.
fn edit(world: &World, url: &str, name: &str, file: &str, script: &str) {
    let line = format!(
        "set -e; ref=refs/frites/1/{name}; blob=$(git show $ref:{file} | sed '{script}' | git hash-object -w --stdin)
        git read-tree $ref; git update-index --add --cacheinfo 100644,$blob,{file}
        git update-ref $ref $(git log -1 --format=%B $ref | git commit-tree -p $ref $(git write-tree))"
    );
    world.sh(Path::new(url), &line).expect(0);
}

#[test]
fn what_another_version_of_git_frites_stored_is_used_if_it_can_be_read_and_else_named() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    // Another program, the same records.
    edit(&world, &url, "@results/c2", "outcome.toml", "s/^git-frites = .*/git-frites = \"0.0.1\"/");
    let named = replay(&world, &["-q"]).expect(0);
    assert_eq!(named.out(), "1/c2\n");
    assert!(named.stderr.contains("the machines that judged run 1 differ: "), "{}", named.stderr);
    assert!(named.stderr.contains("git-frites 0.0.1: c2 ("), "{}", named.stderr);
    // Records that have more in them count, and records that are different do not.
    edit(&world, &url, "@results/c1", "outcome.toml", "s/^version = .*/version = 2\\nmore = true/");
    edit(
        &world,
        &url,
        "@results/c3",
        "outcome.toml",
        "s/^version = .*/version = 2/; s/^round = .*/round = []/",
    );
    assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "1/c3\n");
    let named = replay(&world, &["-q"]).expect(0);
    assert_eq!(named.out(), "1/c2\n");
    let words = "written by a newer git-frites";
    assert!(
        named.stderr.contains("1/c3: its outcome is not used: outcome.toml in "),
        "{}",
        named.stderr
    );
    assert!(named.stderr.contains(words), "{}", named.stderr);
    // Nor is it replaced by what an older program finds.
    on_node(&world, &url, &["judge", "1/c3"]).refuses(128, words);
    // On terms that it cannot read, nobody judges.
    for (script, what) in
        [("s/^version = .*/version = 2/", "terms"), ("s/^round = .*/round = []/", "terms.toml")]
    {
        edit(&world, &url, "@terms", "terms.toml", script);
        for command in [&["list", "1"][..], &["judge", "1", "1/1"]] {
            let refused = on_node(&world, &url, command);
            assert!(refused.stderr.contains(what) && refused.stderr.contains("update git-frites"));
            refused.refuses(128, words);
        }
    }
}

#[test]
fn outcome_with_more_results_than_its_terms_have_commands_is_named_and_not_used() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
    let result = "stage = \"test\"\\nseconds = 1.0\\noutcome = \"passed\"\\n";
    let again = format!("$a [[candidate.results]]\\n{result}");
    let tries = "$a [[candidate.results.earlier]]\\nseconds = 1.0\\noutcome = \"timed-out\"\\n";
    let beside = format!("$a [candidate.base-tests]\\n[[candidate.base-tests.results]]\\n{result}");
    for (script, what) in
        [(again.as_str(), "results"), (tries, "tries"), (beside.as_str(), "results")]
    {
        edit(&world, &url, "@results/c2", "outcome.toml", script);
        let named = on_node(&world, &url, &["list", "1"]).expect(0);
        assert_eq!(named.out(), "1/c2\n", "{script}");
        let words = "1/c2: its outcome is not used: outcome.toml in ";
        assert!(named.stderr.contains(words), "{}", named.stderr);
        let why = format!("is damaged: it has more {what} than its terms allow");
        assert!(named.stderr.contains(&why), "{}", named.stderr);
        // Judged again, it takes the place of the damaged one.
        on_node(&world, &url, &["judge", "1", "1/1"]).expect(0);
        assert_eq!(on_node(&world, &url, &["list", "1"]).expect(0).out(), "");
    }
}

#[test]
fn run_without_a_usable_candidate_is_not_opened() {
    let world = World::new();
    let url = with_remote(&world);
    world.frites(["spawn", "-q", "-n", "1", "--", "sh", "-c", "exit 3"]).expect(4);
    let open = ["shard", "open", "--remote", "origin", "--test", "true", "1"];
    world.frites(open).expect(4);
    assert_eq!(refs(&world, &url), "");
    assert_eq!(world.git(["for-each-ref", "refs/frites/1/@terms"]), "");
}

#[test]
fn mirrors_that_nobody_uses_go_and_an_attempt_that_is_stored_nowhere_else_stays() {
    let (world, url) = three_sizes("test -e new");
    open(&world);
    on_node(&world, &url, &["list", "1"]).expect(0);
    let later =
        ["shard", "open", "--attempts", "--remote", "origin", "--run", "later", "--", "sh", "-c"];
    world.frites(later.into_iter().chain(["echo >> \"$HOME/ran\"; echo > new"])).expect(0);
    let hook = Path::new(&url).join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\nexit 1\n");
    make_executable(&hook);
    let attempt = ["shard", "run", "later/c1", "--remote", &url];
    world.frites_in(&node(&world), attempt).refuses(128, "did not take the capture");
    let mirrors = || {
        let script = "cd \"$HOME/cache/git-frites-remotes\"; ls -d */*.git | sed 's/^[0-9a-f]*//'";
        world.sh(&world.repo, script).expect(0).out()
    };
    assert_eq!(mirrors(), "-attempts/1.git\n/1.git\n");
    world.frites(["clean", "--cache", "-n"]).expect(0);
    assert_eq!(mirrors(), "-attempts/1.git\n/1.git\n");
    world.frites(["clean", "--cache"]).expect(0);
    assert_eq!(mirrors(), "-attempts/1.git\n");
    // Nobody deletes it because it is damaged.
    let git = "cd \"$HOME\"/cache/git-frites-remotes/*-attempts/1.git";
    world.sh(&world.repo, &format!("{git}; mv HEAD saved")).expect(0);
    world.frites_in(&node(&world), attempt).refuses(128, "could not open the mirror");
    world.frites(["clean", "--cache"]).expect(0);
    world.sh(&world.repo, &format!("{git}; mv saved HEAD")).expect(0);
    fs::remove_file(&hook).unwrap();
    world.frites_in(&node(&world), attempt).expect(0);
    assert_eq!(fs::read_to_string(world.home().join("ran")).unwrap(), "\n");
    // Whoever opens another one removes those that are old.
    let age = "touch -d '31 days ago' \"$HOME\"/cache/git-frites-remotes/*/1.lock";
    world.sh(&world.repo, age).expect(0);
    on_node(&world, &url, &["list", "1"]).expect(0);
    assert_eq!(mirrors(), "/1.git\n");
}
