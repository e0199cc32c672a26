//! Where it works: subdirectorys, linked worktrees, odd paths, bare, submodules, shallow, sparse,
//! hooks.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::common::{World, make_executable, write};

/// Like `World::new`, with the repository made by `git init` with these arguments in a directory of
/// this name.
fn made(name: impl AsRef<OsStr>, init: &[&str]) -> World {
    let world = World::empty(name);
    world.git([&["init", "-q", "-b", "main"], init].concat());
    world.write("README", "hello\n");
    world.write("src/lib.txt", "one\ntwo\nthree\n");
    world.commit("base");
    world
}

/// The path of a candidate's worktree, as its bytes are.
#[track_caller]
fn path(world: &World, dir: &Path, address: &str) -> PathBuf {
    let mut bytes = world.frites_in(dir, ["path", address]).expect(0).stdout;
    assert_eq!(bytes.pop(), Some(b'\n'));
    OsString::from_vec(bytes).into()
}

/// Spawns, edits, diffs and judges in `dir`; gives the run, whose c1 won.
#[track_caller]
fn win(world: &World, dir: &Path) -> String {
    let run = world.frites_in(dir, ["spawn", "-q", "-n", "2"]).expect(0).out().trim().to_owned();
    let unchanged =
        format!("{run}/c1\t0 lines in 0 files\topen\n{run}/c2\t0 lines in 0 files\topen\n");
    assert_eq!(world.frites_in(dir, ["diff"]).expect(0).out(), unchanged, "no edit is no change");
    assert_eq!(
        world.git_in(dir, ["for-each-ref", &format!("refs/frites/{run}/c1")]),
        "",
        "and makes no capture"
    );
    fs::write(path(world, dir, &format!("{run}/c1")).join("README"), "better\n").unwrap();
    let names = world.frites_in(dir, ["diff", &run, "--name-status"]).expect(0).out();
    assert_eq!(names, format!("# {run}/c1\nM\tREADME\n# {run}/c2\n"));
    let judged = world
        .frites_in(dir, ["judge", "-q", "--test", "grep -qx better README && test -f src/lib.txt"]);
    assert_eq!(judged.expect(0).out(), format!("{run}/c1\n"));
    run
}

/// The whole way in `dir`: what passed is what landed, there, and the rest of the tree is as it
/// was.
#[track_caller]
fn whole_way(world: &World, dir: &Path) -> String {
    let base = world.git_in(dir, ["rev-parse", "HEAD"]);
    let run = win(world, dir);
    let branch = format!("frites/apply/{run}");
    let apply = || {
        let landed = world.frites_in(dir, ["apply", "-q", "-m", "Land"]).expect(0).out();
        assert_eq!(landed, format!("{branch}\n"));
        assert_eq!(world.git_in(dir, ["symbolic-ref", "--short", "HEAD"]), branch);
    };
    let before = world.git_in(dir, ["status", "--branch", "--porcelain=v2"]);
    apply();
    world.frites_in(dir, ["apply", "-q", "--undo"]).expect(0);
    assert_eq!(world.git_in(dir, ["status", "--branch", "--porcelain=v2"]), before);
    apply();
    let captured = world.git_in(dir, ["rev-parse", &format!("refs/frites/{run}/c1^{{tree}}")]);
    assert_eq!(world.git_in(dir, ["rev-parse", "HEAD^{tree}"]), captured);
    assert_eq!(world.git_in(dir, ["rev-parse", "HEAD^"]), base);
    assert_eq!(world.git_in(dir, ["diff", "--name-status", "HEAD^", "HEAD"]), "M\tREADME");
    assert_eq!(world.git_in(dir, ["status", "--porcelain"]), "");
    assert_eq!(world.git_in(dir, ["cat-file", "blob", "HEAD:README"]), "better");
    world.frites_in(dir, ["clean", "-q", &run]).expect(0);
    assert_eq!(world.git_in(dir, ["for-each-ref", "refs/heads/frites/run"]), "");
    run
}

#[test]
fn commands_work_in_a_subdirectory() {
    let world = World::new();
    whole_way(&world, &world.repo.join("src"));
    assert_eq!(fs::read(world.repo.join("README")).unwrap(), b"better\n");
    assert!(!world.repo.join("src/.frites").exists() && world.repo.join(".frites/runs/1").exists());
    world.assert_clean();
}

#[test]
fn commands_work_with_a_detached_head() {
    let world = World::new();
    world.write("src/lib.txt", "newer\n");
    let newer = world.commit("newer");
    world.git(["switch", "-q", "--detach", "HEAD^"]);
    whole_way(&world, &world.repo);
    assert_eq!(world.git(["rev-parse", "main"]), newer);
    world.assert_clean();
}

#[test]
fn linked_worktree_shares_the_state_and_lands_in_itself() {
    let world = World::new();
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    world.write("mine", "untracked\n");
    let before = world.git(["status", "--porcelain"]);
    whole_way(&world, &linked);
    assert_eq!(fs::read(linked.join("README")).unwrap(), b"better\n");
    assert!(!linked.join(".frites").exists());
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(world.git(["status", "--porcelain"]), before);
    assert_eq!(fs::read(world.repo.join("README")).unwrap(), b"hello\n");
    let status =
        |dir: &Path| world.frites_in(dir, ["status", "--json"]).expect(0).json()["runs"].clone();
    assert_eq!(status(&world.repo), status(&linked));
    assert_eq!(status(&linked)[0]["verdict"]["recommended"], "c1");
    assert_eq!(world.spawn(["-n", "1"]), "2", "one numbering for all checkouts");
    world.assert_clean();
}

#[test]
fn commands_work_in_odd_repository_paths() {
    let newline = OsStr::from_bytes(b"two\nlines");
    let names = [OsStr::new("with some  spaces"), OsStr::new("'quote\" $HOME * [a]"), newline];
    for name in names {
        let world = made(name, &[]);
        whole_way(&world, &world.repo);
        world.assert_clean();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn repository_path_beyond_utf8_is_shown_raw_and_in_hex() {
    let name = OsStr::from_bytes(b"not-\xff-utf8");
    let world = made(name, &[]);
    let spawned = world.frites(["spawn", "-n", "1"]).expect(0).stdout;
    let worktree = world.worktree("1/c1");
    assert_eq!(spawned, [b"1/c1\t", worktree.as_os_str().as_bytes(), b"\n"].concat());
    let candidate = world.first_candidate("1");
    let hex: String = worktree.as_os_str().as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(candidate["worktree_hex"], hex.as_str());
    world.frites(["clean", "-q", "--forget", "1"]).expect(0);
    assert_eq!(whole_way(&world, &world.repo), "2");
    world.git(["fsck", "--no-dangling", "--no-progress"]);
}

#[test]
fn bare_repository_is_judged_and_landed_without_a_checkout() {
    let world = World::new();
    let bare = world.home().join("bare.git");
    world.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let main = world.git(["rev-parse", "main"]);
    let run = win(&world, &bare);
    assert!(bare.join(".frites/worktrees/1/c1").is_dir() && !world.home().join(".frites").exists());
    let landed = world.frites_in(&bare, ["apply", "--no-switch", "-m", "Land"]).expect(0);
    assert_eq!(landed.out(), format!("frites/apply/{run}\n"));
    assert!(landed.stderr.contains("; merge it in a clone, because"), "{}", landed.stderr);
    let of = |revision: &str| world.git_in(&bare, ["rev-parse", revision]);
    assert_eq!(of("frites/apply/1^{tree}"), of("refs/frites/1/c1^{tree}"));
    assert_eq!((of("frites/apply/1^"), of("main")), (main.clone(), main));
    assert_eq!(world.git_in(&bare, ["symbolic-ref", "HEAD"]), "refs/heads/main");
    world.frites_in(&bare, ["clean", "-q", "1"]).expect(0);
    assert!(!bare.join(".frites/worktrees/1").exists() && !bare.join("index").exists());
    assert_eq!(world.git_in(&bare, ["worktree", "list"]).lines().count(), 1);
}

#[test]
fn separate_git_directory_holds_the_state() {
    let mut world = made("repo", &["--separate-git-dir", "../store"]);
    let store = world.home().join("store");
    whole_way(&world, &world.repo);
    assert!(store.join(".frites/runs/1/run.toml").exists());
    assert!(!world.repo.join(".frites").exists() && !world.home().join(".frites").exists());
    world.assert_clean();
    world.git(["switch", "-q", "main"]);
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
    whole_way(&world, &linked);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    world.repo = linked;
    world.assert_clean();
}

/// `core.preferSymlinkRefs` makes such links.
#[test]
fn link_to_a_ref_is_a_symbolic_ref() {
    for setting in ["false", "true"] {
        let world = World::new();
        world.git(["config", "core.preferSymlinkRefs", setting]);
        let link = "ln -sf refs/heads/main .git/HEAD; mkdir -p .git/refs/tags; \
            ln -s refs/heads/main .git/refs/tags/link";
        world.sh(&world.repo, link).expect(0);
        whole_way(&world, &world.repo);
        assert_eq!(world.git(["rev-parse", "refs/tags/link"]), world.git(["rev-parse", "main"]));
        world.assert_clean();
        let refused = world.frites(["apply", "--merge", "--into", "main", "1"]);
        assert!(!refused.stderr.contains("checked out"), "{}", refused.stderr);
        world.sh(&world.repo, "git switch -q main; ln -sf refs/heads/main .git/HEAD").expect(0);
        let linked = world.home().join("linked");
        let add = ["-c", "core.preferSymlinkRefs=false", "worktree", "add", "-q"];
        world.git(add.iter().copied().chain([linked.to_str().unwrap()]));
        let refused = world.frites_in(&linked, ["apply", "--merge", "--into", "main", "1"]);
        refused.refuses(128, "the branch 'main' is checked out in");
    }
}

#[test]
fn git_directory_is_found_by_a_setting_or_a_link() {
    for (init, script) in [
        ("--separate-git-dir=../store", "git config core.worktree \"$PWD\""),
        ("--quiet", "mv .git ../store; ln -s ../store .git"),
    ] {
        let world = made("repo", &[init]);
        world.sh(&world.repo, script).expect(0);
        whole_way(&world, &world.repo);
        world.sh(&world.repo, "git switch -q main; git worktree add -q ../linked").expect(0);
        let answer = world.frites_in(&world.home().join("linked"), ["apply", "--undo"]).expect(0);
        assert_eq!(answer.out(), "frites/apply/1\n");
    }
}

/// A repository with a submodule `sub`, initialised.
fn with_submodule() -> World {
    let world = World::new();
    let library = world.home().join("library");
    fs::create_dir(&library).unwrap();
    world.git_in(&library, ["init", "-q", "-b", "main"]);
    write(&library.join("README"), "library\n");
    write(&library.join("src/lib.txt"), "library\n");
    world.git_in(&library, ["add", "-A"]);
    world.git_in(&library, ["commit", "-q", "-m", "library"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    world.git(add.iter().copied().chain([library.to_str().unwrap(), "sub"]));
    world.commit("submodule");
    world
}

#[test]
fn submodule_is_a_repository_of_its_own() {
    let mut world = with_submodule();
    let sub = world.repo.join("sub");
    let pinned = world.git(["rev-parse", "HEAD:sub"]);
    whole_way(&world, &sub);
    assert!(world.repo.join(".git/modules/sub/.frites/runs/1").exists());
    assert!(!sub.join(".frites").exists() && !world.repo.join(".frites").exists());
    assert_eq!(
        world.git(["for-each-ref", "refs/frites", "refs/heads/frites"]),
        "",
        "the outer one has no part"
    );
    assert_eq!(world.git_in(&sub, ["rev-parse", "main"]), pinned);
    world.assert_clean();
    world.repo = sub;
    world.assert_clean();
}

#[test]
fn judged_checkout_has_files_of_initialised_submodules() {
    let world = with_submodule();
    let pinned = world.git(["rev-parse", "HEAD:sub"]);
    assert_eq!(win(&world, &world.repo), "1");
    let test = "test \"$(cat sub/README)\" = library && grep -qx better README";
    world.frites(["judge", "1", "--test", test]).expect(0);
    assert_eq!(world.frites(["apply", "-q", "-m", "Land"]).expect(0).out(), "frites/apply/1\n");
    assert_eq!(world.git(["rev-parse", "HEAD:sub"]), pinned);
    assert_eq!(fs::read(world.repo.join("sub/README")).unwrap(), b"library\n");
    assert_eq!(world.git(["status", "--porcelain"]), "");
    // One that the user has not got is not fetched.
    world.git(["submodule", "deinit", "-q", "-f", "sub"]);
    world.frites(["judge", "1", "--test", "test -d sub && test ! -e sub/README"]).expect(0);
    world.assert_clean();
}

/// Of the user's own checkout, wherever that is asked: with the submodules that are in others.
#[test]
fn judged_checkout_has_nested_submodules() {
    let world = with_submodule();
    let middle = world.home().join("middle");
    let script = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
        git init -q middle; cd middle; git submodule --quiet add ../library inner; git commit -qm middle; cd ../repo
        git submodule --quiet add ../middle mid; git submodule --quiet update --init --recursive; git commit -qam mid";
    world.sh(&world.home(), script).expect(0);
    assert!(middle.exists());
    world.attempts(&["echo better > README", "echo good > README"]);
    let test =
        "test \"$(cat mid/inner/README sub/README | uniq)\" = library && test -f mid/.gitmodules";
    for dir in [world.repo.clone(), world.worktree("1/c1")] {
        world.frites_in(&dir, ["judge", "--no-cache", "1", "--test", test]).expect(0);
    }
    world.assert_clean();
}

#[test]
fn submodule_landing_can_be_rolled_back() {
    let world = with_submodule();
    let bump = "git -C ../library commit -q --allow-empty -m two; git -C sub fetch -q";
    world.sh(&world.repo, bump).expect(0);
    let two = world.git_in(&world.home().join("library"), ["rev-parse", "HEAD"]);
    world.attempts(&[&format!("git update-index --cacheinfo 160000,{two},sub")]);
    world.frites(["judge", "--test", "test -f sub/README"]).expect(0);
    for message in [&["-m", "x"][..], &[]] {
        world.frites([&["apply"][..], message].concat()).expect(0);
        assert_eq!(world.git(["rev-parse", ":sub"]), two);
        // As after `git switch`: what is checked out there is the user's to move.
        world.frites(["apply", "--branch", "y"]).refuses(128, "has uncommitted changes: sub");
        world.frites(["apply", "--undo"]).expect(0);
        assert_eq!(world.git(["status", "--porcelain"]), "");
    }
    world.frites(["apply", "-m", "x"]).expect(0);
    let hint = world.frites(["apply", "--branch", "y", "-m", "y"]).expect(128).stderr;
    assert!(hint.contains("put them aside with `git submodule update`"), "{hint}");
    world.git(["submodule", "--quiet", "update"]);
    world.frites(["apply", "--undo"]).expect(0);
    world.git(["submodule", "--quiet", "update"]);
    world.assert_clean();
}

#[test]
fn commands_work_in_a_shallow_clone() {
    let mut world = World::new();
    world.write("src/lib.txt", "second\n");
    world.commit("second");
    let (origin, clone) =
        (format!("file://{}", world.repo.display()), world.home().join("shallow"));
    world.git(["clone", "-q", "--depth", "1", &origin, clone.to_str().unwrap()]);
    assert_eq!(world.git_in(&clone, ["rev-list", "--count", "HEAD"]), "1");
    whole_way(&world, &clone);
    assert_eq!(world.git_in(&clone, ["rev-parse", "--is-shallow-repository"]), "true");
    world.repo = clone;
    world.assert_clean();
}

#[test]
fn sparse_checkout_stays_sparse_and_loses_nothing() {
    for cone in ["--cone", "--no-cone"] {
        let world = World::new();
        world.write("docs/guide.txt", "guide\n");
        let base = world.commit("docs");
        world.git([
            "sparse-checkout",
            "set",
            cone,
            if cone == "--cone" { "src" } else { "/*\n!/docs/" },
        ]);
        assert!(!world.repo.join("docs").exists());
        whole_way(&world, &world.repo);
        assert!(!world.repo.join("docs").exists(), "the user's checkout is as sparse as it was");
        assert_eq!(
            world.git(["rev-parse", "HEAD:docs"]),
            world.git(["rev-parse", &format!("{base}:docs")])
        );
        // The whole tree is judged; a new file outside the user's sparse cone is an edit like any
        // other.
        world.git(["switch", "-q", "main"]);
        let run = world.spawn(["-n", "1"]);
        write(&world.worktree(&format!("{run}/c1")).join("docs/new.txt"), "new\n");
        let judged =
            world.frites(["judge", "--test", "test -f docs/guide.txt && test -f docs/new.txt"]);
        assert!(judged.expect(0).out().contains("\nsingle: "));
        assert_eq!(
            world.frites(["diff", &run, "--name-status"]).expect(0).out(),
            "# 2/c1\nA\tdocs/new.txt\n"
        );
        world.assert_clean();
    }
}

#[test]
fn run_inside_a_hook_leaves_the_users_commit_and_index() {
    // git sets GIT_INDEX_FILE to another file for each of these ways to commit.
    let ways: [&[&str]; 3] =
        [&["commit", "-qm", "x"], &["commit", "-qam", "x"], &["commit", "-qm", "x", "README"]];
    for hook in ["pre-commit", "post-commit"] {
        for way in ways {
            let (plain, world) = (World::new(), World::new());
            let script = "#!/bin/sh\nset -e\nenv | grep ^GIT_ > \"$HOME/seen\"\nrun=$(git frites spawn -q -n 1)\n\
                echo hooked > \"$(git frites path $run)/src/lib.txt\"\ngit frites diff $run --name-only > \"$HOME/diff\"\n\
                git frites judge -q --test 'grep -qx hooked src/lib.txt' > \"$HOME/winner\"\n";
            let file = world.repo.join(".git/hooks").join(hook);
            write(&file, script);
            make_executable(&file);
            for world in [&plain, &world] {
                world.write("staged", "staged\n");
                world.git(["add", "staged"]);
                world.write("README", "edited\n");
                world.git(way);
            }
            let read = |name: &str| fs::read_to_string(world.home().join(name)).unwrap();
            assert!(read("seen").contains("GIT_INDEX_FILE="), "{}", read("seen"));
            assert_eq!(
                (read("diff").as_str(), read("winner").as_str()),
                ("# 1/c1\nsrc/lib.txt\n", "1/c1\n"),
                "{hook}"
            );
            for args in
                [&["rev-parse", "HEAD"][..], &["ls-files", "--stage"], &["status", "--porcelain"]]
            {
                assert_eq!(world.git(args), plain.git(args), "{hook} {way:?} {args:?}");
            }
            let base = if hook == "pre-commit" { "HEAD^" } else { "HEAD" };
            let base = world.git(["rev-parse", base]);
            assert_eq!(
                world.frites(["status", "--json"]).expect(0).json()["runs"][0]["base"],
                base.as_str()
            );
            world.assert_clean();
        }
    }
}

#[test]
fn git_variables_of_a_hook_select_the_repository() {
    let mut world = World::new();
    let index = fs::read(world.repo.join(".git/index")).unwrap();
    world.set_env("GIT_DIR", world.repo.join(".git"));
    world.set_env("GIT_WORK_TREE", world.repo.clone());
    world.set_env("GIT_INDEX_FILE", world.repo.join(".git/index"));
    let elsewhere = world.home();
    let sees =
        "git rev-parse --show-toplevel > top; echo x > file; git add -A; git commit -qm mine";
    world.frites_in(&elsewhere, ["spawn", "-q", "-n", "1", "--", "sh", "-c", sees]).expect(0);
    assert_eq!(fs::read(world.repo.join(".git/index")).unwrap(), index);
    assert!(!elsewhere.join(".frites").exists());
    let top = world.git(["show", "refs/frites/1/c1:top"]);
    assert_eq!(
        Path::new(&top),
        world.worktree("1/c1"),
        "the command finds its own worktree, not the hook's"
    );
    let names = world.frites_in(&elsewhere, ["diff", "1", "--name-only"]).expect(0).out();
    assert_eq!(names, "# 1/c1\nfile\ntop\n");
    assert_eq!(world.git(["log", "--format=%s", "main"]), "base");
}

#[test]
fn repository_of_another_owner_is_refused_as_by_git() {
    let world = World::new();
    world.spawn(["-n", "1"]);
    // Only the superuser can give files away; for others git's own check cannot be provoked.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    world.run(&world.repo, "chown", ["-R", "12345", "."]).expect(0);
    world.run(&world.repo, "git", ["status"]).expect(128);
    for verb in ["spawn", "status", "diff"] {
        let answer = world.frites([verb]).refuses(128, "detected dubious ownership in repository");
        assert!(
            answer.stderr.contains("hint: trust it with `git config --global --add safe.directory")
        );
        assert_eq!(
            (answer.stderr.lines().count(), answer.out().as_str()),
            (2, ""),
            "{}",
            answer.stderr
        );
    }
    // git takes the setting from the command line, too.
    let answer = world.sh(
        &world.repo,
        "git -c safe.directory='*' frites status >&2 && git -c safe.directory=\"$PWD\" frites diff
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
        echo better > \"$(git frites path 1/c1)/README\"
        git frites judge -q --test 'grep -q better README' && git frites apply -q -m Land",
    );
    assert!(answer.expect(0).out().ends_with("1/c1\nfrites/apply/1\n"));
    world.frites(["status"]).refuses(128, "detected dubious ownership in repository");
    world.git(["config", "--global", "--add", "safe.directory", world.repo.to_str().unwrap()]);
    world.frites(["status"]).expect(0);
}

/// git's message, and a hint.
#[test]
fn repository_that_git_refuses_is_refused_with_a_hint() {
    for script in [
        "git config core.repositoryFormatVersion 99",
        "git config core.repositoryFormatVersion x",
        "git config extensions.objectFormat foo",
        "echo '[' >> .git/config",
        "echo '[' >> ~/.gitconfig",
        "rm .git/HEAD",
        "mv .git ../gone; echo gitdir: ../nowhere > .git",
    ] {
        let world = World::new();
        world.sh(&world.repo, script).expect(0);
        let git = world.run(&world.repo, "git", ["rev-parse", "--git-dir"]).expect(128);
        let first = git.stderr.lines().next().unwrap().split_once(": ").unwrap().1;
        let answer = world.run(&world.repo, "git-frites", ["status"]).refuses(128, first);
        assert_eq!(answer.stderr.lines().count(), 2, "{script}: {}", answer.stderr);
    }
}

#[test]
fn unreadable_repository_is_refused_in_one_line() {
    let formats = [
        ("--ref-format=reftable", "its refs are not stored as files"),
        ("--object-format=sha256", "its object ids are not SHA-1, but sha256"),
    ];
    for (format, words) in formats {
        let world = made("repo", &[format]);
        let before = world.belongings();
        for verb in ["spawn", "status"] {
            let answer = world.frites([verb]).refuses(128, words);
            assert_eq!(
                (answer.stderr.lines().count(), answer.out().as_str()),
                (2, ""),
                "{}",
                answer.stderr
            );
        }
        assert!(!world.repo.join(".frites").exists());
        assert_eq!(world.belongings(), before);
    }
    let world = World::new();
    world.sh(&world.repo, "git pack-refs --all; ln -sf refs/heads/main .git/HEAD").expect(0);
    let words = "HEAD is a link to 'refs/heads/main', which is no file";
    let answer = world.frites(["status"]).refuses(128, words);
    let (_, repair) = answer.stderr.split_once('`').unwrap();
    world.sh(&world.repo, repair.split_once('`').unwrap().0).expect(0);
    world.frites(["status"]).expect(0);
    // The hint is enough.
    let mut world = made("repo", &["--ref-format=reftable"]);
    let clone = world.home().join("clone");
    world.git(["clone", "-q", "--ref-format=files", ".", clone.to_str().unwrap()]);
    world.repo = clone;
    whole_way(&world, &world.repo);
    world.assert_clean();
}

#[test]
fn root_of_worktrees_is_outside_of_checkouts_or_ignored() {
    let world = World::new();
    let spawn = |root: &str| {
        world.git(["config", "frites.spawn.worktree-root", root]);
        world.frites(["spawn", "-n", "1"])
    };
    let state = || (world.files(), world.git(["for-each-ref"]), world.git(["worktree", "list"]));
    let before = state();
    for (root, why) in [
        ("", "is empty"),
        ("~nobody/wt", "begins with a `~`"),
        (".", "is in a checkout"),
        ("trees", "is in a checkout"),
        (".git/refs/heads", "is in the git directory"),
        (".frites/runs", "is in the git directory or in '.frites'"),
        ("/dev/null/x", "is not in a directory"),
        ("README", "is not in a directory"),
    ] {
        spawn(root).refuses(128, &format!("spawn.worktree-root: '{root}' {why}"));
        assert_eq!(state(), before, "{root}");
    }
    let place = world.run(&world.repo, "sh", ["-c", "cd && pwd -P"]).expect(0).out();
    let answer = spawn("~/wt").expect(0);
    assert_eq!(answer.out(), format!("1/c1\t{}/wt/1/c1\n", place.trim()));
    fs::write(world.repo.join(".git/info/exclude"), "/trees\n").unwrap();
    let answer = spawn("trees").expect(0);
    assert!(answer.out().ends_with("/repo/trees/2/c1\n"), "{}", answer.out());
    assert_eq!(world.git(["status", "--porcelain"]), "");
}

#[test]
fn worktrees_may_lie_outside_the_repository() {
    for root in ["../trees", "/absolute", "links/../../trees"] {
        let world = World::new();
        let trees = world.home().join("trees");
        let root =
            if root == "/absolute" { trees.to_str().unwrap().to_owned() } else { root.to_owned() };
        fs::create_dir(world.repo.join("links")).unwrap();
        world.git(["config", "frites.spawn.worktree-root", &root]);
        let before = world.belongings();
        let answer = world.frites(["spawn", "-n", "1"]).expect(0);
        assert_eq!(answer.out(), format!("1/c1\t{}\n", trees.join("1/c1").display()));
        assert_eq!(world.belongings(), before);
        // An attempt there cannot choose its own judge, nor land itself.
        let inside = trees.join("1/c1");
        write(&inside.join(".frites.toml"), "[oracle]\ntest = \"true\"\n");
        for detached in [false, true] {
            if detached {
                world.git_in(&inside, ["switch", "-q", "--detach"]);
            }
            world.frites_in(&inside, ["judge"]).expect(3);
            world
                .frites_in(&inside, ["apply", "--allow-unverified"])
                .refuses(128, "this is a candidate's worktree");
        }
        world.git(["config", "--unset", "frites.spawn.worktree-root"]);
        world.frites(["clean", "-q", "1"]).expect(0);
        assert!(!trees.join("1").exists(), "the run knows where its worktrees are");
        whole_way(&world, &world.repo);
        world.assert_clean();
    }
}

#[test]
fn worktree_configuration_does_not_choose_the_test() {
    let world = World::new();
    world.write(".frites.toml", "[oracle]\ntest = \"false\"\n");
    world.commit("configure");
    world.spawn(["-n", "1"]);
    let inside = world.worktree("1/c1");
    write(&inside.join(".frites.toml"), "[oracle]\ntest = \"true\"\n");
    for dir in [&inside, &inside.join("src"), &world.repo] {
        assert!(world.frites_in(dir, ["judge"]).expect(1).out().contains("near-miss: "));
    }
    write(&inside.join(".frites.toml"), "nonsense");
    world.frites_in(&inside, ["judge"]).expect(1);
    world.assert_clean();
}

#[test]
fn another_repository_in_the_place_of_a_worktrees_git_is_refused() {
    let other = "git init -q \"$HOME/other\"; echo \"gitdir: $HOME/other/.git\" >.git";
    for script in [other, "rm .git; git init -q", "rm .git; git init -q --bare ."] {
        let world = World::new();
        world.spawn(["-n", "1"]);
        let dir = world.worktree("1/c1");
        world.sh(&dir, script).expect(0);
        world.sh(&dir, "mkdir below").expect(0);
        let answer = world.frites_in(&dir.join("below"), ["status"]);
        let answer = answer.refuses(128, "is a worktree of the repository in");
        assert!(answer.stderr.contains("worktree repair"), "{}", answer.stderr);
        world.frites(["status"]).expect(0);
        fs::rename(dir.join(".git"), world.home().join("away")).unwrap_or_default();
        world.git(["worktree", "repair"]);
        world.frites_in(&dir, ["status"]).expect(0);
    }
}

/// git obeys the configuration of a repository that lies in a directory of another one.
#[test]
fn a_repository_that_an_attempt_made_in_its_worktree_or_landed_is_not_used() {
    let world = World::new();
    let script = "git init -q nested; git -C nested config frites.oracle.test 'touch ran'
        mkdir -p bare/objects bare/refs; touch bare/objects/x bare/refs/x; echo 'ref: refs/heads/main' > bare/HEAD
        printf '[core]\\n\\tbare = false\\n\\tworktree = ..\\n[frites \"oracle\"]\\n\\ttest = true\\n' > bare/config";
    world.attempts(&[script]);
    let worktree = world.worktree("1/c1");
    let refused = |directory: &Path, why: &str| {
        world.frites_in(directory, ["status"]).refuses(128, why);
    };
    refused(&worktree.join("nested"), "in a candidate's worktree of the repository in");
    refused(&worktree.join("bare"), "in a candidate's worktree of the repository in");
    world.frites_in(&worktree, ["status"]).expect(0);
    world.frites_in(&worktree.join("src"), ["status"]).expect(0);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    world.frites(["apply", "-q", "-m", "x"]).expect(0);
    refused(&world.repo.join("bare"), "looks like a repository, but is a directory of");
    // A repository of the user, which the one around it does not track, is used.
    world.git(["init", "-q", "--bare", "mine"]);
    world.frites_in(&world.repo.join("mine"), ["status"]).expect(0);
}
