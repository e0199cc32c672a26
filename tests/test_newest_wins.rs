//! `apply --merge --strategy newest-file-wins`: each conflicted file, whole, from the side that is newer.
use crate::common::World;

/// The commits of a [`World`] are all from that moment.
const THEN: &str = "2026-01-02T03:04:05Z";

/// What happens to a file on both sides, and what each then has; `None` if it is gone.
struct Case {
    child: &'static str,
    parent: &'static str,
    /// `git ls-tree` of the paths, when the child wins and when the parent does.
    child_has: &'static str,
    parent_has: &'static str,
}

const CASES: [Case; 7] = [
    Case {
        child: "printf 'one\\nCHILD\\n' > text",
        parent: "printf 'one\\nPARENT\\n' > text",
        child_has: "100644 text one,CHILD,",
        parent_has: "100644 text one,PARENT,",
    },
    Case {
        child: "printf 'c\\000\\377' > bin",
        parent: "printf 'p\\000\\377' > bin",
        child_has: "100644 bin c\\0\\xff",
        parent_has: "100644 bin p\\0\\xff",
    },
    Case {
        child: "printf 'CHILD\\n' > both; chmod +x both",
        parent: "printf 'PARENT\\n' > both",
        child_has: "100755 both CHILD,",
        parent_has: "100644 both PARENT,",
    },
    Case { child: "rm text", parent: "echo kept > text", child_has: "", parent_has: "100644 text kept," },
    Case { child: "echo kept > text", parent: "rm text", child_has: "100644 text kept,", parent_has: "" },
    Case {
        child: "rm text; ln -s child text",
        parent: "rm text; ln -s parent text",
        child_has: "120000 text child",
        parent_has: "120000 text parent",
    },
    Case {
        child: "rm text; mkdir text; echo in > text/file",
        parent: "echo PARENT > text",
        child_has: "100644 text/file in,",
        parent_has: "100644 text PARENT,",
    },
];

fn show(world: &World, revision: &str, case: &Case) -> String {
    let path = ["bin", "both", "text"].into_iter().find(|p| case.child.contains(p)).unwrap();
    let list = world.git(["ls-tree", "-r", revision, "--", path]);
    let others = world.git(["ls-tree", "-r", "--name-only", revision]);
    assert!(!others.contains('~'), "nothing is left under a made-up name: {others}");
    let entry = |line: &str| {
        let (meta, path) = line.split_once('\t').unwrap();
        let content = world.run(&world.repo, "git", ["cat-file", "blob", meta.split(' ').nth(2).unwrap()]).expect(0);
        let content: String = content.stdout.escape_ascii().to_string().replace("\\n", ",").replace("\\x00", "\\0");
        format!("{} {path} {content}", meta.split(' ').next().unwrap())
    };
    list.lines().map(entry).collect::<Vec<_>>().join(";")
}

/// A judged child, written at `child`, and a `main` that moved at `parent` (seconds from [`THEN`]).
fn conflicting(case: &Case, child: i64, parent: i64, committed: bool) -> World {
    let mut world = World::new();
    world.write("text", "one\ntwo\n");
    world.write("bin", b"b\0\xff");
    world.commit("more");
    world.attempts(&[case.child]);
    let at = |offset: i64| format!("@{} +0000", 1_767_323_045 + offset);
    let inside = world.worktree("1/c1");
    if committed {
        let dated = format!("GIT_COMMITTER_DATE='{}' git commit -qm attempt", at(child));
        world
            .sh(&inside, &format!("git add -A; {dated}; touch -h -d '2030-01-01' text bin both 2>/dev/null || true"))
            .expect(0);
    } else {
        let touch = format!(
            "for f in text bin both; do if test -e $f || test -L $f; then touch -h -d '{}' $f; fi; done",
            at(child).trim_end_matches(" +0000")
        );
        world.sh(&inside, &touch).expect(0);
        world
            .sh(
                &inside,
                &format!("if test -d text; then touch -d '{}' text/file; fi", at(child).trim_end_matches(" +0000")),
            )
            .expect(0);
    }
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.sh(&world.repo, case.parent).expect(0);
    world.set_env("GIT_COMMITTER_DATE", at(parent));
    world.commit("parent");
    world.set_env("GIT_COMMITTER_DATE", THEN);
    world
}

#[test]
fn the_newer_file_wins_whole_and_a_tie_is_the_childs() {
    for (at, case) in CASES.iter().enumerate() {
        for (child, parent) in [(100, 50), (50, 100), (70, 70)] {
            for committed in [false, true] {
                // A file that is gone has no time of its own: only commits tell.
                if !committed
                    && case.child.starts_with("rm text")
                    && !case.child.contains("ln -s")
                    && !case.child.contains("mkdir")
                {
                    continue;
                }
                let world = conflicting(case, child, parent, committed);
                world.frites(["apply", "--merge"]).refuses(1, "conflicts with main");
                let what = format!("case {at}: child {child}, parent {parent}, committed {committed}");
                let json =
                    world.frites(["apply", "--merge", "--strategy", "newest-file-wins", "--json"]).expect(0).json();
                let side = if child >= parent { "child" } else { "parent" };
                let expected = if child >= parent { case.child_has } else { case.parent_has };
                assert_eq!(show(&world, "HEAD", case), expected, "{what}");
                assert_eq!(world.git(["status", "--porcelain"]), "", "{what}");
                for choice in json["choices"].as_array().unwrap() {
                    assert_eq!(choice["side"], side, "{what}: {json:#}");
                    assert_eq!(choice["parent_time"], 1_767_323_045 + parent, "{what}");
                    assert_eq!(choice["child_time"], 1_767_323_045 + child, "{what}");
                }
                assert!(!json["choices"].as_array().unwrap().is_empty(), "{what}");
                let message = world.git(["log", "-1", "--format=%(trailers:key=Frites-Choice,valueonly)"]);
                let words = if child >= parent { "from what lands (" } else { "from what was there (" };
                assert!(message.lines().any(|l| l.contains(words)), "{what}: {message}");
                let events = world.frites(["log", "--json"]).expect(0).out();
                assert!(events.lines().last().unwrap().contains(&format!(r#""side":"{side}""#)), "{what}: {events}");
                world.assert_clean();
            }
        }
    }
}

#[test]
fn what_does_not_conflict_is_merged_as_ever_and_the_result_is_judged() {
    let world = conflicting(&CASES[0], 100, 50, false);
    world.write("other", "moved\n");
    world.commit("more");
    let answer = world.frites(["apply", "--merge", "--strategy", "newest-file-wins"]).expect(0);
    assert!(answer.stderr.contains("main is not the base: judging the merged tree"), "{}", answer.stderr);
    assert!(answer.stderr.contains("text from what lands (2026-"), "{}", answer.stderr);
    assert_eq!(world.git(["show", "HEAD:other"]), "moved");
    world.assert_clean();
}

#[test]
fn the_times_travel_with_the_capture() {
    let world = conflicting(&CASES[0], 50, 100, false);
    // Neither the worktree nor the state folder is asked.
    world.frites(["clean", "-q"]).expect(0);
    std::fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    world.frites(["apply", "--merge", "--strategy", "newest-file-wins"]).expect(0);
    assert_eq!(show(&world, "HEAD", &CASES[0]), CASES[0].parent_has);
    world.assert_clean();
}
