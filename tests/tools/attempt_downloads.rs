//! What the setup of a base downloaded lies below the HOME of its attempts' own.
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::common::sealed::sealed;
use crate::common::{World, answer, poll};
use crate::tool::{CARGO, NAMESPACES, ORDINARY_USER, trials};
use crate::traces::{files_below, frites_as_ordinary_user, shared_lines};

trials! {
    an_attempt_finds_the_downloads_and_changes_none_of_them: [NAMESPACES];
    the_same_as_an_ordinary_user: [NAMESPACES, ORDINARY_USER];
    an_attempt_builds_offline_with_what_cargo_downloaded: [NAMESPACES, CARGO];
    downloads_stay_while_an_attempt_uses_them: [NAMESPACES];
    what_the_tests_of_the_base_left_is_not_among_them: [NAMESPACES];
    a_later_commit_has_those_of_its_ancestor_and_another_history_has_none: [NAMESPACES];
}

/// A world whose attempts are guarded and whose setup downloads a file into HOME, unless there is a
/// file `~/offline`. The verdict on a first run has taken it. `~/shared/downloads` counts what
/// judging downloads: attempts write to layers of their own there.
fn world_with_downloads() -> World {
    let mut world = sealed();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("FRITES_SPAWN_HOME", "private");
    let setup = "test -e ~/.cache/x/file || { test ! -e ~/offline; mkdir -p ~/.cache/x; \
                 echo got | tee -a ~/shared/downloads > ~/.cache/x/file; }";
    world.attempts(&["echo more >> README"]);
    world.git(["config", "frites.spawn.setup", &format!("set -e; {setup}")]);
    let test = "grep -q got ~/.cache/x/file && test ! -e ~/.cache/x/made && echo left > ~/left";
    world.git(["config", "frites.oracle.test", test]);
    world.frites(["judge"]).expect(0);
    fs::write(world.home().join("offline"), "").unwrap();
    world
}

/// The files in the layers of the base that judging keeps.
fn kept_layers(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files_below(&world.home().join("cache/git-frites"), |path| {
        path.extension().is_some_and(|end| end == "lock")
    });
    // A file says whose layers they are.
    files.retain(|path, _| {
        path.components().any(|part| part.as_os_str() == "layers") && !path.ends_with("repository")
    });
    files
}

/// Fails unless the download is there; then changes, removes and adds what it can.
const ATTEMPT: &str = "grep -q got ~/.cache/x/file; echo more >> README; echo made > ~/.cache/x/made; \
                       echo forged > ~/.cache/x/file; rm -r ~/.cache; mkdir ~/.cache; test ! -e ~/.cache/x";

fn an_attempt_finds_the_downloads_and_changes_none_of_them() {
    let world = world_with_downloads();
    let before = kept_layers(&world);
    assert!(before.keys().any(|path| path.ends_with(".cache/x/file")), "{before:?}");
    world.frites(["spawn", "-n", "2", "-j", "2", "--", "sh", "-ec", ATTEMPT]).expect(0);
    assert_eq!(kept_layers(&world), before);
    let again = "test ! -e ~/.cache/x; echo more >> README";
    world.frites(["retry", "2/c1", "--", "sh", "-ec", again]).expect(0);
    world.frites(["judge", "--cold", "--no-cache"]).expect(0);
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", ATTEMPT]).expect(0);
    assert_eq!(shared_lines(&world, "downloads"), ["got"]);
    assert!(!world.home().join(".cache").exists());
    world.assert_clean();
}

fn the_same_as_an_ordinary_user() {
    let world = world_with_downloads();
    let before = kept_layers(&world);
    frites_as_ordinary_user(&world, ["spawn", "-n", "1", "--", "sh", "-ec", ATTEMPT]).expect(0);
    assert_eq!(kept_layers(&world), before);
}

/// The library lies in a git repository of its own, which is gone when the attempt begins.
fn an_attempt_builds_offline_with_what_cargo_downloaded() {
    let mut world = sealed();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("FRITES_SPAWN_HOME", "private");
    world.set_env("CARGO_HOME", world.home().join(".cargo"));
    let library = world.home().join("library");
    fs::create_dir(&library).unwrap();
    let package =
        |name: &str| format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2021'\n");
    crate::common::write(&library.join("Cargo.toml"), package("library"));
    crate::common::write(&library.join("src/lib.rs"), "pub const VALUE: u8 = 7;\n");
    world.sh(&library, "git init -q; git add -A; git commit -qm library").expect(0);
    let url = format!("file://{}", library.display());
    let manifest = format!("{}[dependencies]\nlibrary = {{ git = '{url}' }}\n", package("tiny"));
    world.write("Cargo.toml", manifest);
    let source = "#[test]\nfn is_seven() { assert_eq!(library::VALUE, 7); }\n";
    world.write("src/lib.rs", source);
    world.write(".gitignore", "target\n");
    world.sh(&world.repo, "cargo generate-lockfile -q; rm -r ~/.cargo").expect(0);
    world.commit("a project with a dependency");
    world.attempts(&["echo more >> README"]);
    world.git(["config", "frites.oracle.test", "cargo test -q"]);
    world.frites(["judge"]).expect(0);
    assert!(!world.home().join(".cargo").exists(), "the user has not downloaded it");
    fs::rename(&library, world.home().join("gone")).unwrap();
    let attempt = "cargo test -q --offline --locked; echo more >> README";
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", attempt]).expect(0);
    world.frites(["judge"]).expect(0);
    world.assert_clean();
}

fn downloads_stay_while_an_attempt_uses_them() {
    let world = world_with_downloads();
    let gate = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; echo > begun; until test -e open; do sleep 0.01; done; cd -; {ATTEMPT}",
        gate.path().display()
    );
    let words = ["spawn", "-n", "1", "--", "sh", "-ec", &script];
    let mut command = world.command(&world.repo, "git-frites", words);
    let (out, error) = (std::process::Stdio::piped(), std::process::Stdio::piped());
    let child = command.stdout(out).stderr(error).spawn().unwrap();
    poll(|| gate.path().join("begun").exists());
    let before = kept_layers(&world);
    world.frites(["clean", "--cache"]).expect(0);
    assert_eq!(kept_layers(&world), before);
    fs::write(gate.path().join("open"), "").unwrap();
    answer(&child.wait_with_output().unwrap()).expect(0);
    world.frites(["clean", "--cache"]).expect(0);
    assert_eq!(kept_layers(&world), BTreeMap::new());
}

fn what_the_tests_of_the_base_left_is_not_among_them() {
    let world = world_with_downloads();
    assert!(kept_layers(&world).keys().any(|path| path.ends_with("left")));
    let attempt = format!("test ! -e ~/left; {ATTEMPT}");
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", &attempt]).expect(0);
}

fn a_later_commit_has_those_of_its_ancestor_and_another_history_has_none() {
    let world = world_with_downloads();
    world.write("README", "later\n");
    world.commit("a later commit");
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", ATTEMPT]).expect(0);
    world.git(["config", "frites.spawn.setup", ""]);
    world.git(["checkout", "-q", "--orphan", "other"]);
    world.write("README", "another\n");
    world.commit("another history");
    let attempt = "test ! -e ~/.cache; echo more >> README";
    world.frites(["spawn", "-n", "1", "--", "sh", "-ec", attempt]).expect(0);
}
