//! `apply --merge --strategy newest-file-wins`: each conflicted file, whole, from the side that is
//! newer.
use crate::common::World;

/// The commits of a [`World`] are all from that moment.
const THEN: &str = "2026-01-02T03:04:05Z";

/// A change of a file on both sides, with its content there; `None` if the file is gone.
struct Case {
    path: &'static str,
    child: &'static str,
    parent: &'static str,
    /// `git ls-tree` of the path, when the child wins and when the parent does.
    child_has: &'static str,
    parent_has: &'static str,
}

/// All in one repository: each has a file of its own.
const CASES: [Case; 6] = [
    Case {
        path: "text",
        child: "printf 'one\\nCHILD\\n' > text",
        parent: "printf 'one\\nPARENT\\n' > text",
        child_has: "100644 text one,CHILD,",
        parent_has: "100644 text one,PARENT,",
    },
    Case {
        path: "bin",
        child: "printf 'c\\000\\377' > bin",
        parent: "printf 'p\\000\\377' > bin",
        child_has: "100644 bin c\\0\\xff",
        parent_has: "100644 bin p\\0\\xff",
    },
    Case {
        path: "both",
        child: "printf 'CHILD\\n' > both; chmod +x both",
        parent: "printf 'PARENT\\n' > both",
        child_has: "100755 both CHILD,",
        parent_has: "100644 both PARENT,",
    },
    Case {
        path: "link",
        child: "rm link; ln -s child link",
        parent: "rm link; ln -s parent link",
        child_has: "120000 link child",
        parent_has: "120000 link parent",
    },
    Case {
        path: "removed",
        child: "rm removed",
        parent: "echo kept > removed",
        child_has: "",
        parent_has: "100644 removed kept,",
    },
    Case {
        path: "edited",
        child: "echo kept > edited",
        parent: "rm edited",
        child_has: "100644 edited kept,",
        parent_has: "",
    },
];

/// The cases in which both sides have the file. A removed file has no time, so only commits can
/// decide there.
const WITH_FILES: &[Case] = CASES.split_at(4).0;

fn show(world: &World, revision: &str, case: &Case) -> String {
    let list = world.git(["ls-tree", "-r", revision, "--", case.path]);
    let entry = |line: &str| {
        let (meta, path) = line.split_once('\t').unwrap();
        let content = world
            .run(&world.repo, "git", ["cat-file", "blob", meta.split(' ').nth(2).unwrap()])
            .expect(0);
        let content: String =
            content.stdout.escape_ascii().to_string().replace("\\n", ",").replace("\\x00", "\\0");
        format!("{} {path} {content}", meta.split(' ').next().unwrap())
    };
    list.lines().map(entry).collect::<Vec<_>>().join(";")
}

/// A judged child, written at `child`, and a `main` that moved at `parent` (seconds from [`THEN`]).
fn conflicting(cases: &[Case], child: i64, parent: i64, committed: bool) -> World {
    let mut world = World::new();
    for case in cases.iter().filter(|case| !matches!(case.path, "bin" | "both")) {
        world.write(case.path, "one\ntwo\n");
    }
    world.write("bin", b"b\0\xff");
    world.commit("more");
    let script = |side: fn(&Case) -> &str| cases.iter().map(side).collect::<Vec<_>>().join("\n");
    world.attempts(&[&script(|case| case.child)]);
    let at = |offset: i64| format!("@{} +0000", 1_767_323_045 + offset);
    let inside = world.worktree("1/c1");
    let touch = |date: &str| {
        format!("find . -mindepth 1 -name .git -prune -o -exec touch -h -d '{date}' {{}} +")
    };
    let script_of_times = if committed {
        let dated = format!("GIT_COMMITTER_DATE='{}' git commit -qm attempt", at(child));
        format!("git add -A; {dated}; {}", touch("2030-01-01"))
    } else {
        touch(at(child).trim_end_matches(" +0000"))
    };
    world.sh(&inside, &script_of_times).expect(0);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.sh(&world.repo, &script(|case| case.parent)).expect(0);
    world.set_env("GIT_COMMITTER_DATE", at(parent));
    world.commit("parent");
    world.set_env("GIT_COMMITTER_DATE", THEN);
    world
}

#[test]
fn newer_file_wins_whole_and_ties_go_to_the_child() {
    for (child, parent) in [(100, 50), (50, 100), (70, 70)] {
        for (cases, committed) in [(WITH_FILES, false), (&CASES, true)] {
            let world = conflicting(cases, child, parent, committed);
            let refused = world.frites(["apply", "--merge"]).refuses(1, "conflicts with main");
            assert!(refused.stderr.contains("which discards the other side's version"));
            let what = format!("child {child}, parent {parent}, committed {committed}");
            let json = world
                .frites(["apply", "--merge", "--strategy", "newest-file-wins", "--json"])
                .expect(0)
                .json();
            let side = if child >= parent { "child" } else { "parent" };
            for case in cases {
                let expected = if child >= parent { case.child_has } else { case.parent_has };
                assert_eq!(show(&world, "HEAD", case), expected, "{}: {what}", case.path);
                let of_it = |path: &str| path.split('/').next() == Some(case.path);
                let choices = json["choices"].as_array().unwrap();
                assert!(
                    choices.iter().any(|c| of_it(c["path"].as_str().unwrap())),
                    "{}: {what}: {json:#}",
                    case.path
                );
            }
            let others = world.git(["ls-tree", "-r", "--name-only", "HEAD"]);
            assert!(!others.contains('~'), "nothing is left under a made-up name: {others}");
            assert_eq!(world.git(["status", "--porcelain"]), "", "{what}");
            for choice in json["choices"].as_array().unwrap() {
                assert_eq!(choice["side"], side, "{what}: {json:#}");
                assert_eq!(choice["parent_time"], 1_767_323_045 + parent, "{what}: {choice}");
                assert_eq!(choice["child_time"], 1_767_323_045 + child, "{what}: {choice}");
            }
            let message =
                world.git(["log", "-1", "--format=%(trailers:key=Frites-Choice,valueonly)"]);
            let words = if child >= parent { "from what lands (" } else { "from what was there (" };
            let told = message.lines().filter(|l| l.contains(words)).count();
            assert_eq!(told, json["choices"].as_array().unwrap().len(), "{what}: {message}");
            let events = world.frites(["log", "--json"]).expect(0).out();
            assert!(
                events.lines().last().unwrap().contains(&format!(r#""side":"{side}""#)),
                "{what}: {events}"
            );
            world.assert_clean();
        }
    }
}

#[test]
fn files_without_conflict_are_merged_and_the_result_is_judged() {
    let world = conflicting(&CASES[..1], 100, 50, false);
    world.write("other", "moved\n");
    world.commit("more");
    let answer = world.frites(["apply", "--merge", "--strategy", "newest-file-wins"]).expect(0);
    assert!(
        answer.stderr.contains("main has moved since the run started: re-running the checks"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("text from what lands (2026-"), "{}", answer.stderr);
    assert_eq!(world.git(["show", "HEAD:other"]), "moved");
    world.assert_clean();
}

#[test]
fn newer_test_of_an_attempt_does_not_replace_one_that_head_got_meanwhile() {
    let world = World::new();
    world.write("app", "bad\n");
    world.write("tests/check.sh", "test -s app\n");
    world.commit("base");
    let newer = "touch -d 2030-01-01 tests/check.sh";
    world.attempts(&[&format!("echo worse > app; echo 'test -e app' > tests/check.sh; {newer}")]);
    world.frites(["judge", "--test", "sh tests/check.sh"]).expect(0);
    world.write("tests/check.sh", "grep -q good app\n");
    world.commit("a stronger test");
    world
        .frites(["apply", "--merge", "--strategy", "newest-file-wins"])
        .refuses(1, "with those of main it failed test");
}

#[test]
fn a_file_is_not_newer_than_the_first_capture_of_its_content() {
    let far = "2098-01-01T00:00:00Z";
    let touch = "touch -d 2099-01-01 README";
    let commit = "GIT_COMMITTER_DATE=2099-01-01T00:00:00Z git commit -qam attempt";
    // Nothing, or a second capture in which only another file is new.
    for (how, later) in [(touch, ""), (commit, ""), (touch, "echo more > more; touch README")] {
        let mut world = World::new();
        world.attempts(&[&format!("echo CHILD > README; {how}")]);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        let seen: i64 =
            world.git(["log", "-1", "--format=%ct", "refs/frites/1/c1"]).parse().unwrap();
        world.sh(&world.worktree("1/c1"), later).expect(0);
        world.write("README", "PARENT\n");
        world.set_env("GIT_COMMITTER_DATE", far);
        world.commit("parent");
        world.set_env("GIT_COMMITTER_DATE", THEN);
        world.frites(["judge", "-q", "--test", "true"]).expect(0);
        let json = world
            .frites(["apply", "--merge", "--strategy", "newest-file-wins", "--json"])
            .expect(0)
            .json();
        assert_eq!(world.git(["show", "main:README"]), "PARENT", "{how}, {later}: {json:#}");
        let choice = &json["choices"][0];
        assert_eq!((&choice["side"], &choice["child_time"]), (&"parent".into(), &seen.into()));
        world.assert_clean();
    }
}

#[test]
fn mtimes_are_kept_in_the_capture() {
    let world = conflicting(&CASES[..1], 50, 100, false);
    // Neither the worktree nor the state directory is asked.
    world.frites(["clean", "-q"]).expect(0);
    std::fs::remove_dir_all(world.repo.join(".frites")).unwrap();
    world.frites(["apply", "--merge", "--strategy", "newest-file-wins"]).expect(0);
    assert_eq!(show(&world, "HEAD", &CASES[0]), CASES[0].parent_has);
    world.assert_clean();
}

#[test]
fn capture_message_holds_no_file_times() {
    let world = conflicting(&CASES[..1], 50, 100, false);
    let message = world.git(["log", "-1", "--format=%B", "refs/frites/1/c1"]);
    assert!(!message.contains("mtime"), "{message}");
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    assert_eq!(world.git(["for-each-ref", "refs/frites"]), "");
    world.assert_clean();
}

/// A judged child and a `main` that each did something with `old` or `dir`, written at these times
/// (seconds from [`THEN`]).
fn both_changed(child: (&str, i64), parent: (&str, i64)) -> World {
    let mut world = World::new();
    let lines: String = (1..20).map(|n| format!("line {n}\n")).collect();
    world.write("old", &lines);
    world.write("dir/1", &lines);
    world.write("dir/2", lines.replace("line", "row"));
    world.commit("more");
    world.attempts(&[child.0]);
    let at = |offset: i64| 1_767_323_045 + offset;
    let touch = format!("find . -name .git -prune -o -exec touch -d @{} {{}} +", at(child.1));
    world.sh(&world.worktree("1/c1"), &touch).expect(0);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.sh(&world.repo, parent.0).expect(0);
    world.set_env("GIT_COMMITTER_DATE", format!("@{} +0000", at(parent.1)));
    world.commit("parent");
    world.set_env("GIT_COMMITTER_DATE", THEN);
    world
}

/// Merges, and gives the only choice of the merge.
fn merge_of(child: (&str, i64), parent: (&str, i64)) -> (World, serde_json::Value) {
    let world = both_changed(child, parent);
    let merge = ["apply", "--merge", "--strategy", "newest-file-wins", "--json"];
    let json = world.frites(merge).expect(0).json();
    let [choice] = json["choices"].as_array().unwrap().as_slice() else { panic!("{json:#}") };
    assert_eq!(choice["child_time"], 1_767_323_045 + child.1, "{json:#}");
    assert_eq!(choice["parent_time"], 1_767_323_045 + parent.1, "{json:#}");
    (world, choice.clone())
}

#[test]
fn conflict_about_more_than_one_path_is_refused_and_changes_nothing() {
    let edit = |who: &str| format!("git mv old {who} && sed -i 's/line 9$/{who}/' {who}");
    let (one, other) = (edit("one"), edit("other"));
    let (move_directory, add) = ("git mv dir moved", "echo new > dir/new");
    let (replace, file) =
        ("git rm -rq dir && echo file > dir", "rm old; mkdir old; echo in > old/in");
    let edit_old = "sed -i 's/line 9$/PARENT/' old";
    let renamed = "git mv old new && sed -i 's/line 9$/CHILD/' new";
    for (child, parent) in [
        (one.as_str(), other.as_str()),
        (move_directory, add),
        (add, move_directory),
        (replace, add),
        (add, replace),
        (file, edit_old),
        (renamed, "git rm -q old"),
    ] {
        let world = both_changed((child, -50), (parent, -100));
        let head = world.git(["rev-parse", "HEAD"]);
        let merge = ["apply", "--merge", "--strategy", "newest-file-wins"];
        let refused = world.frites(merge).refuses(1, "conflicts with main");
        assert!(refused.stderr.contains("takes no side where both sides renamed a file"));
        assert!(refused.stderr.contains("apply --conflicts 1/c1"), "{}", refused.stderr);
        assert_eq!(world.git(["rev-parse", "HEAD"]), head);
        world.assert_clean();
    }
}

#[test]
fn time_of_a_renamed_file_is_that_of_its_name_on_each_side() {
    let edit = |who: &str, file: &str| format!("sed -i 's/line 9$/{who}/' {file}");
    let rename = |who: &str| format!("git mv old new && {}", edit(who, "new"));
    for (child, parent) in [(-100, -50), (-50, -100)] {
        let winner = if child > parent { "CHILD" } else { "PARENT" };
        // One side renames the file, and both edit it.
        let (world, choice) = merge_of((&rename("CHILD"), child), (&edit("PARENT", "old"), parent));
        assert_eq!(world.git(["ls-tree", "--name-only", "HEAD"]), "README\ndir\nnew\nsrc");
        assert!(world.git(["show", "HEAD:new"]).contains(winner), "{choice:#}");
        assert_eq!((&choice["path"], &choice["parent_path"]), (&"new".into(), &"old".into()));
        assert_eq!(choice.get("child_path"), None, "{choice:#}");
        let (world, choice) = merge_of((&edit("CHILD", "old"), child), (&rename("PARENT"), parent));
        assert_eq!(world.git(["ls-tree", "--name-only", "HEAD"]), "README\ndir\nnew\nsrc");
        assert!(world.git(["show", "HEAD:new"]).contains(winner), "{choice:#}");
        assert_eq!((&choice["path"], &choice["child_path"]), (&"new".into(), &"old".into()));
        let message = world.git(["log", "-1", "--format=%(trailers:key=Frites-Choice,valueonly)"]);
        assert_eq!(message.contains("the other as old "), parent > child, "{message}");
        world.assert_clean();
    }
}

#[test]
fn strategy_and_ties_are_configured_and_told() {
    let (merge, none) =
        (["apply", "--merge", "--json"], ["apply", "--merge", "--strategy", "none"]);
    for (tie, child, parent, side, version) in [
        ("child", 70, 70, "child", "CHILD"),
        ("parent", 70, 70, "parent", "PARENT"),
        ("parent", 80, 70, "child", "CHILD"),
    ] {
        let world = conflicting(&CASES[..1], child, parent, true);
        world.frites(merge).refuses(1, "1/c1 conflicts with main in text (content)");
        world.write(".git/info/exclude", "/.frites.toml\n");
        world.write(
            ".frites.toml",
            format!("[merge]\nstrategy = 'newest-file-wins'\ntie = '{tie}'\n"),
        );
        world.frites(none).refuses(1, "1/c1 conflicts with main in text (content)");
        let json = world.frites(merge).expect(0).json();
        assert_eq!(world.git(["show", "main:text"]), format!("one\n{version}"), "{json:#}");
        let choice = &json["choices"][0];
        assert_eq!((&choice["side"], &choice["tie"]), (&side.into(), &(child == parent).into()));
        assert_eq!(json["strategy"], "newest-file-wins");
        assert!(json["resolution_seconds"].as_f64().is_some(), "{json:#}");
        let events = world.events();
        let failed: Vec<_> = events.iter().filter(|e| e["event"] == "merge-failed").collect();
        assert_eq!(failed.len(), 2, "{events:#?}");
        assert_eq!((&failed[0]["candidate"], &failed[0]["branch"]), (&"c1".into(), &"main".into()));
        assert!(failed[0]["reason"].as_str().unwrap().contains("conflicts with main in text"));
        let merged = events.iter().find(|event| event["event"] == "merged").unwrap();
        for field in ["choices", "strategy", "resolution_seconds"] {
            assert_eq!(merged[field], json[field]);
        }
        world.assert_clean();
    }
    // Without a conflict there is nothing to resolve.
    let world = World::new();
    world.judged("true", &["echo x > x"]);
    let json = world.frites(["apply", "--merge", "--json", "--strategy", "newest-file-wins"]);
    let json = json.expect(0).json();
    assert!(json["strategy"].is_null() && json["resolution_seconds"].is_null(), "{json:#}");
}

#[test]
fn run_says_which_side_each_file_came_from() {
    let world = World::new();
    world.git(["config", "frites.merge.strategy", "newest-file-wins"]);
    let script = format!(
        "echo child > README; cd {}; echo parent > README; git commit -qam parent",
        world.repo.display()
    );
    let words = ["run", "--merge", "--test", "true", "-n", "1", "--", "sh", "-c", &script];
    let said = world.frites(words).expect(0).stderr;
    assert!(said.contains("README from what lands ("), "{said}");
}
