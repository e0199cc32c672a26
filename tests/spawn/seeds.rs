//! Seeds: what git does not track and a worktree needs; `spawn.setup`; room on the disk.
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::common::{World, files_below, write};

/// A repository that ignores what most ignore, with these settings.
fn world(settings: &[(&str, &str)]) -> World {
    let world = World::new();
    world.write(".gitignore", ".env\n*.local\nnode_modules/\nbuild/\n");
    world.commit("ignore");
    for (key, value) in settings {
        world.git(["config", "--add", &format!("frites.{key}"), value]);
    }
    world
}

const COPY_ENV: &[(&str, &str)] = &[("seed.copy", ".env*")];

/// The untracked files of a worktree, by `git ls-files`.
fn extra(world: &World, address: &str) -> Vec<String> {
    let answer = world.run(&world.worktree(address), "git", ["ls-files", "-z", "-o"]).expect(0);
    let mut paths: Vec<String> = answer.out().split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths
}

/// The paths that a candidate changes, by its newest capture.
fn changed(world: &World, address: &str) -> Vec<String> {
    let answer = world.frites(["diff", "--name-only", address]).expect(0);
    answer.out().lines().map(str::to_owned).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn copied_seeds_keep_bytes_modes_links_times_and_are_not_captured() {
    let world = world(&[("seed.copy", ".env*"), ("seed.copy", "/data/"), ("seed.copy", "absent")]);
    world.write(".env", b"SECRET=\xff\n");
    world.write("src/.env.local", "deep\n");
    world.write("data/run.sh", "#!/bin/sh\n");
    for (path, mode) in [(".env", 0o600), ("data/run.sh", 0o755), ("data", 0o750)] {
        fs::set_permissions(world.repo.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("run.sh", world.repo.join("data/link")).unwrap();
    symlink("nowhere", world.repo.join(".env.gone")).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    fs::File::open(world.repo.join(".env")).unwrap().set_modified(old).unwrap();
    let before = world.belongings();
    assert_eq!(world.spawn(["-n", "2"]), "1");
    for name in ["1/c1", "1/c2"] {
        let dir = world.worktree(name);
        assert_eq!(
            extra(&world, name),
            [".env", ".env.gone", "data/link", "data/run.sh", "src/.env.local"]
        );
        assert_eq!(fs::read(dir.join(".env")).unwrap(), b"SECRET=\xff\n");
        assert_eq!(
            [".env", "data/run.sh", "data"].map(|p| mode(&dir.join(p))),
            [0o600, 0o755, 0o750]
        );
        assert_eq!(fs::read_link(dir.join("data/link")).unwrap(), Path::new("run.sh"));
        assert_eq!(fs::read_link(dir.join(".env.gone")).unwrap(), Path::new("nowhere"));
        assert_eq!(fs::metadata(dir.join(".env")).unwrap().modified().unwrap(), old);
        assert_eq!(changed(&world, name), [""; 0]);
    }
    assert_eq!(world.belongings(), before);
    let record = fs::read_to_string(world.repo.join(".frites/runs/1/c1/seeds.toml")).unwrap();
    let blob = world.git(["hash-object", "--no-filters", ".env"]);
    let record: toml::Table = record.parse().unwrap();
    assert_eq!(record[".env"]["file"].as_str(), Some(blob.as_str()));
    assert_eq!(record["data/link"]["link"].as_str(), Some("run.sh"));
    world.assert_clean();
}

/// The settings, the text of `.worktreeinclude`, and what is copied.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[test]
fn seed_patterns_work_as_in_gitignore_and_skip_tracked_files() {
    let world = world(&[]);
    world.write("README", "edited by the user\n");
    for path in [
        ".env",
        "a.local",
        "src/b.local",
        "untracked.txt",
        "new/deep/c.txt",
        "new/deep/d.local",
        "node_modules/m/.env",
        "node_modules/m/index.js",
        "build/keys/one.key",
        "build/keys/two.key",
        "build/keys/notes.txt",
        "build/out.o",
    ] {
        world.write(path, "seed\n");
    }
    // A checkout of the same repository is not part of this one, and git-frites' own state is no
    // seed.
    world.git(["worktree", "add", "-q", "--detach", "build/elsewhere"]);
    let nested = world.repo.join("nested");
    fs::create_dir(&nested).unwrap();
    world.git_in(&nested, ["init", "-q"]);
    write(&nested.join(".env"), "another repository's\n");
    let cases: &[Case<'_>] = &[
        (&[], "", &[]),
        (&[("seed.copy", ".env")], "", &[".env"]),
        (&[("seed.copy", "**/.env")], "", &[".env"]),
        (&[("seed.copy", "README"), ("seed.copy", "src")], "", &["src/b.local"]),
        (
            &[("seed.copy", "*.local"), ("seed.copy", "!b.local")],
            "",
            &["a.local", "new/deep/d.local"],
        ),
        (&[("seed.copy", "/*.local")], "", &["a.local"]),
        (&[("seed.copy", "*.txt")], "", &["new/deep/c.txt", "untracked.txt"]),
        (&[("seed.copy", "new/")], "", &["new/deep/c.txt", "new/deep/d.local"]),
        (&[("seed.copy", "node_modules")], "", &["node_modules/m/.env", "node_modules/m/index.js"]),
        (&[("seed.copy", "node_modules/*/.env")], "", &["node_modules/m/.env"]),
        (&[("seed.copy", "build/**/*.key")], "", &["build/keys/one.key", "build/keys/two.key"]),
        (&[("seed.copy", "build/*.o")], "", &["build/out.o"]),
        (
            &[("seed.copy", "/build")],
            "",
            &["build/keys/notes.txt", "build/keys/one.key", "build/keys/two.key", "build/out.o"],
        ),
        (&[], "# for all tools\r\n\r\n*.local\n!a.local\n", &["new/deep/d.local", "src/b.local"]),
        (&[], "*.txt\nnew/\n", &["new/deep/d.local"]),
        (
            &[("seed.copy", "untracked.*")],
            "/build/keys/t*\n",
            &["build/keys/two.key", "untracked.txt"],
        ),
        (
            &[("seed.copy", "*")],
            "",
            &[
                ".env",
                "a.local",
                "build/keys/notes.txt",
                "build/keys/one.key",
                "build/keys/two.key",
                "build/out.o",
                "new/deep/c.txt",
                "new/deep/d.local",
                "node_modules/m/.env",
                "node_modules/m/index.js",
                "src/b.local",
                "untracked.txt",
            ],
        ),
    ];
    for (at, (settings, include, wanted)) in cases.iter().enumerate() {
        for (key, value) in *settings {
            world.git(["config", "--add", &format!("frites.{key}"), value]);
        }
        if !include.is_empty() {
            world.write(".worktreeinclude", include);
        }
        let run = world.spawn(["-n", "1", "--run", &format!("r{at}")]);
        let address = format!("{run}/c1");
        assert_eq!(extra(&world, &address), *wanted, "{settings:?} {include:?}");
        assert_eq!(fs::read(world.worktree(&address).join("README")).unwrap(), b"hello\n");
        assert_eq!(changed(&world, &address), [""; 0], "{settings:?} {include:?}");
        let _ = fs::remove_file(world.repo.join(".worktreeinclude"));
        // It fails where the key was not set.
        let _ = world.run(&world.repo, "git", ["config", "--unset-all", "frites.seed.copy"]);
        world.frites(["clean", "--forget", &run]).expect(0);
    }
    world.assert_clean();
}

#[test]
fn path_tracked_by_the_base_but_not_by_head_is_no_seed() {
    let world = world(&[("seed.copy", "*"), ("seed.link", "conf"), ("seed.link", "lib")]);
    for path in ["own.cfg", "conf/a.cfg", "lib", "dir"] {
        world.write(path, "the base's\n");
    }
    let base = world.commit("with files");
    world.git(["rm", "-q", "-r", "own.cfg", "conf", "lib", "dir"]);
    world.commit("without");
    for path in ["own.cfg", "conf/a.cfg", "conf/b.cfg", "lib/x", "dir/y", "free.cfg"] {
        world.write(path, "the user's\n");
    }
    let answer = world.frites(["spawn", "-n", "1", "--base", &base]).expect(0);
    for name in ["conf", "lib"] {
        let words = format!("warning: seed.link: the base tracks '{name}', so it is not a seed");
        assert!(answer.stderr.contains(&words), "{}", answer.stderr);
    }
    assert_eq!(extra(&world, "1/c1"), ["conf/b.cfg", "free.cfg"]);
    for path in ["own.cfg", "conf/a.cfg", "lib", "dir"] {
        assert_eq!(fs::read(world.worktree("1/c1").join(path)).unwrap(), b"the base's\n", "{path}");
    }
    world.assert_clean();
}

#[test]
fn seed_outside_the_checkout_is_not_copied() {
    let world = world(&[]);
    write(&world.home().join("outside/secret"), "no seed\n");
    symlink(world.home().join("outside"), world.repo.join("away")).unwrap();
    world.write("inside/.env", "seed\n");
    let before = world.belongings();
    let home = world.home();
    let outside = home.join("outside").to_str().unwrap().to_owned();
    for (key, value, words) in [
        ("seed.link", "../outside", "seed.link: '../outside' leaves the checkout"),
        ("seed.link", "src/../../outside", "leaves the checkout"),
        ("seed.link", &outside, "leaves the checkout"),
        ("seed.link", "/../outside", "leaves the checkout"),
        ("seed.link", "/", "is the checkout itself"),
        ("seed.link", "/.git/hooks", "cannot be a seed"),
        ("seed.link", "away/secret", "lies behind a link"),
        ("seed.link", ".git/hooks", "cannot be a seed"),
        ("seed.link", ".frites", "cannot be a seed"),
        ("seed.link", ".", "is the checkout itself"),
        ("seed.copy", "../outside/*", "seed.copy: '../outside/*' leaves the checkout"),
        ("seed.copy", "a{b", "seed.copy: 'a{b' is not a pattern"),
    ] {
        let variable = format!("GIT_CONFIG_VALUE_0={value}");
        let setting = format!("GIT_CONFIG_KEY_0=frites.{key}");
        let args = ["GIT_CONFIG_COUNT=1", &setting, &variable, "git", "frites", "spawn"];
        world.run(&world.repo, "env", args).refuses(128, words);
        assert!(!world.repo.join(".frites").exists(), "{value}: nothing was made");
    }
    // A pattern that matches a link takes the link; nothing is looked for behind it.
    world.git(["config", "--add", "frites.seed.copy", "away"]);
    world.git(["config", "--add", "frites.seed.copy", "away/secret"]);
    world.spawn(["-n", "1"]);
    assert_eq!(extra(&world, "1/c1"), ["away"]);
    assert_eq!(fs::read_link(world.worktree("1/c1").join("away")).unwrap(), home.join("outside"));
    world.git(["config", "--unset-all", "frites.seed.copy"]);
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

#[test]
fn seed_is_not_copied_through_a_linked_directory() {
    let world = world(&[("seed.copy", "*.local")]);
    let outside = world.home().join("outside");
    fs::create_dir(&outside).unwrap();
    world.write("conf/a.local", "seed\n");
    let run = world.attempts(&[&format!(
        "ln -s '{}' conf.d; rm -r conf; ln -s '{}' conf",
        outside.display(),
        outside.display()
    )]);
    // What takes the place of a directory of seeds is not source, so that it is judged twice.
    world.frites(["judge", &run, "--test", "test -L conf && ! test -e conf/a.local"]).expect(3);
    assert!(files_below(&outside).is_empty());
    // The candidate as a base, while the user's checkout has a real directory there.
    world
        .frites(["spawn", "--run", "next", "-n", "1", "--base", &format!("refs/frites/{run}/c1")])
        .expect(0);
    assert!(world.worktree("next/c1").join("conf").is_symlink());
    assert!(files_below(&outside).is_empty());
    world.assert_clean();
}

#[test]
fn linked_seed_is_a_copy_that_the_attempt_may_edit() {
    let world = world(&[
        ("seed.link", "node_modules/"),
        ("seed.link", "./web/cache"),
        ("seed.link", "absent"),
    ]);
    world.write("node_modules/m/index.js", "the user's\n");
    world.write("web/cache", "a file\n");
    let before = World::files_of(&world.repo);
    world.spawn(["-n", "2"]);
    let dir = world.worktree("1/c1");
    assert!(!dir.join("node_modules").is_symlink());
    assert_eq!(fs::read(dir.join("node_modules/m/index.js")).unwrap(), b"the user's\n");
    assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "?? web/");
    let answer = world.frites(["diff", "1/c1"]).expect(0);
    assert_eq!(
        (answer.out().as_str(), answer.stderr.as_str()),
        ("", ""),
        "no patch, and nothing was left out"
    );
    world.git_in(&dir, ["add", "-A"]);
    world.git_in(&dir, ["commit", "-q", "-m", "with seeds"]);
    write(&dir.join("README"), "work\n");
    assert_eq!(changed(&world, "1/c1"), ["README"]);
    world.frites(["judge", "--test", "cat node_modules/m/index.js web/cache"]).expect(0);
    assert_eq!(
        fs::read(world.repo.join(".frites/runs/1/c1/test.log")).unwrap(),
        b"the user's\na file\n"
    );
    write(&dir.join("web/cache"), "edited\n");
    assert_eq!(changed(&world, "1/c1"), ["README", "web/cache"]);
    world.frites(["clean", "1"]).expect(0);
    assert!(!dir.exists());
    assert_eq!(World::files_of(&world.repo), before);
    world.assert_clean();
}

/// `npm ci` begins by emptying `node_modules`; others append, truncate, chmod or replace what they
/// find.
#[test]
fn command_does_not_write_through_a_linked_seed() {
    let harm = "find node_modules vendor/ deps/ secrets/ -type f -exec chmod u+w {} + -exec sh -c \
        'for f; do echo harm >> \"$f\"; done' sh {} + && echo harm > .env && echo harm > .env.shared && \
        echo harm >> deps/alias/m/index.js && { (echo harm >> deps/up) 2>&- || :; } && \
        rm deps/back/m/index.js && rm -rf node_modules/* && echo harm > vendor/new";
    let all = ["node_modules", "vendor", "deps", "secrets", ".env"].map(|name| ("seed.link", name));
    for command in ["setup", "test", "agent"] {
        let world = world(&all);
        world.git(["config", "--add", "frites.seed.copy", ".env.*"]);
        let elsewhere = world.home().join("elsewhere");
        write(&elsewhere.join("vendor/v"), "the user's\n");
        write(&elsewhere.join("env"), "SECRET=1\n");
        world.write("node_modules/m/index.js", "the user's\n");
        world.write("deps/d", "the user's\n");
        world.write("secrets/key", "the user's\n");
        fs::set_permissions(world.repo.join("secrets/key"), fs::Permissions::from_mode(0o400))
            .unwrap();
        // The seed itself is a link, a directory or a file; a link within a seed leads back to
        // another seed.
        symlink(elsewhere.join("vendor"), world.repo.join("vendor")).unwrap();
        symlink(elsewhere.join("env"), world.repo.join(".env")).unwrap();
        symlink(elsewhere.join("env"), world.repo.join(".env.shared")).unwrap();
        symlink(world.repo.join("node_modules"), world.repo.join("deps/back")).unwrap();
        // The checkout by another name, and a link that a worktree's depth makes lead there.
        symlink(&world.repo, world.home().join("other-name")).unwrap();
        let alias = world.home().join("other-name/node_modules");
        symlink(alias, world.repo.join("deps/alias")).unwrap();
        symlink("../../../../../secrets/key", world.repo.join("deps/up")).unwrap();
        let users = || (World::files_of(&world.repo), World::files_of(&elsewhere));
        let before = users();
        match command {
            "setup" => {
                world.git(["config", "frites.spawn.setup", harm]);
                world.frites(["spawn", "-n", "1", "--", "sh", "-c", "echo w > work"]).expect(0);
                world.frites(["judge", "--test", "true"]).expect(0);
            }
            "test" => {
                world.attempts(&["echo w > work"]);
                world.frites(["judge", "--test", harm]).expect(0);
            }
            _ => drop(world.attempts(&[&format!("{harm} && echo w > work")])),
        }
        assert_eq!(users(), before, "by {command}");
        world.frites(["clean", "--all"]).expect(0);
        assert_eq!(users(), before, "by clean after {command}");
        world.assert_clean();
    }
}

#[test]
fn unmodified_seed_is_never_captured() {
    let seeds: &[(&str, &str)] =
        &[("seed.copy", ".env"), ("seed.copy", "data"), ("seed.copy", "notes.txt")];
    let world = world(seeds);
    world.write(".env", "SECRET=1\n");
    world.write("notes.txt", "untracked, not ignored\n");
    world.write("data/a.local", "x\n");
    world.write("data/b.txt", "y\n");
    let run = world.attempts(&[
        "echo '!.env' >> .gitignore; echo w > work",
        "git add -f .env data notes.txt; git commit -q -m forced; echo w > work",
        "git add -f .env data; echo w > work",
        "rm .gitignore; echo w > work",
        "echo w > work; printf 'notes.txt\\ndata\\n' >> .gitignore; chmod +x notes.txt; touch .env",
        "cp .env .env2; git add -f .env2; echo w > work",
    ]);
    let wanted: &[&[&str]] = &[
        &[".gitignore", "work"],
        &["work"],
        &["work"],
        &[".gitignore", "work"],
        &[".gitignore", "work"],
        &[".env2", "work"],
    ];
    for (at, wanted) in wanted.iter().enumerate() {
        let address = format!("{run}/c{}", at + 1);
        let answer = world.frites(["diff", "--name-only", &address]).expect(0);
        assert_eq!(answer.out().lines().collect::<Vec<_>>(), *wanted, "{address}");
        assert_eq!(answer.left_out(), "", "{address}: a seed is nothing that was left out");
        let tree = world.git(["ls-tree", "-r", "--name-only", &format!("refs/frites/{address}")]);
        assert!(
            tree.lines().all(|p| p != ".env" && p != "notes.txt" && !p.starts_with("data/")),
            "{tree}"
        );
    }
    let cleaned = world.frites(["clean", &run]).expect(0).stderr;
    assert!(!cleaned.contains("warning"), "{cleaned}");
    world.assert_clean();
}

#[test]
fn edited_seed_is_captured_until_it_is_restored() {
    let world = world(&[("seed.copy", ".env"), ("seed.copy", "notes.txt")]);
    world.write(".env", "SECRET=1\n");
    world.write("notes.txt", "the user's\n");
    world.spawn(["-n", "1"]);
    let dir = world.worktree("1/c1");
    let step = |script: &str, wanted: &[&str]| {
        world.sh(&dir, script).expect(0);
        assert_eq!(changed(&world, "1/c1"), wanted, "{script}");
    };
    step("echo mine > notes.txt; echo mine > .env", &["notes.txt"]);
    step("echo '!.env' >> .gitignore", &[".env", ".gitignore", "notes.txt"]);
    step("printf 'SECRET=1\\n' > .env", &[".gitignore", "notes.txt"]);
    step("printf \"the user's\\n\" > notes.txt; git checkout -q .gitignore", &[""; 0]);
    step("rm .env notes.txt", &[""; 0]);
    step("ln -s .env notes.txt", &["notes.txt"]);
    step("rm notes.txt; mkdir notes.txt; echo x > notes.txt/x", &["notes.txt/x"]);
    // A seed that the user edits meanwhile is still the one that was put there.
    world.write(".env", "SECRET=2\n");
    step(
        "rm -r notes.txt; echo '!.env' >> .gitignore; printf 'SECRET=1\\n' > .env",
        &[".gitignore"],
    );
    world.assert_clean();
}

#[test]
fn hidden_edit_of_a_seed_is_flagged_and_a_lost_record_is_rebuilt() {
    let world = world(&[("seed.copy", "*.txt"), ("seed.link", "node_modules")]);
    world.write("notes.txt", "the user's\n");
    world.write("node_modules/m", "x\n");
    let run = world.attempts(&["echo mine > notes.txt; echo '*.txt' >> .gitignore"]);
    let answer = world.frites(["diff", "--name-only"]).expect(0);
    assert_eq!(answer.out(), format!("# {run}/c1\n.gitignore\n"));
    assert!(
        answer.stderr.contains("the attempt's changes to .gitignore, such as 'notes.txt'"),
        "{}",
        answer.stderr
    );
    let dir = world.worktree("1/c1");
    world
        .sh(&dir, "git checkout -q .gitignore; printf \"the user's\\n\" > notes.txt; echo w > work")
        .expect(0);
    for broken in [None, Some("no TOML [")] {
        let record = world.repo.join(".frites/runs/1/c1/seeds.toml");
        match broken {
            None => fs::remove_file(&record).unwrap(),
            Some(text) => fs::write(&record, text).unwrap(),
        }
        assert_eq!(changed(&world, "1/c1"), ["work"], "{broken:?}");
    }
    world.assert_clean();
}

#[test]
fn no_file_that_a_capture_has_becomes_a_seed() {
    let world = world(&[]);
    world.attempts(&["echo tool > tool.cfg"]);
    let kept = || changed(&world, "1/c1") == ["tool.cfg"];
    assert!(kept());
    world.write("tool.cfg", "tool\n");
    world.git(["config", "frites.seed.copy", "tool.cfg"]);
    assert!(kept(), "its worktree got no seeds");
    fs::remove_file(world.repo.join(".frites/runs/1/c1/seeds.toml")).unwrap();
    assert!(kept(), "the record is lost");
}

/// The setup of the first worktree makes the file that the attempt makes in the second.
#[test]
fn worktree_that_is_made_again_forgets_the_seeds_of_the_first() {
    let world = world(&[("spawn.setup", "sh -c 'echo made > made'")]);
    let script = "test -e $HOME/again || kill -KILL $PPID; echo made > made";
    let _ = world.frites(["spawn", "-n", "1", "--", "sh", "-c", script]);
    world.git(["config", "--unset", "frites.spawn.setup"]);
    fs::write(world.home().join("again"), "").unwrap();
    world.frites(["run", "--resume", "1", "--test", "true"]).expect(0);
    assert_eq!(changed(&world, "1/c1"), ["made"]);
}

#[test]
fn branch_without_a_worktree_is_captured_without_seeds() {
    let world = world(COPY_ENV);
    world.write(".env", "SECRET=1\n");
    world.attempts(&["echo w > work; git add -f .env work; git commit -q -m forced"]);
    fs::remove_dir_all(world.worktree("1/c1")).unwrap();
    assert_eq!(changed(&world, "1/c1"), ["work"]);
    let tip = world.git(["rev-parse", "frites/run/1/c1"]);
    world.git(["merge-base", "--is-ancestor", &tip, "refs/frites/1/c1"]);
    world.frites(["clean", "--forget", "1"]).expect(0);
    world.assert_clean();
}

#[test]
fn seeds_with_odd_names_are_copied_and_recorded() {
    let world = world(&[("seed.copy", "/odd/")]);
    let names: [&[u8]; 5] =
        [b"new\nline", b"b\\ack \"quote\"", b" lead", b"\xff\xfe", "é".as_bytes()];
    for name in names {
        world.write(Path::new("odd").join(OsStr::from_bytes(name)), name);
    }
    world.attempts(&["rm .gitignore; git add -A"]);
    for name in names {
        let copy = world.worktree("1/c1/odd").join(OsStr::from_bytes(name));
        assert_eq!(fs::read(copy).unwrap(), name);
    }
    assert_eq!(changed(&world, "1/c1"), [".gitignore"]);
    world.assert_clean();
}

#[test]
fn seeds_come_from_the_users_checkout_wherever_spawn_is_called() {
    let world = world(COPY_ENV);
    world.write(".env", "the user's\n");
    world.attempts(&["echo tampered > .env"]);
    world.frites_in(&world.worktree("1/c1"), ["spawn", "-n", "1"]).expect(0);
    world.frites_in(&world.repo.join("src"), ["spawn", "-n", "1"]).expect(0);
    for address in ["2/c1", "3/c1"] {
        assert_eq!(fs::read(world.worktree(address).join(".env")).unwrap(), b"the user's\n");
    }
    world.frites_in(&world.worktree("1/c1"), ["judge", "2", "--test", "true"]).expect(4);
    world.assert_clean();
}

#[test]
fn judge_places_seeds_before_setup_runs() {
    let world =
        world(&[("seed.copy", ".env"), ("seed.copy", "a.local"), ("seed.link", "node_modules")]);
    world.write(".env", "SECRET=1\n");
    world.write("a.local", "the user's\n");
    world.write("node_modules/m", "module\n");
    world.git(["config", "frites.spawn.setup", "cat .env node_modules/m > generated.local"]);
    let run = world.attempts(&[
        "echo tampered > .env; echo w > work",
        "printf '!a.local\\n' >> .gitignore; echo tracked > a.local",
    ]);
    let test = "cat generated.local a.local";
    world.frites(["judge", &run, "--test", test]).expect(0);
    let log = |name: &str| {
        fs::read_to_string(world.repo.join(format!(".frites/runs/{run}/{name}/test.log"))).unwrap()
    };
    assert_eq!(
        log("c1"),
        "SECRET=1\nmodule\nthe user's\n",
        "an attempt's edit of an ignored seed is not its work"
    );
    assert_eq!(log("c2"), "SECRET=1\nmodule\ntracked\n", "a file of the tree wins over a seed");
    world.git(["config", "--unset", "frites.seed.link"]);
    let answer = world.frites(["judge", &run, "--test", test]).expect(3);
    assert!(answer.out().contains("broken-base: setup does not pass on the base"));
    world.assert_clean();
}

#[test]
fn landing_on_a_moved_head_is_judged_with_seeds() {
    let world = world(COPY_ENV);
    world.write(".env", "SECRET=1\n");
    world.attempts(&["echo w > work"]);
    world.frites(["judge", "--test", "grep -q 1 .env && test -e work"]).expect(0);
    world.write("other", "x\n");
    world.git(["add", "other"]);
    world.git(["commit", "-q", "-m", "moved"]);
    fs::write(world.repo.join(".env"), "SECRET=2\n").unwrap();
    world.frites(["apply", "-m", "land"]).refuses(1, "merged with HEAD it failed test (exit 1)");
    fs::write(world.repo.join(".env"), "SECRET=1\n").unwrap();
    world.frites(["apply", "-m", "land"]).expect(0);
    assert_eq!(world.git(["show", "--name-only", "--format="]), "work");
    assert_eq!(fs::read(world.repo.join(".env")).unwrap(), b"SECRET=1\n");
    world.assert_clean();
}

/// With the time of the copying, `app` would look newer than the source that was just checked out,
/// and make would test the user's own build.
#[test]
fn copied_build_output_is_rebuilt_for_the_judged_tree() {
    let world = world(&[("seed.copy", "/build/")]);
    world.write("app.src", "good\n");
    world.write(
        "Makefile",
        "test: build/app\n\tgrep -qx good build/app\nbuild/app: app.src\n\tmkdir -p build\n\tcp app.src build/app\n",
    );
    world.commit("app");
    world.run(&world.repo, "make", ["test"]).expect(0);
    world.attempts(&["echo broken > app.src", "echo 'good' > other"]);
    let answer = world.frites(["judge", "-q", "--test", "make test"]).expect(0);
    assert_eq!(answer.out(), "1/c2\n");
    let json = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!(json["candidates"][0]["results"][0]["outcome"], "failed");
    world.sh(&world.worktree("1/c1"), "! make test").expect(0);
    world.assert_clean();
}

#[test]
fn seed_that_cannot_be_copied_rolls_spawn_back() {
    let world = world(&[("seed.copy", "/deep/"), ("seed.copy", ".env")]);
    world.write(".env", "x\n");
    // As long as a path can be: in a worktree, which lies deeper, it would be longer.
    let limit = if cfg!(target_os = "macos") { 1024 } else { 4096 };
    let mut deep = world.repo.join("deep");
    while deep.as_os_str().len() + 110 < limit {
        deep.push("d".repeat(100));
    }
    deep.push("f".repeat(limit - 2 - deep.as_os_str().len()));
    write(&deep, "x\n");
    let before = world.belongings();
    let answer = world.frites(["spawn"]).refuses(128, "could not seed");
    assert!(answer.stderr.contains("hint: nothing was made"), "{}", answer.stderr);
    assert_eq!(world.belongings(), before);
    assert_eq!(world.git(["worktree", "list"]).lines().count(), 1);
    assert!(!world.repo.join(".frites/runs/1").exists() && !world.worktree("1").exists());
    fs::remove_dir_all(world.repo.join("deep")).unwrap();
    assert_eq!(world.spawn(["-n", "1"]), "1", "the number is free again");
    world.assert_clean();
}

#[test]
fn invalid_worktreeinclude_line_is_named_and_skipped() {
    let world = world(&[]);
    world.write(".env", "x\n");
    world.write(".worktreeinclude", "a{b\n.env\n");
    let answer = world.frites(["spawn", "-n", "1"]).expect(0);
    assert!(
        answer.stderr.contains("warning: .worktreeinclude:1: left out, it is not a pattern"),
        "{}",
        answer.stderr
    );
    assert_eq!(extra(&world, "1/c1"), [".env"]);
    world.assert_clean();
}

#[test]
fn setup_runs_in_each_worktree_and_its_files_are_not_captured() {
    let mut world = world(COPY_ENV);
    world.write(".env", "SECRET=1\n");
    world.set_env("FRITES_CANDIDATE", "leaked");
    let setup = "echo out; cp .env made.local; mkdir -p gen; pwd > gen/where; env | grep -v -E '^FRITES_(SANDBOX|SPAWN_GUARD|SPAWN_HOME|ORACLE_WARM)' | grep ^FRITES_ || :; echo X=2 >> .env; ln -s x gen/l";
    world.git(["config", "frites.spawn.setup", setup]);
    let run = world.spawn([
        "-n",
        "2",
        "--",
        "sh",
        "-euc",
        "test -s gen/where; echo {candidate} > work; rm .gitignore",
    ]);
    for name in ["c1", "c2"] {
        let address = format!("{run}/{name}");
        let where_ = fs::read_to_string(world.worktree(&address).join("gen/where")).unwrap();
        assert_eq!(where_.trim_end(), world.worktree(&address).to_str().unwrap());
        assert_eq!(changed(&world, &address), [".gitignore", "work"]);
        let log = world.repo.join(format!(".frites/runs/{address}/setup.log"));
        assert_eq!(fs::read_to_string(log).unwrap(), "out\n");
    }
    // Once the attempt edits it, it is its own.
    write(&world.worktree("1/c1").join("gen/where"), "edited\n");
    assert_eq!(changed(&world, "1/c1"), [".gitignore", "gen/where", "work"]);
    world.assert_clean();
}

#[test]
fn failed_setup_fails_only_its_candidate() {
    let world = World::new();
    world.git([
        "config",
        "frites.spawn.setup",
        "echo \"no luck\"; case $PWD in */c2) exit 3;; esac; touch ready",
    ]);
    let log = world.repo.join(".frites/runs/1/c2/setup.log");
    let told = "warning: 1/c2: failed (setup: exit 3)\n  | no luck\n  the whole output: git frites output 1/c2 setup\n";
    let answer = world.frites([
        "spawn",
        "-n",
        "3",
        "--",
        "sh",
        "-c",
        "test -e ready && echo {candidate} > work",
    ]);
    assert!(answer.stderr.contains(told), "{}", answer.stderr);
    answer.expect(0);
    assert_eq!(fs::read_to_string(&log).unwrap(), "no luck\n");
    let json = world.frites(["status", "--json"]).expect(0).json();
    let states: Vec<&str> =
        (0..3).map(|at| json["runs"][0]["candidates"][at]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["succeeded", "failed", "succeeded"]);
    assert!(!world.worktree("1/c2").join("work").exists(), "its command did not run");
    let events = world.events();
    let ended = |e: &&serde_json::Value| e["event"] == "ended" && e["candidate"] == "c2";
    let reasons: Vec<_> = events.iter().filter(ended).map(|e| e["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("setup: exit 3")]);
    world.frites(["judge", "-q", "--test", "test -e work"]).expect(0);

    // Open candidates, and the exit code when none is left.
    let answer = world.frites(["spawn", "--run", "open", "-n", "2"]).expect(0);
    assert!(answer.stderr.contains("open/c2: failed (setup: exit 3)"), "{}", answer.stderr);
    assert!(world.frites(["status", "open/c2"]).expect(0).out().contains("failed (setup: exit 3)"));
    world.git(["config", "frites.spawn.setup", "exit 1"]);
    for command in [&["--", "true"][..], &[]] {
        let answer = world.frites(["spawn", "-n", "2"].iter().chain(command)).expect(4);
        assert!(answer.stderr.contains("warning: no candidate is usable"), "{}", answer.stderr);
    }
    world.assert_clean();
}

#[test]
fn setup_that_cannot_run_or_edits_tracked_files_is_reported() {
    let world = World::new();
    world.write(".frites.toml", "[spawn]\nsetup = [\"no-such-program-here\"]\n");
    let answer = world
        .frites(["spawn"])
        .refuses(128, "the setup command cannot run: 'no-such-program-here'");
    assert!(
        answer.stderr.contains("spawn.setup") && !answer.stderr.contains("--setup"),
        "{}",
        answer.stderr
    );
    assert!(!world.repo.join(".frites").exists());
    world.write(".frites.toml", "[spawn]\nsetup = \"echo x >> src/lib.txt\"\n");
    let answer = world.frites(["spawn", "-n", "2"]).expect(0);
    let told = "setup changes files that git tracks, such as 'src/lib.txt': every candidate carries that change";
    assert_eq!(answer.stderr.matches(told).count(), 1, "{}", answer.stderr);
    assert_eq!(changed(&world, "1/c1"), ["src/lib.txt"]);
    world.assert_clean();
}

#[test]
fn spawn_without_disk_space_is_refused_before_anything_is_made() {
    let world = World::new();
    world.write("big.bin", vec![7; 3 << 20]);
    world.commit("3 MiB");
    let before = world.belongings();
    world.git(["config", "frites.limits.min-free-disk", "900TiB"]);
    let answer = world.frites(["spawn", "-n", "4"]).refuses(128, "the disk is too full: ");
    for words in [
        " are free, and 900.0 TiB are needed (4 × 3.0 MiB for worktrees, 900.0 TiB to stay free)",
        "min-free-disk",
    ] {
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
    assert!(!world.repo.join(".frites").exists());
    world.git(["config", "frites.limits.min-free-disk", "lots"]);
    world.frites(["spawn"]).refuses(128, "'limits.min-free-disk' takes a size such as 2GiB");
    world.git(["config", "--unset", "frites.limits.min-free-disk"]);
    world.git(["config", "--global", "--unset", "frites.limits.min-free-disk"]);
    world.write(".frites.toml", "limits.min-free-disk = 1024\n");
    assert_eq!(world.spawn(["-n", "1"]), "1");
    fs::remove_file(world.repo.join(".frites.toml")).unwrap();
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}

#[test]
fn tracked_path_outside_a_sparse_checkout_is_no_seed() {
    let world = world(&[("seed.copy", "*.cfg")]);
    world.write("hidden/own.cfg", "the base's\n");
    let base = world.commit("with a file");
    world.git(["rm", "-q", "-r", "hidden"]);
    world.commit("without");
    world.git(["sparse-checkout", "set", "--cone", "src"]);
    world.write("hidden/own.cfg", "the user's\n");
    world.write("hidden/free.cfg", "the user's\n");
    world.spawn(["-n", "1", "--base", &base]);
    assert!(!world.worktree("1/c1").join("hidden/own.cfg").exists());
    assert_eq!(extra(&world, "1/c1"), ["hidden/free.cfg"]);
    assert_eq!(changed(&world, "1/c1"), [""; 0]);
    world.assert_clean();
}

#[test]
fn leading_slash_in_seed_link_is_the_root_of_the_checkout() {
    let world = world(&[
        ("seed.link", "/node_modules"),
        ("seed.link", "/web/c*"),
        ("seed.link", "/absent"),
    ]);
    for file in ["node_modules/x", "web/cache", "lib/node_modules/y"] {
        world.write(file, "a seed\n");
    }
    world.write(".git/info/exclude", "node_modules\ncache\n");
    let told = world.frites(["spawn", "-n", "1"]).expect(0).stderr;
    assert!(told.contains("seed.link: your checkout has no '/absent'"), "{told}");
    assert_eq!(extra(&world, "1/c1"), ["node_modules/x", "web/cache"]);
    // So is the whole path of something in it.
    let whole = world.repo.join("lib/node_modules");
    world.git(["config", "--add", "frites.seed.link", whole.to_str().unwrap()]);
    world.spawn(["-n", "1"]);
    assert_eq!(extra(&world, "2/c1"), ["lib/node_modules/y", "node_modules/x", "web/cache"]);
    world.assert_clean();
}

#[test]
fn seed_link_takes_patterns_and_paths() {
    let world = world(&[
        ("seed.link", "packages/*/node_modules"),
        ("seed.link", "!packages/b/node_modules"),
        ("seed.link", "**/cache-?"),
        ("seed.link", "pages/[id]"),
        ("seed.copy", "*.local"),
    ]);
    world.write(".gitignore", "node_modules/\ncache-*\n*.local\n");
    world.commit("ignore");
    for path in [
        "packages/a/node_modules/x/index.js",
        "packages/b/node_modules/x/index.js",
        "node_modules/top.js",
        "deep/down/cache-1/file",
        "deep/down/cache-10/file",
        "pages/[id]/file",
        "pages/i/file",
        "a.local",
    ] {
        world.write(path, "x\n");
    }
    world.spawn(["-n", "1"]);
    assert_eq!(
        extra(&world, "1/c1"),
        [
            "a.local",
            "deep/down/cache-1/file",
            "packages/a/node_modules/x/index.js",
            "pages/[id]/file"
        ]
    );
    assert_eq!(changed(&world, "1/c1"), Vec::<String>::new());
    world.git(["config", "--add", "frites.seed.link", "../*"]);
    world.frites(["spawn"]).refuses(128, "seed.link: '../*' leaves the checkout");
    world.assert_clean();
}

#[test]
fn a_pattern_in_seed_link_that_matches_nothing_is_named() {
    let world = World::new();
    world.write(".gitignore", "deps-*\n");
    world.commit("ignore");
    world.write("deps-a/file", "x\n");
    world.git(["config", "--add", "frites.seed.link", "deps-*"]);
    world.git(["config", "--add", "frites.seed.link", "dpes-*"]);
    let told = world.frites(["spawn", "-n", "1"]).expect(0).stderr;
    let line = "warning: seed.link: 'dpes-*' matches nothing that could be a seed\n";
    assert_eq!(told.matches("nothing that could be").count(), 1, "{told}");
    assert!(told.contains(line), "{told}");
    assert!(world.worktree("1/c1").join("deps-a/file").is_file());
}
