//! What other machines get: the Debian package in a fresh system, the archive, the crate.
use std::fs;
use std::path::PathBuf;

use crate::common::{World, make_executable, source, write};
use crate::tool::{APPARMOR, CARGO, CARGO_DEB, FRESH_ROOT, MAKE, TOOLS, trials};

trials! {
    package_installs_into_a_fresh_system_and_runs_there: [CARGO_DEB, FRESH_ROOT];
    archive_installs_with_its_script: [MAKE];
    program_is_linked_again_where_a_linker_refuses_the_script: [MAKE];
    profile_is_understood_by_apparmor: [APPARMOR];
    crate_has_all_that_the_program_is_made_of: [CARGO];
}

/// A Debian system with git, make and AppArmor's parser, which `.ci/run` makes.
fn root() -> PathBuf {
    source().join("target/root")
}

/// A target directory whose release is the program that is being tested, which saves a release
/// build.
fn target(world: &World) -> PathBuf {
    let target = world.home().join("target");
    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_git-frites"), target.join("release/git-frites")).unwrap();
    target
}

/// The first steps of a new user, as far as they need no other tool than git and make.
const TOUR: &str = "
cd && rm -rf tour && mkdir tour && cd tour && git init -q
git config --global user.name Me && git config --global user.email me@example.com
printf 'test:\\n\\tgrep -qx hello greeting\\n' >Makefile
echo helo >greeting && git add -A && git commit -qm Greet
git frites run -q -n 2 -- sh -c 'echo hello >greeting; seq $FRITES_INDEX >numbers'
git frites apply -q -m 'Fix the greeting'
cat greeting
git frites clean -q && git frites doctor >/dev/null
test -e /usr/share/man/man1/git-frites.1.gz -a -e /usr/share/git-frites/skills/git-frites/SKILL.md
";

fn package_installs_into_a_fresh_system_and_runs_there() {
    let mut world = World::empty("here");
    let target = target(&world);
    let path = format!("{TOOLS}/bin:{}", world.env("PATH").to_str().unwrap());
    world.set_env("PATH", path);
    world.set_env("CARGO_TARGET_DIR", &target);
    let made = world.run(&source(), "cargo", ["deb", "-q", "--no-build", "--no-strip"]).expect(0);
    let package = fs::read_dir(target.join("debian")).unwrap().next();
    let package = package.unwrap_or_else(|| panic!("{}", made.out())).unwrap().path();
    fs::copy(&package, root().join("tmp/git-frites.deb")).unwrap();
    let inside = |script: &str| {
        let variables = ["HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"];
        let root = root();
        let words = ["-i"].into_iter().chain(variables);
        // git-frites finds the processes of an attempt in /proc.
        let script = format!("mount -t proc proc /proc; {script}");
        let inside =
            ["unshare", "--mount", "chroot", root.to_str().unwrap(), "sh", "-euc", &script];
        let words = words.chain(inside);
        world.run(&world.repo, "env", words)
    };
    inside("dpkg -i /tmp/git-frites.deb").expect(0);
    let toured = inside(TOUR);
    inside("dpkg -P git-frites; rm -rf /root/tour; ! test -e /usr/bin/git-frites").expect(0);
    assert!(toured.expect(0).out().ends_with("\nhello\n"));
}

fn archive_installs_with_its_script() {
    let world = World::empty("here");
    let target = target(&world);
    let variables = ["CARGO=:".to_owned(), format!("TARGET={}", target.display())];
    let words = ["-s".to_owned(), "tarball".to_owned()].into_iter().chain(variables);
    let made = world.run(&source(), "make", words).expect(0).out();
    let script = format!(
        "tar xzf '{}' && ./git-frites-*/install.sh \"$HOME/a prefix\" && \"$HOME/a prefix/bin/git-frites\" --version && \
         test -e \"$HOME/a prefix/share/man/man7/git-frites-agents.7\" -a ! -e usr",
        made.trim()
    );
    let out = world.sh(&world.repo, &script).expect(0).out();
    assert!(out.starts_with("put ") && out.ends_with("\ngit-frites 0.1.0\n"), "{out}");
}

fn program_is_linked_again_where_a_linker_refuses_the_script() {
    let world = World::empty("here");
    let target = target(&world);
    let cargo = world.home().join("cargo");
    let refuse = "case $* in *no-unwinding.ld*) exit 1;; esac";
    for (linker, calls) in [("", 1), (refuse, 2)] {
        write(&cargo, format!("#!/bin/sh\necho \"$*\" >>\"$HOME/calls\"\n{linker}\n"));
        make_executable(&cargo);
        let prefix = world.home().join(format!("prefix-{calls}"));
        let variables = [("CARGO", &cargo), ("TARGET", &target), ("PREFIX", &prefix)];
        let variables = variables.map(|(name, path)| format!("{name}={}", path.display()));
        let words = ["-s".to_owned(), "install".to_owned()].into_iter().chain(variables);
        let _ = world.run(&source(), "make", words).expect(0);
        let told = fs::read_to_string(world.home().join("calls")).unwrap();
        fs::remove_file(world.home().join("calls")).unwrap();
        let small: Vec<bool> = told.lines().map(|call| call.contains("no-unwinding.ld")).collect();
        assert_eq!(small, [true, false][..calls], "{told}");
        assert!(prefix.join("bin/git-frites").exists());
    }
}

fn profile_is_understood_by_apparmor() {
    let world = World::empty("here");
    let root = root();
    fs::copy(source().join("packaging/apparmor"), root.join("tmp/apparmor")).unwrap();
    let words = [root.to_str().unwrap(), "apparmor_parser", "-Q", "-K", "/tmp/apparmor"];
    world.run(&world.repo, "chroot", words).expect(0);
}

fn crate_has_all_that_the_program_is_made_of() {
    let world = World::empty("here");
    let list = ["package", "--list", "--offline", "--allow-dirty"];
    let files = world.run(&source(), "cargo", list).expect(0).out();
    for file in [
        "skills/git-frites/SKILL.md",
        "schema/git-frites.schema.json",
        "completions/_git-frites",
        "man/git-frites.1",
        "packaging/apparmor",
    ] {
        assert!(files.lines().any(|line| line == file), "{file}:\n{files}");
    }
}
