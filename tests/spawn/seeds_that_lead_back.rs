//! Seeds that lead back to a checkout of the repository: a verdict over them is not verified.
use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{World, files_below, make_executable};

/// A repository whose virtual environment is a seed, as a stand-in without Python: its `bin/check`
/// is what tests run.
fn world() -> World {
    let world = World::new();
    world.write(".gitignore", ".venv/\nnode_modules/\n");
    world.write("src/lib.txt", "base\n");
    world.commit("ignore");
    world.git(["config", "frites.seed.copy", ".venv"]);
    world.write(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12\n");
    world
}

const SITE: &str = ".venv/lib/python3.12/site-packages";

/// What a user sees of a seed that leads back.
#[test]
fn seed_that_leads_back_makes_the_verdict_unverified() {
    crate::common::in_the_open_world();
    let world = world();
    let repo = world.repo.display().to_string();
    let link = world.home().join("by-link");
    symlink(&world.repo, &link).unwrap();
    world.git(["worktree", "add", "-q", "--detach", "../aside"]);
    let aside = world.home().join("aside");
    let cases = [
        ("__editable__.demo-0.1.pth", format!("{repo}/src\n"), format!("{repo}/src")),
        ("demo.egg-link", format!("{repo}\n.\n"), repo.clone()),
        (
            "__editable___demo_finder.py",
            format!("MAPPING = {{'demo': '{repo}/src/demo'}}\n"),
            format!("{repo}/src/demo"),
        ),
        (
            "demo-0.1.dist-info/direct_url.json",
            format!("{{\"dir_info\": {{\"editable\": true}}, \"url\": \"file://{repo}\"}}"),
            repo.clone(),
        ),
        // By another name, and in another checkout.
        ("demo.pth", format!("{}/src\n", link.display()), format!("{}/src", link.display())),
        ("demo.pth", format!("{}\n", aside.display()), aside.display().to_string()),
        ("loader.py", format!("ROOT = \"{repo}/src\"\n"), format!("{repo}/src")),
    ];
    world.attempts(&["echo 1 >a"]);
    for (name, text, target) in cases {
        let file = format!("{SITE}/{name}");
        world.write(&file, &text);
        let answer = world.frites(["judge", "--json", "--test", "true"]).expect(3);
        let words = format!(
            "warning: the seed '{file}' leads to '{target}': commands may use that checkout's files in \
             place of the judged ones"
        );
        assert!(answer.stderr.lines().any(|l| l == words), "{words}:\n{}", answer.stderr);
        assert!(answer.stderr.contains("spawn.setup"), "{}", answer.stderr);
        let verdict = answer.json();
        assert_eq!(verdict["terms"]["leads_back"], serde_json::json!([file]), "{verdict}");
        assert_eq!(verdict["verified"], false);
        world.frites(["apply"]).refuses(1, &format!("the seed '{file}' leads to"));
        world.frites(["judge", "--replay"]).expect(3);
        fs::remove_file(world.repo.join(&file)).unwrap();
    }
    world.frites(["judge", "--test", "true"]).expect(0);
    world.assert_clean();
}

#[test]
fn link_to_another_checkout_leads_back_and_a_link_within_does_not() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "frites.seed.copy", "node_modules"]);
    world.git(["worktree", "add", "-q", "--detach", "../aside"]);
    fs::create_dir_all(world.repo.join("node_modules/@me")).unwrap();
    // Workspaces, by the paths that npm and others write; and a package from elsewhere.
    symlink("../../src", world.repo.join("node_modules/@me/relative")).unwrap();
    symlink(world.repo.join("src"), world.repo.join("node_modules/@me/absolute")).unwrap();
    symlink("/usr", world.repo.join("node_modules/elsewhere")).unwrap();
    world.attempts(&["echo judged >src/lib.txt"]);
    let test = "for d in relative absolute; do grep -qx judged node_modules/@me/$d/lib.txt || exit 1; done";
    world.frites(["judge", "--test", test]).expect(0);
    symlink("../../aside/src", world.repo.join("node_modules/aside")).unwrap();
    let answer = world.frites(["judge", "--test", test]).expect(3);
    assert!(
        answer.stderr.contains("warning: the seed 'node_modules/aside' leads to '"),
        "{}",
        answer.stderr
    );
}

/// A script of a virtual environment starts the interpreter of the one that was copied.
#[test]
fn script_that_starts_a_program_of_the_users_own_seed_is_only_named() {
    crate::common::in_the_open_world();
    let world = world();
    let repo = world.repo.display().to_string();
    fs::create_dir_all(world.repo.join(".venv/bin")).unwrap();
    symlink("/bin/sh", world.repo.join(".venv/bin/python3")).unwrap();
    for name in ["pip", "pytest"] {
        world.write(format!(".venv/bin/{name}"), format!("#!{repo}/.venv/bin/python3\ntrue\n"));
        make_executable(&world.repo.join(".venv/bin").join(name));
    }
    world.write(".venv/bin/activate", format!("VIRTUAL_ENV={repo}/.venv\n"));
    let made = format!("home = /usr/bin\ncommand = /usr/bin/python3 -m venv {repo}/.venv\n");
    world.write(".venv/pyvenv.cfg", made);
    world.attempts(&["echo 1 >a"]);
    let answer = world.frites(["judge", "--test", ".venv/bin/pytest"]).expect(0);
    let words = "note: the seed '.venv/bin/activate' and 2 more lead to your own copy: a command that installs \
                 something this way writes to your checkout";
    assert!(answer.stderr.contains(words.trim_start_matches("note: ")), "{}", answer.stderr);
    world.frites(["apply", "-m", "land"]).expect(0);
}

#[test]
fn landing_on_a_moved_head_is_not_verified_with_a_seed_that_leads_back() {
    crate::common::in_the_open_world();
    let world = world();
    world.judged("true", &["echo 1 >a"]);
    world.write(format!("{SITE}/x.pth"), format!("{}/src\n", world.repo.display()));
    world.write("moved", "1\n");
    world.commit("moved");
    world.frites(["apply", "-m", "land"]).refuses(1, "leads to");
    world.frites(["apply", "--no-rejudge", "--allow-unverified", "-m", "land"]).expect(0);
}

#[test]
fn linked_seed_that_is_a_checkout_is_left_out() {
    crate::common::in_the_open_world();
    let world = world();
    symlink(".", world.repo.join("self")).unwrap();
    symlink(&world.repo, world.repo.join(".venv/root")).unwrap();
    symlink(world.home(), world.repo.join("above")).unwrap();
    world.write(".git/info/exclude", "self\nabove\n");
    for seed in ["self", "above"] {
        world.git(["config", "--replace-all", "frites.seed.link", seed]);
        let run = world.spawn(["-n", "1"]);
        let copied = world.worktree(&format!("{run}/c1")).join(seed);
        let found = files_below(&copied);
        let bad = |p: &std::path::PathBuf| {
            let p = p.strip_prefix(&copied).unwrap();
            p.iter().any(|part| part == ".git" || part == ".frites")
        };
        assert!(!found.iter().any(bad), "{found:?}");
    }
    world.git(["config", "--replace-all", "frites.seed.link", "self"]);
    let answer = world.frites(["spawn", "-n", "1"]).expect(0);
    let words = "seed.link: 'self' leads to a checkout of this repository, so it is not a seed";
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
}

#[test]
fn seed_that_is_missing_is_named_and_empty_directories_are_copied() {
    crate::common::in_the_open_world();
    let world = world();
    world.git(["config", "frites.seed.link", "node_modules"]);
    world.git(["config", "--add", "frites.seed.link", "gone"]);
    fs::create_dir_all(world.repo.join("node_modules/empty/deep")).unwrap();
    fs::create_dir_all(world.repo.join(".venv/var")).unwrap();
    world.write("node_modules/file", "1\n");
    world.sh(&world.repo, "mkfifo node_modules/fifo").expect(0);
    let answer = world.frites(["spawn", "-n", "1"]).expect(0);
    for words in [
        "seed.link: your checkout has no 'gone'",
        "the seed 'node_modules/fifo' is left out: it is neither a file nor a directory nor a link",
    ] {
        assert!(answer.stderr.contains(words), "{words}: {}", answer.stderr);
    }
    let dir = world.worktree("1/c1");
    assert!(dir.join("node_modules/empty/deep").is_dir() && dir.join(".venv/var").is_dir());
    assert!(!dir.join("node_modules/fifo").exists());
    assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
    let test = "test -d node_modules/empty/deep && test -d .venv/var";
    world.sh(&dir, "echo 1 >a").expect(0);
    world.frites(["judge", "--test", test]).expect(0);
}
