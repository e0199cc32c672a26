//! Capture: the worktree's files are what lands, whatever the attempt did with git, and nothing of
//! it is lost.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::common::{Answer, World, make_executable};

/// An attempt: the world, the worktree, and the commits that its script printed.
struct Attempt {
    world: World,
    dir: PathBuf,
    commits: Vec<String>,
}

/// A base with a bit of everything, one candidate, and a script run in its worktree. The script
/// prints the commits that it made.
fn attempt(script: &str) -> Attempt {
    let world = World::new();
    world.write(".gitignore", "*.log\n");
    world.write("dist/app.js", "built\n");
    world.write("dir/a", "a\n");
    world.write("dir/b", "b\n");
    world.write("run.sh", "#!/bin/sh\n");
    make_executable(&world.repo.join("run.sh"));
    std::os::unix::fs::symlink("README", world.repo.join("link")).unwrap();
    world.write("blank.txt", "first\n\n\n\n");
    world.write("no-newline", "end");
    world.write("crlf.txt", "one\r\ntwo\r\n");
    world.write("numbers", "1\n2\n3\n");
    world.commit("more");
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let commits = world.sh(&dir, script).expect(0).out().lines().map(str::to_owned).collect();
    Attempt { world, dir, commits }
}

impl Attempt {
    /// Asserts what holds for every attempt: the landed tree is the captured one, the landed files
    /// are the worktree's byte for byte (but for those below `left_out`), the patch rebuilds the
    /// tree from the base, the attempt's commits are ancestors of the capture, and the user's index
    /// was not looked at until the landing. Gives what the capture said on standard error.
    #[track_caller]
    fn lands(&self, left_out: &[&str]) -> String {
        let world = &self.world;
        let mut wanted = listing(&self.dir);
        wanted.retain(|path, _| {
            !left_out
                .iter()
                .any(|out| Path::new(std::ffi::OsStr::from_bytes(path)).starts_with(out))
        });
        let index = fs::read(world.repo.join(".git/index")).unwrap();
        let diff = world.frites(["diff", "1/c1"]).expect(0);
        assert_eq!(
            fs::read(world.repo.join(".git/index")).unwrap(),
            index,
            "the user's index was written"
        );

        let captured = world.tree("refs/frites/1/c1");
        for commit in &self.commits {
            world.git(["merge-base", "--is-ancestor", commit, "refs/frites/1/c1"]);
        }
        self.patch_gives(&diff.stdout, &captured);
        let kept = fs::read(world.repo.join(".frites/runs/1/c1/candidate.diff")).unwrap();
        assert_eq!(kept, diff.stdout, "candidate.diff is another patch");

        let applied = world.frites(["apply", "--allow-unverified", "1/c1"]).expect(0);
        assert_eq!(applied.out(), "frites/apply/1\n");
        assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/frites/apply/1");
        assert_eq!(world.git(["write-tree"]), captured);
        assert_eq!(listing(&world.repo), wanted);
        world.git(["diff", "--quiet"]);
        if self.dir.join(".git").exists() {
            world.assert_clean();
        }
        diff.left_out()
    }

    /// Applies a patch to the base's index with plain git.
    #[track_caller]
    fn patch_gives(&self, patch: &[u8], tree: &str) {
        let (file, index) = (self.world.home().join("patch"), self.world.home().join("index"));
        fs::write(&file, patch).unwrap();
        let script = format!(
            "export GIT_INDEX_FILE={}; git read-tree main; git apply --cached {}; git write-tree",
            index.display(),
            file.display()
        );
        assert_eq!(self.world.sh(&self.world.repo, &script).expect(0).out().trim(), tree);
    }

    /// `diff --json`, its one comparison.
    #[track_caller]
    fn numbers(&self) -> serde_json::Value {
        self.world.frites(["diff", "--json", "1/c1"]).expect(0).json()["diffs"][0].clone()
    }

    /// Asserts that `clean` keeps the worktree because of `path`, and removes it with `--discard`.
    #[track_caller]
    fn clean_refuses(&self, path: &str) {
        let kept = listing(&self.dir);
        self.world.frites(["clean", "1/c1"]).refuses(1, path);
        assert_eq!(listing(&self.dir), kept);
        self.world.frites(["clean", "--discard", "1/c1"]).expect(0);
        assert!(!self.dir.exists());
        self.world.assert_clean();
    }
}

/// Every path below a directory, directories aside: its kind (and executable bit) and its bytes.
/// Without git's and our own.
fn listing(dir: &Path) -> BTreeMap<Vec<u8>, (&'static str, Vec<u8>)> {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<Vec<u8>, (&'static str, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            let below = entry.strip_prefix(root).unwrap();
            let meta = fs::symlink_metadata(&entry).unwrap();
            let what = match meta.file_type() {
                _ if below == Path::new(".git") || below == Path::new(".frites") => continue,
                t if t.is_dir() => {
                    walk(root, &entry, found);
                    continue;
                }
                t if t.is_symlink() => {
                    ("link", fs::read_link(&entry).unwrap().as_os_str().as_bytes().to_vec())
                }
                t if t.is_fifo() => ("fifo", Vec::new()),
                _ if meta.permissions().mode() & 0o100 != 0 => {
                    ("executable", fs::read(&entry).unwrap())
                }
                _ => ("file", fs::read(&entry).unwrap()),
            };
            found.insert(below.as_os_str().as_bytes().to_vec(), what);
        }
    }
    let mut found = BTreeMap::new();
    walk(dir, dir, &mut found);
    found
}

// Attempts that use git.

#[test]
fn tree_with_too_many_paths_or_very_many_levels_stops_no_sibling() {
    let world = World::new();
    let script = r#"
        echo mine > mine
        case $FRITES_CANDIDATE in
        levels) at=$(printf 'd/%.0s' $(seq 1900)); mkdir -p $at; echo f > $at/f;;
        paths) b=$(git hash-object -w mine); t=$(printf "100644 blob $b\tf\n" | git mktree)
            for level in $(seq 12); do t=$(printf "040000 tree $t\t%s\n" $(seq 0 9) | git mktree); done
            git update-ref HEAD $(git commit-tree -p HEAD -m many $t);;
        esac
    "#;
    let run = ["run", "-c", "levels", "-c", "paths", "-c", "other", "--test", "test -e mine"];
    let run = [&run[..], &["--json", "--", "bash", "-c", script]].concat();
    let answer = world.frites(run).expect(0);
    let json = answer.json();
    assert_eq!(json["passed"].as_array().map(Vec::len), Some(3), "{}", answer.stderr);
    assert!(answer.stderr.contains(
        "1/paths: not captured: 'HEAD' (the tree of this commit is damaged or too large"
    ));
    world.git(["cat-file", "-e", "refs/frites/1/paths^{/many}"]);
    world.frites(["apply", "--no-switch", "-m", "land", "1/levels"]).expect(0);
    world.frites(["clean", "-q", "--discard", "1"]).expect(0);
}

#[test]
fn attempt_that_committed_lands_with_its_commits_kept() {
    let attempt = attempt(
        "echo 1 >>README; git commit -qam one; git rev-parse HEAD
         echo 2 >>src/lib.txt; git commit -qam two; git rev-parse HEAD; echo 3 >new",
    );
    assert_eq!(attempt.commits.len(), 2);
    assert_eq!(attempt.lands(&[]), "");
}

#[test]
fn an_amended_commit_stays_reachable() {
    attempt(
        "echo 1 >>README; git commit -qam one; git rev-parse HEAD
         echo 2 >README; git commit -qa --amend -m better; git rev-parse HEAD",
    )
    .lands(&[]);
}

#[test]
fn attempt_that_switched_branches_lands() {
    attempt("git switch -qc elsewhere; echo 1 >>README; git commit -qam one; git rev-parse HEAD; echo 2 >>dir/a")
        .lands(&[]);
}

#[test]
fn commits_on_an_abandoned_branch_stay_reachable() {
    attempt(
        "git switch -qc side; echo 1 >side; git add side; git commit -qm side; git rev-parse HEAD
         git switch -q -; git branch -qD side; echo 2 >>README",
    )
    .lands(&[]);
}

#[test]
fn attempt_with_detached_head_lands() {
    attempt("git switch -q --detach; echo 1 >>README; git commit -qam one; git rev-parse HEAD; echo 2 >>README")
        .lands(&[]);
}

#[test]
fn orphan_branch_lands_as_its_files() {
    let attempt = attempt(
        "git switch -q --orphan fresh; echo only >only; git add only; git commit -qm only; git rev-parse HEAD",
    );
    attempt.lands(&[]);
    assert_eq!(attempt.world.git(["ls-files"]), "only");
}

#[test]
fn commit_that_was_reset_away_stays_reachable() {
    let attempt = attempt(
        "echo 1 >>README; git commit -qam one; git rev-parse HEAD
         git reset -q --hard HEAD~1; echo 2 >>dir/b",
    );
    attempt.lands(&[]);
    assert_eq!(attempt.world.git(["diff", "--staged", "--name-only"]), "dir/b");
}

#[test]
fn partly_staged_file_lands_as_it_is_on_disk() {
    attempt("echo staged >>README; git add README; echo more >>README; echo x >dir/c; git add dir/c; rm dir/c; echo y >dir/d").lands(&[]);
}

/// Whole seconds, sizes and inodes are the same: git alone would not look at the file again.
#[test]
fn edit_with_restored_mtime_is_captured() {
    let attempt = attempt("");
    for word in ["first", "later", "third"] {
        let edit = format!("echo {word} >README; touch -d '2001-01-01' README");
        attempt.world.sh(&attempt.dir, &edit).expect(0);
        attempt.world.frites(["diff", "1/c1"]).expect(0);
        assert_eq!(attempt.world.git(["show", "refs/frites/1/c1:README"]), word);
    }
}

/// As in many a repository that came from Windows: `git status` in a fresh clone calls such a file
/// modified.
#[test]
fn file_with_other_line_ends_in_the_base_is_captured_only_if_edited() {
    let world = World::new();
    world.write("crlf.txt", "one\r\ntwo\r\n");
    world.commit("lines");
    world.write(".gitattributes", "*.txt text\n");
    world.git(["add", ".gitattributes"]);
    world.git(["commit", "-q", "-m", "attributes"]);
    world.attempts(&["echo three >>crlf.txt", "touch README", "echo 1 >README; git status"]);
    let names = |candidate: &str| world.frites(["diff", "--name-only", candidate]).expect(0).out();
    assert_eq!([names("1/c1"), names("1/c2"), names("1/c3")], ["crlf.txt\n", "", "README\n"]);
    // The files of a judge checkout, and the changes reported there, do not depend on timing
    // either.
    let test = "test -z \"$(find \"$(git rev-parse --git-dir)/index\" -newer crlf.txt)\" || exit 3
        git status --porcelain >>\"$HOME/seen\"; echo x >>src/lib.txt";
    let answer = world.frites(["judge", "-j", "1", "--test", test]).expect(0);
    assert!(answer.out().contains("2 of 2 passed"), "{}", answer.out());
    assert_eq!(
        answer.stderr.matches("it changed tracked files (src/lib.txt)").count(),
        3,
        "{}",
        answer.stderr
    );
    assert_eq!(
        fs::read_to_string(world.home().join("seen")).unwrap(),
        " M crlf.txt\n M crlf.txt\n"
    );
}

/// A version that is staged and in no file is work, too.
#[test]
fn content_that_is_only_staged_stays_reachable() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.commit("ignore");
    world.write(".env", "secret\n");
    world.git(["config", "frites.seed.copy", ".env"]);
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let captures = || {
        world.frites(["diff", "1/c1"]).expect(0);
        let objects = world.git(["rev-list", "--objects", "--no-object-names", "refs/frites/1/c1"]);
        let iterations =
            world.git(["rev-list", "--count", "--first-parent", "main..refs/frites/1/c1"]);
        (objects, iterations)
    };
    let script =
        "echo 1 >README; git add -f README .env; echo 2 >README; git rev-parse :README :.env";
    let staged = world.sh(&dir, script).expect(0).out();
    let (work, seed) = staged.trim().split_once('\n').unwrap();
    let (objects, iterations) = captures();
    assert!(objects.contains(work) && !objects.contains(seed), "{objects}");
    assert_eq!((captures().0, iterations.as_str()), (objects, "1"), "once is enough");
    // Also where no file has changed since.
    let only =
        world.sh(&dir, "echo 3 >new; git add new; rm new; git rev-parse :new").expect(0).out();
    assert!(captures().0.contains(only.trim()));
    world.frites(["clean"]).expect(0);
    world.assert_clean();
}

#[test]
fn assume_unchanged_and_skip_worktree_hide_no_edit() {
    let attempt = attempt(
        "git update-index --assume-unchanged README; git update-index --skip-worktree src/lib.txt
         echo 1 >>README; echo 2 >>src/lib.txt; test -z \"$(git status --porcelain)\"",
    );
    attempt.lands(&[]);
    assert_eq!(attempt.world.git(["diff", "--staged", "--name-only"]), "README\nsrc/lib.txt");
}

#[test]
fn worktree_without_its_git_file_is_captured() {
    let attempt =
        attempt("echo 1 >>README; git commit -qam one; git rev-parse HEAD; echo 2 >new; rm .git");
    attempt.lands(&[]);
    attempt.world.frites(["clean", "1/c1"]).expect(0);
    assert!(!attempt.dir.exists());
    attempt.world.assert_clean();
}

#[test]
fn worktree_whose_git_file_points_elsewhere_is_captured() {
    let attempt = attempt(
        "echo 1 >>README; git init -q ../elsewhere; git -C ../elsewhere commit -q --allow-empty -m theirs
         echo \"gitdir: $(cd ../elsewhere && pwd)/.git\" >.git; echo 2 >new; git add -A; git commit -qm astray",
    );
    attempt.lands(&[]);
}

#[test]
fn worktree_turned_into_a_repository_is_captured_and_kept() {
    let attempt = attempt("rm .git; git init -q; echo 1 >>README; git add -A; git commit -qm own");
    let before = attempt.world.tree("main");
    assert!(
        attempt.world.frites(["diff", "1/c1"]).expect(0).stderr.contains("repository of its own")
    );
    assert_ne!(attempt.world.tree("refs/frites/1/c1"), before);
    attempt.clean_refuses(".git");
}

// Kinds of files.

#[test]
fn every_kind_of_content_lands_byte_for_byte() {
    let attempt = attempt(
        "printf 'a\\0b\\377\\n' >binary; chmod +x README; chmod -x run.sh; ln -s nowhere dangling; ln -sf dir/a link
         git mv dir/b renamed; printf 'one\\r\\n2\\r\\n' >crlf.txt; printf 'mixed\\r\\nends\\n' >mixed.txt
         printf 'no newline at the end' >no-newline; printf 'x\\n' >\"$(printf 'new\\nline')\"
         printf 'y\\n' >\"$(printf 'b\\377d')\"; : >empty; printf ' \\n\\n' >>blank.txt; echo q >'a \"quote\" and\\slash'",
    );
    attempt.lands(&[]);
    let names = attempt.world.run(&attempt.world.repo, "git", ["ls-files", "-z"]).stdout;
    let names: Vec<&[u8]> = names.split(|b| *b == 0).collect();
    for name in [
        &b"new\nline"[..],
        b"b\xffd",
        b"binary",
        b"dangling",
        b"renamed",
        b"empty",
        b"a \"quote\" and\\slash",
    ] {
        assert!(names.contains(&name), "{:?} did not land", String::from_utf8_lossy(name));
    }
}

/// git looks into files that were touched, or that are as young as its index: chance must not
/// decide.
#[test]
fn unedited_files_land_unchanged_when_attributes_change() {
    let world = World::new();
    world.write(".gitattributes", "*.win text eol=crlf\n");
    world.write("a.win", "a\nb\n");
    world.commit("line ends");
    world.spawn(["-n", "1"]);
    world.sh(&world.repo, "touch -d '1 hour' .frites/runs/1/c1/index").expect(0);
    world.write(".frites/worktrees/1/c1/.gitattributes", "*.win -text\n");
    assert_eq!(
        world.frites(["diff", "--name-only", "1/c1"]).expect(0).out(),
        ".gitattributes\na.win\n"
    );
    world.frites(["apply", "--allow-unverified", "1/c1"]).expect(0);
    assert_eq!(fs::read(world.repo.join("a.win")).unwrap(), b"a\r\nb\r\n");
    world.assert_clean();
}

#[test]
fn attributes_that_convert_line_ends_change_no_bytes() {
    attempt("printf '*.win text eol=crlf\\n*.raw -text\\n' >.gitattributes; printf 'a\\r\\n' >x.win; printf 'a\\r\\nb\\n' >y.raw").lands(&[]);
}

#[test]
fn file_and_directory_can_swap_places() {
    attempt("rm -r dir README link; echo file >dir; mkdir -p README/deep link; echo x >README/deep/x; echo y >link/y")
        .lands(&[]);
}

#[test]
fn link_can_replace_a_tracked_directory() {
    let attempt =
        attempt("rm -r dir; mkdir elsewhere; echo moved > elsewhere/a; ln -s elsewhere dir");
    attempt.lands(&[]);
    let files =
        attempt.world.git(["ls-tree", "-r", "--name-only", "refs/frites/1/c1", "dir", "elsewhere"]);
    assert_eq!(files, "dir\nelsewhere/a");
}

#[test]
fn deleted_files_land_as_deleted() {
    let attempt = attempt("rm README; git rm -q src/lib.txt; rm -r dir");
    attempt.lands(&[]);
    assert_eq!(
        attempt.world.git(["diff", "--staged", "--name-status"]),
        "D\tREADME\nD\tdir/a\nD\tdir/b\nD\tsrc/lib.txt"
    );
}

#[test]
fn patch_that_ends_in_blank_context_is_not_trimmed() {
    let attempt = attempt("printf 'second\\n\\n\\n\\n' >blank.txt");
    let patch = attempt.world.frites(["diff", "1/c1"]).expect(0).stdout;
    assert!(
        patch.ends_with(b"@@ -1,4 +1,4 @@\n-first\n+second\n \n \n \n"),
        "{}",
        String::from_utf8_lossy(&patch)
    );
    attempt.lands(&[]);
}

#[test]
fn lines_that_look_like_patch_headers_count_as_lines() {
    let attempt = attempt(
        "printf '%s\\n' '-- a' '++ b' '--- a/numbers' '+++ b/numbers' '--' '++' '@@ -1 +1 @@' >numbers",
    );
    let numbers = attempt.numbers();
    assert_eq!(
        (numbers["lines"].as_u64(), numbers["files_touched"].as_u64()),
        (Some(10), Some(1)),
        "3 deleted and 7 added"
    );
    attempt.lands(&[]);
}

// Files that a capture leaves out, and reports.

#[test]
fn excludes_hide_nothing_where_the_base_tracks_something() {
    let attempt = attempt(
        "echo edited >>dist/app.js; echo new >dist/new.js; echo wanted >dist/wanted.js; git add dist/wanted.js
         echo kept >dist/kept.js; git add dist/kept.js; git commit -qm kept dist/kept.js",
    );
    assert_eq!(attempt.lands(&[]), "");
}

#[test]
fn excludes_hide_what_was_committed_as_what_was_not() {
    let made = "mkdir -p a/dist .frites; echo 1 >a/dist/x.js; echo 1 >.frites/x; echo x >main.js; git add -f main.js";
    for more in ["", "; git add -f .", "; git add -f .; git commit -qm all; git rev-parse HEAD"] {
        let attempt = attempt(&format!("{made}{more}"));
        let world = &attempt.world;
        world.git(["config", "frites.diff.exclude", "['dist']"]);
        let said = attempt.lands(&["a/dist", ".frites"]);
        assert_eq!(said, "1/c1: left out by diff.exclude: .frites, a/dist\n", "{more}");
    }
}

#[test]
fn nested_node_modules_is_left_out_and_counted() {
    let attempt = attempt(
        "mkdir -p pkg/node_modules/x; for i in 1 2 3; do echo $i >pkg/node_modules/x/$i.js; done; echo x >pkg/main.js",
    );
    assert_eq!(
        attempt.lands(&["pkg/node_modules"]),
        "1/c1: left out by diff.exclude: pkg/node_modules\n"
    );
}

#[test]
fn ignored_file_lands_only_if_the_attempt_tracks_it() {
    let attempt = attempt(
        "echo in >in.log; git add -f in.log; echo out >out.log; echo c >committed.log; git add -f committed.log; git commit -qm c committed.log; git rev-parse HEAD",
    );
    assert_eq!(attempt.lands(&["out.log"]), "");
}

#[test]
fn ignored_or_excluded_file_of_the_base_that_was_captured_as_deleted_and_is_there_again_lands() {
    let attempt = attempt("rm dist/app.js dir/a");
    let world = &attempt.world;
    world.frites(["capture", "1/c1"]).expect(0);
    let again = "echo dir/ >>.gitignore; mkdir -p dist; echo built >dist/app.js; echo again >dir/a; echo no >dir/new";
    world.sh(&attempt.dir, again).expect(0);
    let said = attempt.lands(&["dir/new"]);
    let hidden = "1 path ignored because of the attempt's changes to .gitignore, such as 'dir/new'";
    assert!(said.starts_with(&format!("warning: 1/c1: not captured: {hidden}\nhint: ")), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn files_of_rules_that_are_too_long_for_memory_are_refused_and_others_are_judged() {
    let world = World::new();
    let script = r#"
        echo mine > mine
        case $FRITES_CANDIDATE in
        nested) at=.; for n in 1 2 3; do at=$at/d; mkdir $at; truncate -s 1023M $at/.gitignore; echo > $at/f; done;;
        tracked) truncate -s 1023M .gitignore .gitattributes;;
        long) for n in $(seq 10000); do echo /name-$n; done > .gitignore;;
        esac
    "#;
    let run = "ulimit -v 3145728
        exec git-frites run -c nested -c tracked -c long -c other --test 'test -e mine' -- sh -c \"$1\"";
    let answer = world.run(&world.repo, "sh", ["-c", run, "sh", script]).expect(0);
    for name in ["nested", "tracked"] {
        let line = format!("1/{name} could not be captured: '");
        let line = answer.stderr.lines().find(|found| found.contains(&line));
        let words = "' and other files of rules together have more than 16.0 MiB";
        assert!(line.is_some_and(|line| line.contains(words)), "{name}: {}", answer.stderr);
    }
    for name in ["long", "other"] {
        assert_eq!(world.git(["show", &format!("refs/frites/1/{name}:mine")]), "mine");
        assert!(answer.stderr.contains(&format!("1/{name}: test passed")), "{}", answer.stderr);
    }
}

#[test]
fn fifo_is_flagged_and_kept_by_clean() {
    let attempt = attempt("mkfifo dir/pipe; echo 1 >>README");
    let said = attempt.lands(&["dir/pipe"]);
    assert_eq!(said, "warning: 1/c1: not captured: 'dir/pipe' (a FIFO)\n");
    attempt.clean_refuses("dir/pipe");
}

#[test]
fn fifo_in_place_of_a_tracked_file_is_captured_as_deletion() {
    let attempt = attempt("rm README; mkfifo README; echo 1 >>dir/a");
    let said = attempt.lands(&["README"]);
    assert_eq!(said, "warning: 1/c1: not captured: 'README' (a FIFO)\n");
    attempt.clean_refuses("README");
}

#[test]
fn embedded_repository_without_commits_is_flagged_and_kept() {
    let attempt = attempt("git init -q inner; echo x >inner/x; echo 1 >>README");
    assert_eq!(
        attempt.lands(&["inner"]),
        "warning: 1/c1: not captured: 'inner' (a nested repository)\n"
    );
    attempt.clean_refuses("inner");
}

#[test]
fn embedded_repository_with_commits_is_flagged_and_kept() {
    let attempt = attempt(
        "git init -q deep/inner; echo x >deep/inner/x; git -C deep/inner add x; git -C deep/inner commit -qm x; echo 1 >>README",
    );
    assert_eq!(
        attempt.lands(&["deep/inner"]),
        "warning: 1/c1: not captured: 'deep/inner' (a nested repository)\n"
    );
    attempt.clean_refuses("deep/inner");
}

#[test]
fn embedded_repository_that_was_added_is_flagged_and_kept() {
    let attempt = attempt(
        "git init -q inner; echo x >inner/x; git -C inner add x; git -C inner commit -qm x; git add inner 2>/dev/null; echo 1 >>README",
    );
    for _ in 0..2 {
        let said = attempt.world.frites(["diff", "1/c1"]).expect(0).left_out();
        assert_eq!(
            said,
            "warning: 1/c1: not captured: 'inner' (a nested repository: only its commit id is captured)\n"
        );
    }
    attempt.clean_refuses("inner");
}

#[test]
fn file_hidden_by_a_changed_gitignore_is_flagged_and_kept() {
    let attempt = attempt(
        "echo '/hidden' >>.gitignore; mkdir hidden; echo work >hidden/work; echo old >old.log",
    );
    let said = attempt.lands(&["hidden", "old.log"]);
    assert!(
        said.starts_with("warning: 1/c1: not captured: 1 path ignored because of the attempt's changes to .gitignore, such as 'hidden"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "old.log is ignored by the base's own rules: {said}");
    let hint = said.lines().last().unwrap();
    let command = "git frites exec 1/c1 -- git add -f -- hidden/";
    let words =
        format!("hint: to capture such a file: `{command}`, and then `git frites capture 1/c1`");
    assert_eq!(hint, words);
    attempt.clean_refuses("hidden");
}

/// A project whose `.gitignore` hides more than its author thought, and one candidate.
fn python_project() -> World {
    let world = World::new();
    world.write(".gitignore", "lib\n_*.py\nbuild\nnode_modules\n__pycache__\n");
    world.write("main.py", "import boltons\n");
    world.write("boltons/a.py", "");
    world.write("text/a.txt", "");
    world.commit("python");
    world
}

#[test]
fn new_source_that_the_rules_of_the_base_ignore_is_named_with_the_way_to_capture_it() {
    let world = python_project();
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let made = "mkdir -p boltons/lib boltons/new/lib text/lib build node_modules boltons/__pycache__ .cache/lib
         touch boltons/lib/__init__.py boltons/lib/more.py boltons/lib/notes boltons/_a.py boltons/new/b.py
         touch boltons/new/lib/c.py text/lib/a.py text/_b.py build/a.py node_modules/a.py
         touch boltons/__pycache__/a.pyc .cache/lib/a.py";
    world.sh(&dir, made).expect(0);
    let named = "1/c1: ignored by git and not captured: boltons/_a.py, boltons/lib/ (2 files), \
                 boltons/new/lib/ (1 file)\n";
    let by_git = "printf '* text=auto\\n' >.gitattributes";
    for before in ["true", by_git] {
        world.sh(&dir, before).expect(0);
        for command in [["capture", "1/c1"], ["diff", "1/c1"]] {
            let said = world.frites(command).expect(0).stderr;
            assert!(said.starts_with(named), "{before}: {said}");
        }
        let said = world.frites(["judge", "--test", "true"]).expect(0).stderr;
        assert!(said.contains(named), "{before}: {said}");
    }
    let said = world.frites(["capture", "1/c1"]).expect(0).stderr;
    assert!(said.contains("`git frites exec 1/c1 -- git add -f -- boltons/_a.py`"), "{said}");
    world.sh(&dir, "git add -f boltons/_a.py boltons/lib/*.py boltons/new/lib").expect(0);
    assert_eq!(world.frites(["capture", "1/c1"]).expect(0).stderr, "");
    assert_eq!(world.frites(["capture", "1/c1"]).expect(0).stderr, "");
}

#[test]
fn ignored_source_that_was_there_when_the_attempt_began_is_not_named() {
    let world = python_project();
    world.write("boltons/_seed.py", "seed\n");
    world.write("boltons/_edited.py", "seed\n");
    world.git(["config", "frites.seed.copy", "['_seed.py', '_edited.py']"]);
    let setup = "mkdir -p boltons/lib; touch boltons/_made.py boltons/lib/made.py";
    world.git(["config", "frites.spawn.setup", setup]);
    let attempt = "echo 1 >>boltons/_edited.py; echo 2 >>boltons/a.py";
    let said = world.frites(["spawn", "-n", "1", "--", "sh", "-c", attempt]).expect(0).stderr;
    assert!(!said.contains("ignored by git"), "{said}");
    world.sh(&world.worktree("1/c1"), "touch boltons/lib/own.py").expect(0);
    let said = world.frites(["capture", "1/c1"]).expect(0).stderr;
    assert!(said.contains("not captured: boltons/lib/ (1 file)\n"), "{said}");
    world.frites(["clean", "1/c1"]).expect(0);
    assert!(!world.worktree("1/c1").exists(), "ignored files go with the worktree");
}

#[test]
fn hint_at_a_hidden_file_says_how_to_capture_it() {
    let attempt = attempt("echo '/hidden' >>.gitignore; mkdir hidden; echo work >hidden/work");
    let world = &attempt.world;
    let said = world.frites(["capture", "1/c1"]).expect(0).stderr;
    let hint = said.lines().find(|line| line.starts_with("hint: to capture such a file")).unwrap();
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    world.sh(&world.repo, &commands.join(" && ")).expect(0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:hidden/work"]), "work");
    world.assert_clean();
}

#[test]
fn uncommitted_work_in_a_submodule_is_flagged_and_kept() {
    let world = World::new();
    let library = world.home().join("library");
    world
        .sh(
            &world.home(),
            "git init -q library; cd library; echo l >l; git add l; git commit -qm l",
        )
        .expect(0);
    world.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        library.to_str().unwrap(),
        "lib",
    ]);
    world.commit("submodule");
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    world.git_in(
        &dir,
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"],
    );
    assert_eq!(
        world.frites(["diff", "1/c1"]).expect(0).left_out(),
        "",
        "a clean submodule is no loss"
    );
    let said = |script: &str| {
        world.sh(&dir, script).expect(0);
        world.frites(["diff", "1/c1"]).expect(0).left_out()
    };
    let edited = said("echo edit >>lib/l");
    assert_eq!(
        edited,
        "warning: 1/c1: not captured: 'lib' (a submodule with uncommitted changes)\n"
    );
    // Nothing in the submodule's git directory hides the edit, or a new file.
    for bit in ["assume-unchanged", "skip-worktree"] {
        let hidden = said(&format!("git -C lib update-index --{bit} l"));
        assert_eq!(hidden, edited, "{bit}");
        world.sh(&dir, &format!("git -C lib update-index --no-{bit} l")).expect(0);
    }
    let new = "git -C lib checkout -q l; echo new >lib/new";
    for hides in [
        "git -C lib config status.showUntrackedFiles no",
        "echo new >>$(git -C lib rev-parse --absolute-git-dir)/info/exclude",
    ] {
        assert_eq!(said(&format!("{new}; {hides}")), edited, "{hides}");
    }
    let committed = said("rm lib/new; echo edit >>lib/l; git -C lib commit -qam edit");
    let lost = "warning: 1/c1: commits of a submodule that are nowhere else: ";
    assert!(committed.starts_with(lost), "{committed}");
    assert_eq!(said("git -C lib push -q origin HEAD:refs/heads/published"), "");
    let stashed = said("echo stashed >>lib/l; git -C lib stash -q");
    assert!(stashed.starts_with(lost), "{stashed}");
    assert_eq!(said("git -C lib stash drop -q"), "");
    let reset =
        said("git -C lib commit -q --allow-empty -m more; git -C lib reset -q --hard HEAD~");
    assert!(reset.starts_with(lost), "{reset}");
    let removed = said("git rm -qf lib");
    assert!(removed.starts_with(lost), "{removed}");
    world.frites(["clean"]).refuses(1, "commits of a submodule that are nowhere else");
    // The command of the message puts the commits into the user's own submodule.
    world.sh(&world.repo.join("lib"), removed.split('`').nth(1).unwrap()).expect(0);
    world.frites(["clean"]).expect(0);
    assert!(!dir.exists());
    world.assert_clean();
}

/// Where its files are not there, the directory of a submodule is empty whatever commit it is at.
#[test]
fn submodule_without_checkout_is_captured_as_tracked() {
    let world = World::new();
    let [one, two] = ["1".repeat(40), "2".repeat(40)];
    let link =
        |id: &str, path: &str| format!("git update-index --add --cacheinfo 160000,{id},{path}");
    world
        .sh(&world.repo, &format!("{}; mkdir lib; git commit -qm submodule", link(&one, "lib")))
        .expect(0);
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let captured = || {
        world.frites(["diff", "1/c1"]).expect(0);
        world.git(["ls-tree", "--format=%(objectname) %(path)", "refs/frites/1/c1", "lib", "new"])
    };
    world.sh(&dir, &format!("{}; git commit -qm bump", link(&two, "lib"))).expect(0);
    assert_eq!(captured(), format!("{two} lib"));
    world.sh(&dir, &format!("{}; mkdir new; {}", link(&one, "lib"), link(&two, "new"))).expect(0);
    assert_eq!(captured(), format!("{one} lib\n{two} new"));
    world.frites(["clean"]).expect(0);
    world.assert_clean();
}

#[test]
fn files_in_a_submodule_that_is_not_initialised_are_named_and_kept() {
    let world = World::new();
    let id = "1".repeat(40);
    let link = format!("git update-index --add --cacheinfo 160000,{id},lib; mkdir lib");
    world.sh(&world.repo, &format!("{link}; git commit -qm submodule")).expect(0);
    world.spawn(["-n", "1"]);
    world.write(".frites/worktrees/1/c1/lib/new", "work\n");
    let said = world.frites(["diff", "1/c1"]).expect(0).left_out();
    let expected = "'lib' (files in a submodule that is not initialised)";
    assert_eq!(said, format!("warning: 1/c1: not captured: {expected}\n"));
    let dir = world.worktree("1/c1");
    Attempt { world, dir, commits: Vec::new() }.clean_refuses("lib");
}

/// As on a disk without modes, where `git add --chmod` is the way to give one.
#[test]
fn modes_of_the_index_count_when_core_filemode_is_false() {
    let world = World::new();
    world.git(["config", "core.fileMode", "false"]);
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let captured = |script: &str| {
        world.sh(&dir, script).expect(0);
        world.frites(["diff", "1/c1"]).expect(0);
        world.git([
            "ls-tree",
            "--format=%(objectmode) %(path)",
            "refs/frites/1/c1",
            "README",
            "new",
        ])
    };
    let script = "chmod +x README; echo x >new; git add --chmod=+x new; echo y >new";
    assert_eq!(captured(script), "100644 README\n100755 new");
    assert_eq!(captured("git update-index --chmod=+x README"), "100755 README\n100755 new");
    assert_eq!(
        captured("git commit -qam x; git update-index --chmod=-x README"),
        "100644 README\n100755 new"
    );
    world.assert_clean();
}

// Captures as commits.

fn trailers(world: &World, commit: &str) -> String {
    world.git(["log", "-1", "--format=%(trailers:only,unfold)", commit]).trim().to_owned()
}

fn diff(world: &World, address: &str) -> Answer {
    world.frites(["diff", address]).expect(0)
}

#[test]
fn two_edits_make_two_chained_captures() {
    let Attempt { world, dir, .. } = attempt("echo 1 >>README");
    let base = world.git(["rev-parse", "main"]);
    diff(&world, "1/c1");
    let first = world.git(["rev-parse", "refs/frites/1/c1"]);
    world.sh(&dir, "echo 2 >>README").expect(0);
    diff(&world, "1/c1");
    let chain = world.git(["rev-list", "--first-parent", "refs/frites/1/c1", "^main"]);
    let second = world.git(["rev-parse", "refs/frites/1/c1"]);
    assert_eq!(chain, format!("{second}\n{first}"));
    assert_eq!(
        world.git(["rev-parse", &format!("{first}^@")]),
        base,
        "no work of git's own: one parent"
    );
    for (commit, n) in [(&first, 1), (&second, 2)] {
        let wanted = format!(
            "Frites-Run: 1\nFrites-Candidate: c1\nFrites-Index: 1\nFrites-Iteration: {n}\nFrites-Base: {base}\nFrites-State: open\nFrites-Lines: {n}\nFrites-Files: 1"
        );
        assert_eq!(trailers(&world, commit), wanted);
    }
    assert_eq!(world.git(["show", &format!("{first}:README")]), "hello\n1");
    assert_eq!(world.git(["show", &format!("{second}:README")]), "hello\n1\n2");
    world.assert_clean();
}

#[test]
fn capture_without_a_change_makes_no_commit() {
    let Attempt { world, dir, .. } = attempt("touch README");
    for _ in 0..2 {
        assert_eq!(diff(&world, "1/c1").out(), "");
        assert_eq!(
            world.run(&world.repo, "git", ["rev-parse", "--verify", "-q", "refs/frites/1/c1"]).code,
            1
        );
    }
    world.sh(&dir, "echo 1 >>README; git commit -qam one").expect(0);
    diff(&world, "1/c1");
    let capture = world.git(["rev-parse", "refs/frites/1/c1"]);
    world.sh(&dir, "touch README; git status >/dev/null").expect(0);
    for address in ["1/c1", "1"] {
        diff(&world, address);
        assert_eq!(world.git(["rev-parse", "refs/frites/1/c1"]), capture);
    }
    world.assert_clean();
}

#[test]
fn commit_without_a_file_change_is_captured() {
    let Attempt { world, dir, .. } = attempt("echo 1 >>README");
    diff(&world, "1/c1");
    let tree = world.tree("refs/frites/1/c1");
    let commit = world.sh(&dir, "git commit -qam one; git rev-parse HEAD").expect(0).out();
    diff(&world, "1/c1");
    assert_eq!(world.tree("refs/frites/1/c1"), tree);
    let parents = world.git(["rev-parse", "refs/frites/1/c1^2"]);
    assert_eq!(parents, commit.trim());
    world.assert_clean();
}

#[test]
fn new_run_is_recorded_on_its_base() {
    let Attempt { world, .. } = attempt(":");
    assert_eq!(
        world.git(["rev-parse", "refs/frites/1/@record^@"]),
        world.git(["rev-parse", "main"])
    );
    let record = world.git(["show", "refs/frites/1/@record:run.toml"]);
    assert_eq!(
        record.as_bytes(),
        fs::read_to_string(world.repo.join(".frites/runs/1/run.toml"))
            .unwrap()
            .trim_end()
            .as_bytes()
    );
    world.assert_clean();
}

#[test]
fn captures_survive_garbage_collection() {
    let attempt = attempt(
        "echo 1 >>README; git commit -qam one; git rev-parse HEAD; git reset -q --hard HEAD~1; echo 2 >untracked",
    );
    diff(&attempt.world, "1/c1");
    attempt.world.git(["reflog", "expire", "--expire=now", "--all"]);
    attempt.world.git(["gc", "-q", "--prune=now"]);
    attempt.lands(&[]);
}

#[test]
fn private_index_with_a_lost_object_is_rebuilt() {
    let attempt = attempt("echo 1 >one");
    diff(&attempt.world, "1/c1");
    let blob = attempt.world.git(["rev-parse", "refs/frites/1/c1:one"]);
    let (directory, file) = blob.split_at(2);
    fs::remove_file(attempt.world.repo.join(".git/objects").join(directory).join(file)).unwrap();
    fs::write(attempt.dir.join("two"), "2\n").unwrap();
    attempt.lands(&[]);
}

#[test]
fn git_clean_in_the_users_checkout_loses_no_captures() {
    let attempt =
        attempt("echo 1 >>README; git commit -qam one; git rev-parse HEAD; echo 2 >untracked");
    let world = &attempt.world;
    let before = diff(world, "1/c1");
    let captured = world.git(["rev-parse", "refs/frites/1/c1"]);
    world.git(["clean", "-ffdxq"]);
    assert!(!world.repo.join(".frites").exists());
    let status = world.frites(["status", "--json"]).expect(0);
    assert!(status.out().contains("\"c1\""), "{}", status.out());
    for args in [
        &["diff", "--no-capture", "1/c1"][..],
        &["diff", "1/c1"],
        &["diff", "--no-capture", "1/c1@1"],
    ] {
        assert_eq!(world.frites(args).expect(0).stdout, before.stdout, "{args:?}");
    }
    assert_eq!(world.git(["rev-parse", "refs/frites/1/c1"]), captured);
    world.frites(["apply", "--allow-unverified", "1/c1"]).expect(0);
    assert_eq!(world.git(["write-tree"]), world.tree(&captured));
    world.frites(["clean", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn name_that_git_refuses_is_flagged_and_kept() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    fs::write(world.worktree("1/c1/git~1"), "work\n").unwrap();
    fs::write(world.worktree("1/c1/README"), "edited\n").unwrap();
    let answer = world.frites(["diff", "1/c1"]).expect(0);
    assert!(
        answer.stderr.contains("not captured: 'git~1' (git refuses that name)"),
        "{}",
        answer.stderr
    );
    world.frites(["clean"]).refuses(1, "has files that cannot be captured");
    assert!(world.worktree("1/c1/git~1").exists());
}

#[test]
fn planted_replace_refs_are_not_followed() {
    let world = World::new();
    world.write("README", "second\n");
    world.commit("second");
    world.spawn(["-n", "1"]);
    fs::write(world.worktree("1/c1/README"), "third\n").unwrap();
    world.git(["replace", "HEAD", "HEAD~1"]);
    let diff = world.frites(["diff", "1/c1"]).expect(0).out();
    assert!(diff.contains("\n-second\n+third\n"), "{diff}");
    world.frites(["judge", "--test", "grep -q third README"]).expect(0);
}

#[test]
fn candidate_that_cannot_be_captured_does_not_hide_the_others() {
    let world = World::new();
    // Tracked by nobody, and unreadable as what it claims to be: git fails on its broken clean
    // filter.
    world.git(["config", "filter.broken.clean", "false"]);
    world.git(["config", "filter.broken.required", "true"]);
    let script = "case $FRITES_CANDIDATE in c1) echo '*.bad filter=broken' > .gitattributes; echo x > x.bad;; c2) echo fine > README;; esac";
    let answer = world.frites(["spawn", "-n", "2", "--", "sh", "-c", script]).expect(0);
    assert!(
        answer.stderr.contains("warning: 1/c1 could not be captured: git update-index failed"),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.out().lines().count(), 2);
    let answer = world.frites(["judge", "--test", "true"]).expect(0);
    assert!(
        answer.out().contains("not captured")
            && answer.out().contains("single: c2 is the only usable"),
        "{}",
        answer.out()
    );
    assert!(world.frites(["diff", "1"]).expect(0).out().contains("1/c2\t2 lines in 1 file"));
    world.frites(["diff", "1/c1"]).expect(128);
    world.frites(["clean"]).expect(1);
    assert!(world.worktree("1/c1/x.bad").exists(), "what could not be captured is kept");
    assert!(!world.worktree("1/c2").exists());
}

#[test]
fn worktree_with_only_excluded_files_is_kept() {
    let world = World::new();
    world
        .frites(["spawn", "-n", "1", "--", "sh", "-c", "mkdir dist; echo work > dist/report"])
        .expect(4);
    assert!(world.worktree("1/c1/dist/report").exists());
    let answer = world.frites(["clean"]).expect(0);
    assert!(answer.stderr.contains("left out by diff.exclude: dist\n"), "{}", answer.stderr);
}

/// As an interrupted capture beside `git gc --prune=now` can leave them.
#[test]
fn lost_times_of_files_stop_no_capture() {
    let world = World::new();
    world.attempts(&["echo one > new"]);
    world.frites(["diff", "1"]).expect(0);
    let times = world.git(["rev-parse", "refs/frites/1/@mtimes/c1:times"]);
    let object = world.repo.join(".git/objects").join(&times[..2]).join(&times[2..]);
    fs::remove_file(object).unwrap();
    world.write(".frites/worktrees/1/c1/new", "two\n");
    assert_eq!(world.frites(["diff", "1"]).expect(0).stderr.matches("warning").count(), 0);
    assert_eq!(world.git(["show", "refs/frites/1/c1:new"]), "two");
    world.git(["rev-list", "--objects", "--quiet", "--glob=refs/frites"]);
}

/// How attempts' commands run: with the user's permissions, or guarded.
const GUARDS: [&str; 2] = ["off", "required"];

#[test]
fn content_that_is_only_staged_in_a_split_index_is_kept() {
    for guard in GUARDS {
        for script in [
            // In the index itself, and in the part that it shares.
            "git update-index --split-index; echo staged > new; git add new",
            "echo staged > new; git add new; git update-index --split-index",
        ] {
            let mut world = World::new();
            world.set_env("FRITES_SPAWN_GUARD", guard);
            let script = format!("{script}; rm new; echo more >> README");
            world.spawn(["-n", "1", "--", "sh", "-euc", &script]);
            world.frites(["clean", "1/c1"]).expect(0);
            world.git(["gc", "-q", "--prune=now"]);
            let staged = world.sh(&world.repo, "echo staged | git hash-object --stdin").expect(0);
            let kept = world.git(["rev-list", "--objects", "refs/frites/1/c1"]);
            assert!(kept.contains(staged.out().trim()), "{guard}: {script}");
            assert_eq!(world.git(["show", "refs/frites/1/c1:README"]), "hello\nmore");
            world.assert_clean();
        }
    }
}

/// In each case `id` has the object that only the worktree's administrative entry or its index
/// names.
#[test]
fn what_only_the_administrative_entry_names_is_kept() {
    let script = r#"
        edit() { echo $1 > README; git commit -qam $1; }
        git checkout -qb other-$FRITES_CANDIDATE; edit other; git checkout -q -; edit mine; echo work > src/lib.txt
        file() { cat $(git rev-parse --git-path $1) > id; }
        case $FRITES_CANDIDATE in
        rebase) git rebase -q --autostash other-rebase || file rebase-merge/autostash;;
        merge) git merge -q --autostash other-merge || file MERGE_AUTOSTASH;;
        ref) git stash create > id; git update-ref refs/worktree/wip $(cat id); git reset -q --hard;;
        bisect) git stash create > id; git update-ref refs/bisect/bad $(cat id); git reset -q --hard;;
        blob) git hash-object -w src/lib.txt > id; git update-ref refs/worktree/blob $(cat id);;
        staged) git commit -qam more; git merge -q other-staged || true; echo s > s; git add s; git rev-parse :s > id;;
        stash) git stash -q; echo else > src/lib.txt; git commit -qam else; git stash pop || git rev-parse :3:src/lib.txt > id
            git stash drop -q;;
        tag) git commit -qam tagged; git tag -am words v-$guard; git rev-parse HEAD > id
            test $guard = off || git cat-file tag v-$guard | git hash-object --stdin > id;;
        esac
        echo later > s; echo later > src/lib.txt
    "#;
    let names = ["rebase", "merge", "ref", "bisect", "blob", "staged", "stash", "tag", "gone"];
    for guard in GUARDS {
        let mut world = World::new();
        world.set_env("FRITES_SPAWN_GUARD", guard);
        world.set_env("guard", guard);
        let candidates = names.iter().flat_map(|name| ["-c", *name]);
        let words = ["spawn", "-q"].into_iter().chain(candidates);
        world.frites(words.chain(["--", "sh", "-euc", script])).expect(0);
        let gone = world.worktree("1/gone");
        let script = "git checkout -q --detach; git commit -qam detached; git rev-parse HEAD";
        let detached = world.sh(&gone, script).expect(0).out().trim().to_owned();
        fs::remove_dir_all(&gone).unwrap();
        world.frites(["clean", "1"]).expect(0);
        world.git(["gc", "-q", "--prune=now"]);
        for name in names {
            let id = match name {
                "gone" => detached.clone(),
                _ => world.git(["show", &format!("refs/frites/1/{name}:id")]),
            };
            let kept = world.git(["rev-list", "--objects", &format!("refs/frites/1/{name}")]);
            assert!(id.len() == 40 && kept.contains(&id), "{guard} {name}: {id} {kept}");
        }
    }
}

#[test]
fn staged_content_beside_a_lost_object_is_kept() {
    let attempt = attempt(
        "echo lost > lost; echo staged > new; git add lost new; rm lost new
        id=$(git rev-parse :lost); rm $(git rev-parse --git-common-dir)/objects/${id%${id#??}}/${id#??}",
    );
    let staged = attempt.world.sh(&attempt.dir, "git rev-parse :new").expect(0).out();
    attempt.world.frites(["capture", "1/c1"]).expect(0);
    let kept = attempt.world.git(["rev-list", "--objects", "refs/frites/1/c1"]);
    assert!(kept.contains(staged.trim()), "{kept}");
}

#[test]
fn sparse_checkout_of_an_attempt_deletes_nothing_outside_of_its_cone() {
    for guard in GUARDS {
        for how in ["--no-sparse-index", "--sparse-index"] {
            let mut world = World::new();
            world.set_env("FRITES_SPAWN_GUARD", guard);
            world.write("in/a", "a\n");
            world.write("in/b", "b\n");
            world.write("out/deep/c", "c\n");
            world.write("out/d", "d\n");
            world.commit("directories");
            let script = format!(
                "echo D > out/d; echo new > out/new; git add .; git commit -qm outside
                git sparse-checkout set {how} in; test ! -e out; rm in/a; echo B > in/b"
            );
            world.spawn(["-n", "1", "--", "sh", "-euc", &script]);
            let tree = "refs/frites/1/c1";
            let names = world.git(["ls-tree", "-r", "--name-only", tree]);
            assert_eq!(
                names.lines().collect::<Vec<_>>(),
                ["README", "in/b", "out/d", "out/deep/c", "out/new", "src/lib.txt"],
                "{guard} {how}"
            );
            assert_eq!(world.git(["show", &format!("{tree}:out/d")]), "D");
            // Nothing has changed since, and a file that is there counts as it is.
            let again = world.frites(["capture", "1/c1"]).expect(0).out();
            assert!(again.starts_with("1/c1@1\tunchanged"), "{again}");
            let there = world.worktree("1/c1/out/d");
            fs::create_dir_all(there.parent().unwrap()).unwrap();
            fs::write(there, "again\n").unwrap();
            world.frites(["capture", "1/c1"]).expect(0);
            assert_eq!(world.git(["show", &format!("{tree}:out/d")]), "again");
            assert_eq!(world.git(["show", &format!("{tree}:out/new")]), "new");
        }
    }
}

#[test]
fn a_fifo_in_a_repository_inside_the_worktree_stops_no_sibling() {
    for script in [
        "git init -q in; rm in/.git/HEAD; mkfifo in/.git/HEAD",
        "git init -q in; ln -s /dev/zero in/.git/commondir",
        "git init -q in; cd in; git commit -q --allow-empty -m x; cd ..; git add in; rm in/.git/config; mkfifo in/.git/config",
    ] {
        let world = World::new();
        let script = format!("echo x >>README; case $FRITES_CANDIDATE in bad) {script};; esac");
        let words = ["60", "git-frites", "run", "-q", "-c", "bad", "good", "--test", "true", "--"];
        let words = [&words[..], &["sh", "-euc", &script]].concat();
        let answer = world.run(&world.repo, "timeout", words).expect(0);
        assert!(answer.stderr.contains("is not a regular file"), "{}", answer.stderr);
        assert_eq!(answer.out(), "1/good\n", "{script}");
    }
}
