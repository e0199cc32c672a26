//! The man pages as mandoc and man-db show them, and as `make install` puts them in place.
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::common::{World, files_below, source};
use crate::tool::{MAKE, MAN, MAN_DB, MANDOC, trials};

trials! {
    mandoc_finds_nothing_in_the_pages: [MANDOC];
    man_db_renders_the_pages_without_a_warning: [MAN_DB];
    installed_pages_are_what_help_and_man_open: [MAKE, MAN];
    make_install_respects_destdir_and_uninstall_undoes_it: [MAKE];
    man_command_shows_a_page_with_man: [MAN];
}

/// The paths of the man pages.
fn pages() -> Vec<String> {
    let pages = files_below(&source().join("man"));
    pages.into_iter().map(|path| path.into_os_string().into_string().unwrap()).collect()
}

fn mandoc_finds_nothing_in_the_pages() {
    let world = World::empty("no repository");
    for file in pages() {
        let lint = world.run(&world.repo, "mandoc", ["-Tlint", "-Wall", &file]);
        assert_eq!((lint.code, lint.out()), (0, String::new()), "{file}");
    }
}

fn man_db_renders_the_pages_without_a_warning() {
    let world = World::empty("no repository");
    let script = "MANROFFSEQ= MANWIDTH=80 LC_ALL=C.UTF-8
        export MANROFFSEQ MANWIDTH LC_ALL
        man --warnings -E UTF-8 -l -Tutf8 -Z \"$1\" >/dev/null";
    for file in pages() {
        let warned = world.run(&world.repo, "sh", ["-euc", script, "sh", &file]);
        assert_eq!((warned.code, warned.stderr.as_str()), (0, ""), "{file}");
    }
}

/// Installs with the program that is being tested, which saves a release build.
fn install(world: &World, arguments: &[&str]) {
    let target = world.home().join("target");
    fs::create_dir_all(target.join("release")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_git-frites"), target.join("release/git-frites")).unwrap();
    let target = format!("TARGET={}", target.display());
    let arguments = [&["-s", "install", "CARGO=:", &target], arguments].concat();
    world.run(&source(), "make", arguments).expect(0);
}

fn installed_pages_are_what_help_and_man_open() {
    let mut world = World::new();
    let prefix = world.home().join("a prefix");
    install(&world, &[&format!("PREFIX={}", prefix.display())]);
    // The manual path is taken apart at colons alone, so the blank is no matter; git's own pages
    // may be missing.
    world.set_env("MANPATH", prefix.join("share/man"));
    world.set_env("MANWIDTH", "80");
    let path = std::env::join_paths(
        std::iter::once(prefix.join("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    world.set_env("PATH", path.unwrap());
    let cases: &[(&str, &[&str], &str)] = &[
        ("git", &["frites", "--help"], "GIT-FRITES(1)"),
        ("git", &["help", "frites"], "GIT-FRITES(1)"),
        ("git", &["help", "git-frites-judge"], "GIT-FRITES-JUDGE(1)"),
        ("man", &["git-frites-judge"], "GIT-FRITES-JUDGE(1)"),
        ("man", &["git-frites-tutorial"], "GIT-FRITES-TUTORIAL(7)"),
    ];
    for (program, arguments, title) in cases {
        let page = world.run(&world.repo, program, *arguments).expect(0).out();
        assert!(page.starts_with(title), "{program} {arguments:?}:\n{page}");
        assert!(page.contains("EXAMPLES") || page.contains("NEXT STEPS"), "{page}");
    }
}

fn make_install_respects_destdir_and_uninstall_undoes_it() {
    let world = World::empty("root");
    let destination = format!("DESTDIR={}", world.repo.display());
    install(&world, &[&destination, "PREFIX=/usr"]);
    let installed: BTreeSet<String> = files_below(&world.repo)
        .into_iter()
        .map(|path| path.strip_prefix(&world.repo).unwrap().to_str().unwrap().to_owned())
        .collect();
    let installed_as = |page: &String| {
        let (_, name) = page.rsplit_once('/').unwrap();
        format!("usr/share/man/man{}/{name}", name.rsplit('.').next().unwrap())
    };
    let mut expected: BTreeSet<String> = pages().iter().map(installed_as).collect();
    expected.extend(
        [
            "usr/bin/git-frites",
            "usr/share/git-frites/git-frites.schema.json",
            "usr/share/git-frites/skills/git-frites/SKILL.md",
            "usr/share/git-frites/apparmor",
            "usr/share/bash-completion/completions/git-frites",
            "usr/share/zsh/site-functions/_git-frites",
            "usr/share/fish/vendor_conf.d/git-frites.fish",
        ]
        .map(str::to_owned),
    );
    assert_eq!(installed, expected);
    world.run(&source(), "make", ["-s", "uninstall", &destination, "PREFIX=/usr"]).expect(0);
    assert_eq!(files_below(&world.repo), Vec::<PathBuf>::new());
}

fn man_command_shows_a_page_with_man() {
    let world = World::empty("no repository");
    for (page, title) in
        [("judge", "GIT-FRITES-JUDGE(1)"), ("git-frites-spawn", "GIT-FRITES-SPAWN(1)")]
    {
        let shown = world.run(&world.repo, "git-frites", ["man", page]).expect(0);
        assert!(shown.out().starts_with(title), "{}", shown.out());
    }
    assert!(
        world.run(&world.repo, "git-frites", ["man"]).expect(0).out().starts_with("GIT-FRITES(1)")
    );
}
