//! A base that has no build outputs of its own yet starts from those of its nearest ancestor.
use serde_json::Value;

use crate::common::World;
use crate::common::sealed::{sealed, stale_project};
use crate::tool::{MAKE, NAMESPACES, trials};
use crate::traces::shared_lines;

trials! {
    parts_that_did_not_change_are_not_built_again_for_the_next_base: [NAMESPACES, MAKE];
    stale_outputs_of_an_ancestor_change_no_verdict: [NAMESPACES, MAKE];
    the_next_base_shows_its_own_files_younger_than_the_outputs_of_the_last: [NAMESPACES];
    plan_and_doctor_name_the_commit_whose_outputs_are_used: [NAMESPACES, MAKE];
    outputs_of_other_commands_or_of_changed_attributes_are_not_used: [NAMESPACES, MAKE];
}

const TEST: &str = "make -s test";

/// The verdict on one more run with these candidates, each with its change, and the sources that
/// were compiled for it.
fn judged(world: &World, changes: &[&str], options: &[&str]) -> (Value, Vec<String>) {
    let _ = std::fs::remove_file(world.home().join("shared/compiled"));
    world.attempts(changes);
    let answer = world.frites([&["judge", "--json", "--test", TEST], options].concat());
    assert!([0, 1].contains(&answer.code), "{}", answer.stderr);
    (answer.json(), shared_lines(world, "compiled"))
}

fn parts_that_did_not_change_are_not_built_again_for_the_next_base() {
    let world = stale_project();
    let (_, compiled) = judged(&world, &["echo more >> a.src"], &[]);
    assert_eq!(compiled, ["a.obj", "a.obj", "a.obj", "b.obj", "b.obj"]);
    for source in ["a.src", "c.src"] {
        world.write(source, "of the next base\n");
        world.commit("another base");
    }
    // The base compiles what two commits changed, the candidate its own source, and its
    // confirmation all.
    let (verdict, compiled) = judged(&world, &["echo more > d.src"], &[]);
    assert_eq!(compiled, ["a.obj", "a.obj", "b.obj", "c.obj", "c.obj", "d.obj", "d.obj"]);
    assert_eq!(verdict["baseline"]["results"][0]["warm"], true, "{verdict:#}");
    // By now it has outputs of its own.
    let (_, compiled) = judged(&world, &["echo other > d.src"], &["--no-cache"]);
    assert_eq!(compiled, ["a.obj", "b.obj", "c.obj", "d.obj", "d.obj"]);
    let (_, compiled) = judged(&world, &["echo third > d.src"], &["--cold", "--no-cache"]);
    assert_eq!(compiled.len(), 4 + 3, "{compiled:?}");
    world.assert_clean();
}

/// The next base lacks a source that is needed, and its object is left.
fn stale_outputs_of_an_ancestor_change_no_verdict() {
    let wrong = "echo more >> a.src";
    let right = "seq 9 > c.src; echo needed >> c.src";
    for changes in [&[wrong, right][..], &[wrong]] {
        let world = stale_project();
        judged(&world, &[wrong], &[]);
        world.git(["rm", "-q", "b.src"]);
        world.commit("a base that is broken");
        let (verdict, _) = judged(&world, changes, &[]);
        let (cold, _) = judged(&world, changes, &["--cold", "--no-cache"]);
        for field in ["recommended", "decision", "passed", "failed"] {
            assert_eq!(verdict[field], cold[field], "{verdict:#}");
        }
        let stale = verdict["candidates"][0]["stale"].as_str().unwrap_or_default();
        assert!(stale.starts_with("stale build output: "), "{verdict:#}");
        let reason = verdict["rationale"].as_str().unwrap_or_default();
        let words = "with build outputs of an earlier judging the base passes, too: this alone shows at most that nothing broke";
        assert_eq!(reason.contains(words), changes.len() > 1, "{reason}");
        // What the base does is compared with a candidate where none passes.
        let base = &verdict["baseline"]["results"][0];
        let expected = if changes.len() > 1 { "passed" } else { "failed" };
        assert_eq!(base["outcome"], expected, "{verdict:#}");
        assert_eq!(cold["baseline"]["results"][0]["outcome"], "failed");
        world.assert_clean();
    }
}

fn the_next_base_shows_its_own_files_younger_than_the_outputs_of_the_last() {
    let world = sealed();
    world.write(".gitignore", "*.out\n");
    for path in ["kept/source", "gone/source", "made/source", "changed"] {
        world.write(path, "of the first base\n");
    }
    world.commit("the first base");
    let build = "for d in kept gone made changed; do test -e $d || continue; \
                 test -e ${d%/}/x.out || echo $d $(git rev-parse HEAD) >> $d/x.out; done";
    let build = build.replace(" changed;", ";");
    let look = format!(
        "{build}; {{ find . -name .git -prune -o -type f -print | sort; cat kept/x.out made/x.out changed; \
         test changed -nt kept/x.out && echo younger; test kept/source -ot kept/x.out && echo older; }} \
         > ~/shared/seen.$(git log -1 --format=%s | tr -c a-z -)"
    );
    world.attempts(&["echo changed > README"]);
    world.frites(["judge", "--test", &look]).expect(0);
    let first = world.git(["rev-parse", "HEAD"]);
    world.git(["rm", "-qr", "gone", "made"]);
    world.write("made/x.out", "tracked by now\n");
    world.git(["add", "-f", "made/x.out"]);
    world.write("changed", "of the next base\n");
    world.commit("the next base");
    world.attempts(&["echo changed > README"]);
    world.frites(["judge", "--test", &look]).expect(0);
    let seen = shared_lines(&world, "seen.the-next-base-");
    let mut expected: Vec<String> = [
        "./.gitignore",
        "./README",
        "./changed",
        "./kept/source",
        "./kept/x.out",
        "./made/x.out",
        "./src/lib.txt",
        "tracked by now",
        "of the next base",
        "younger",
        "older",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.push(format!("kept {}", first.trim()));
    expected.sort();
    assert_eq!(seen, expected);
    world.assert_clean();
}

fn outputs_of_other_commands_or_of_changed_attributes_are_not_used() {
    let world = stale_project();
    judged(&world, &["echo more >> a.src"], &[]);
    world.write("c.src", "third\n");
    world.commit("another base");
    let (_, compiled) = judged(&world, &["echo more > d.src"], &["--build", "true"]);
    assert_eq!(compiled.iter().filter(|o| *o == "b.obj").count(), 2, "{compiled:?}");
    world.write(".gitattributes", "*.src -text\n");
    world.commit("attributes");
    let (_, compiled) = judged(&world, &["echo more > d.src"], &[]);
    assert_eq!(compiled.iter().filter(|o| *o == "b.obj").count(), 2, "{compiled:?}");
    world.assert_clean();
}

fn plan_and_doctor_name_the_commit_whose_outputs_are_used() {
    let world = stale_project();
    world.git(["config", "frites.oracle.test", TEST]);
    world.attempts(&["echo more >> a.src"]);
    world.frites(["judge"]).expect(0);
    let first = world.git(["rev-parse", "HEAD"]);
    let first = first.trim();
    let seen = |options: &[&str]| {
        let words = [&["judge", "-n", "--base", "HEAD", "--json"], options].concat();
        let known = world.frites(words).expect(0).json()["known"].clone();
        (known["outputs"].clone(), known["outputs_of"].clone())
    };
    let doctor =
        || world.frites(["doctor", "--json"]).json()["repository"]["layers"]["outputs_of"].clone();
    assert_eq!((seen(&[]), doctor()), ((true.into(), first.into()), first.into()));
    world.write("c.src", "third\n");
    let second = world.commit("another base");
    assert_eq!((seen(&[]), doctor()), ((false.into(), first.into()), first.into()));
    let words = format!("the base starts from the build outputs of {}", &first[..10]);
    assert!(world.frites(["judge", "-n", "--base", "HEAD"]).expect(0).out().contains(&words));
    assert!(world.frites(["doctor"]).out().contains(&words));
    assert_eq!(seen(&["--cold"]).1, Value::Null, "nothing is built with outputs");
    world.attempts(&["echo more >> a.src"]);
    world.frites(["judge"]).expect(0);
    assert_eq!(seen(&[]), (true.into(), second.trim().into()), "its own by now");
    world.assert_clean();
}
