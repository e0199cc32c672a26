//! The fan-out writer against `git worktree add`: the same files, the same index, and no file that
//! git must read again to know that it is clean.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{World, files_below, make_executable, write};

/// The writer of the files.
#[derive(Clone, Copy, Debug)]
enum By {
    /// git-frites alone.
    Us,
    /// git, wholly or in part, for a reason with these words.
    Git(&'static str),
}

/// Spawns worktrees in `dir`, and asserts who wrote their files; gives the run.
#[track_caller]
fn spawn(world: &World, dir: &Path, count: &str, expected: By) -> String {
    let log = world.home().join("frites.log");
    let mut spawn = world.command(dir, "git", ["frites", "spawn", "-q", "-n", count]);
    spawn.env("FRITES_LOG", "debug").env("FRITES_LOG_FILE", &log);
    let answer = crate::common::answer(&spawn.output().unwrap()).expect(0);
    let text = fs::read_to_string(&log).unwrap();
    fs::remove_file(&log).unwrap();
    let reasons: Vec<&str> =
        text.lines().filter(|l| l.contains("git checks the files out")).collect();
    match expected {
        By::Us => assert!(reasons.is_empty(), "{reasons:?}"),
        By::Git(words) => {
            assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
        }
    }
    answer.out().trim().to_owned()
}

/// Spawns two worktrees in `dir`, and asserts that each equals one that git makes there.
#[track_caller]
fn assert_equal_to_git_in(world: &World, dir: &Path, expected: By) {
    let run = spawn(world, dir, "2", expected);
    let by_git = world.home().join("by-git");
    world.git_in(dir, ["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "HEAD"]);
    let stages = |worktree: &Path| world.git_in(worktree, ["ls-files", "-z", "--stage", "-v"]);
    for candidate in ["c1", "c2"] {
        let worktree = PathBuf::from(
            world.frites_in(dir, ["path", &format!("{run}/{candidate}")]).expect(0).out().trim(),
        );
        assert_eq!(World::files_of(&worktree), World::files_of(&by_git), "{candidate}");
        assert_eq!(directories(&worktree), directories(&by_git), "{candidate}");
        assert_eq!(stages(&worktree), stages(&by_git), "{candidate}");
        assert_clean_without_reading(world, &worktree);
        assert_eq!(world.git_in(&worktree, ["status", "--porcelain"]), "");
        assert_eq!(
            world.git_in(&worktree, ["write-tree"]),
            world.git_in(dir, ["rev-parse", "HEAD^{tree}"])
        );
    }
    world.git_in(dir, ["worktree", "remove", "--force", by_git.to_str().unwrap()]);
    world.frites_in(dir, ["clean", "-q", "--forget", &run]).expect(0);
}

#[track_caller]
fn assert_equal_to_git(world: &World, expected: By) {
    assert_equal_to_git_in(world, &world.repo.clone(), expected);
}

/// All directories of a checkout, also empty ones, as those of submodules are.
fn directories(checkout: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut waiting = vec![checkout.to_owned()];
    while let Some(directory) = waiting.pop() {
        let mode = fs::metadata(&directory).unwrap().mode();
        found.push((directory.strip_prefix(checkout).unwrap().to_owned(), mode));
        let entries = fs::read_dir(&directory).unwrap().flatten();
        waiting.extend(entries.filter(|e| e.file_type().unwrap().is_dir()).map(|e| e.path()));
    }
    found.sort();
    found
}

/// Asserts that each entry of a worktree's index has the stat data of its file, and that no file is
/// as young as the index: then git compares no content.
#[track_caller]
fn assert_clean_without_reading(world: &World, worktree: &Path) {
    let index = PathBuf::from(world.git_in(worktree, ["rev-parse", "--git-path", "index"]));
    let index = fs::metadata(worktree.join(index)).unwrap();
    let list = world.run(worktree, "git", ["ls-files", "-z", "--debug"]).expect(0).stdout;
    let mut checked = 0;
    // After the NUL behind a path come five lines about it, and then the next path.
    let mut rest = &list[..];
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        let path = worktree.join(OsStr::from_bytes(&rest[..end]));
        rest = &rest[end + 1..];
        let length = rest.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(4).unwrap().0 + 1;
        let about = String::from_utf8_lossy(&rest[..length]).into_owned();
        rest = &rest[length..];
        let numbers: Vec<i64> = about
            .split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().unwrap())
            .collect();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            continue;
        }
        let expected = [
            meta.ctime(),
            meta.ctime_nsec(),
            meta.mtime(),
            meta.mtime_nsec(),
            i64::from(meta.dev() as u32),
            i64::from(meta.ino() as u32),
            i64::from(meta.uid()),
            i64::from(meta.gid()),
            meta.size() as i64,
        ];
        assert_eq!(numbers[..9], expected, "{}\n{about}", path.display());
        assert!(meta.mtime() < index.mtime(), "{} is racily clean", path.display());
        checked += 1;
    }
    assert!(checked > 0, "the index is empty");
}

/// Contents in which line ends matter.
const CONTENTS: [&[u8]; 9] = [
    b"",
    b"one\ntwo\n",
    b"one\r\ntwo\r\n",
    b"one\r\ntwo\n",
    b"one\rtwo\n",
    b"one\ntwo",
    b"\n",
    b"nul\0\nbyte\n",
    b"control \x01\x02\x03\x04\n",
];

#[test]
fn files_links_modes_submodules_and_odd_names_are_as_git_writes_them() {
    let world = World::new();
    write(&world.repo.join("empty"), "");
    write(&world.repo.join("run.sh"), "#!/bin/sh\n");
    make_executable(&world.repo.join("run.sh"));
    write(&world.repo.join("large"), vec![b'x'; 3 << 20]);
    for at in 0..150 {
        write(&world.repo.join(format!("many/{at}")), format!("{at}\n"));
    }
    write(&world.repo.join("a/b/c/d/e/f/g"), "deep\n");
    let long = "n".repeat(255);
    let names: [&[u8]; 9] = [
        b"-n",
        b" ",
        b"a\nb",
        b"a\tb",
        b"\xff\xfe",
        b"a\\b",
        b"\"quoted\"",
        b"a*?[b]",
        long.as_bytes(),
    ];
    for name in names {
        write(&world.repo.join("odd").join(OsStr::from_bytes(name)), name);
    }
    // In an index, `sub.txt` stands between `sub` and the files below it.
    write(&world.repo.join("sub.txt"), "x\n");
    write(&world.repo.join("sub/file"), "x\n");
    symlink("README", world.repo.join("link")).unwrap();
    symlink("nowhere/at all", world.repo.join("dangling")).unwrap();
    symlink("many", world.repo.join("to-a-directory")).unwrap();
    world.commit("files");
    let commit = world.git(["rev-parse", "HEAD"]);
    world.git(["update-index", "--add", "--cacheinfo", &format!("160000,{commit},modules/one")]);
    world.git(["commit", "-q", "-m", "a submodule"]);
    assert_equal_to_git(&world, By::Us);
    world.git(["gc", "-q"]);
    assert_equal_to_git(&world, By::Us);
}

#[test]
fn line_ends_are_as_git_writes_them() {
    let world = World::new();
    let attributes = [
        "text",
        "-text",
        "text=auto",
        "eol=crlf",
        "eol=lf",
        "text eol=crlf",
        "-text eol=crlf",
        "text=auto eol=crlf",
        "text=auto eol=lf",
        "crlf",
        "-crlf",
        "crlf=input",
        "binary",
        "crlf eol=crlf",
        "-crlf eol=crlf",
        "text=other eol=crlf",
        "dos",
        "-dos",
        "eol=crlf !eol",
    ];
    let mut lines = "[attr]dos text eol=crlf\n".to_owned();
    for (at, attribute) in attributes.iter().enumerate() {
        lines.push_str(&format!("*.a{at} {attribute}\n"));
        for (number, content) in CONTENTS.iter().enumerate() {
            // git stores the line ends of the index, and these must be all of them.
            let path = format!("{number}.a{at}");
            store_blob(&world, &path, content);
        }
    }
    store_blob(&world, ".gitattributes", lines.as_bytes());
    store_blob(&world, "below/.gitattributes", b"*.a3 -eol\n*.other eol=crlf");
    store_blob(&world, "below/x.a3", CONTENTS[1]);
    store_blob(&world, "below/x.other", CONTENTS[1]);
    store_blob(&world, "below/y.informed", CONTENTS[1]);
    write(&world.repo.join(".git/info/attributes"), "*.informed eol=crlf\n");
    world.git(["commit", "-q", "-m", "line ends"]);
    let run = spawn(&world, &world.repo, "1", By::Us);
    let worktree = world.worktree(&format!("{run}/c1"));
    let by_git = world.home().join("by-git");
    world.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "HEAD"]);
    assert_eq!(World::files_of(&worktree), World::files_of(&by_git));
    assert_eq!(fs::read(worktree.join("1.a3")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(fs::read(worktree.join("below/y.informed")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(fs::read(worktree.join("below/x.a3")).unwrap(), b"one\ntwo\n");
    assert_clean_without_reading(&world, &worktree);
}

/// Stages exactly these bytes, which `git add` might convert.
fn store_blob(world: &World, path: &str, bytes: &[u8]) {
    let file = world.home().join("blob");
    fs::write(&file, bytes).unwrap();
    let blob = world.git(["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
    world.git(["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
}

/// Attributes files put together at random, in three directories and outside of the tree.
#[test]
fn random_attributes_give_the_files_that_git_writes() {
    let patterns = [
        "*",
        "*.txt",
        "a*",
        "/a.txt",
        "sub/",
        "sub/*",
        "**/b.txt",
        "sub/**",
        "?.bin",
        "[ab].txt",
        "\"a.txt\"",
        "sub/deep/*.bin",
        "\\*.txt",
        "**",
        "b.txt ",
        "a.*",
    ];
    let attributes = [
        "text",
        "-text",
        "!text",
        "text=auto",
        "eol=crlf",
        "eol=lf",
        "-eol",
        "!eol",
        "eol=other",
        "crlf",
        "-crlf",
        "!crlf",
        "crlf=input",
        "crlf=auto",
        "binary",
        "-binary",
        "!binary",
        "dos",
        "-dos",
        "diff",
        "-merge",
    ];
    let comments = [
        "# eol=crlf",
        "",
        "   ",
        "!*.txt eol=crlf",
        "[attr]dos text=auto eol=crlf",
        "[attr]unix eol=lf",
    ];
    let world = World::new();
    let places = [".gitattributes", "sub/.gitattributes", "sub/deep/.gitattributes", "info"];
    let mut random = fastrand::Rng::with_seed(15);
    for round in 0..25 {
        for (at, content) in CONTENTS.iter().enumerate() {
            let names = ["a.txt", "b.txt", "c.bin"];
            let directory = ["", "sub/", "sub/deep/"][at % 3];
            store_blob(&world, &format!("{directory}{}", names[at / 3]), content);
            store_blob(&world, &format!("{directory}{at}.txt"), content);
        }
        for place in places {
            let mut text = String::new();
            for _ in 0..random.usize(..6) {
                if random.usize(..4) == 0 {
                    text.push_str(comments[random.usize(..comments.len())]);
                } else {
                    text.push_str(patterns[random.usize(..patterns.len())]);
                    for _ in 0..random.usize(1..4) {
                        text.push_str([" ", "\t", "  "][random.usize(..3)]);
                        text.push_str(attributes[random.usize(..attributes.len())]);
                    }
                }
                text.push_str(["\n", "\r\n", "\n\n"][random.usize(..3)]);
            }
            match place {
                "info" => write(&world.repo.join(".git/info/attributes"), &text),
                place => store_blob(&world, place, text.as_bytes()),
            }
        }
        world.git(["commit", "-q", "--allow-empty", "-m", &format!("round {round}")]);
        let run = spawn(&world, &world.repo, "1", By::Us);
        let by_git = world.home().join(format!("by-git-{round}"));
        world.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "HEAD"]);
        let files = |checkout: &Path| -> BTreeMap<PathBuf, String> {
            let files = World::files_of(checkout).into_iter();
            files.map(|(path, _, bytes)| (path, bytes.escape_ascii().to_string())).collect()
        };
        let worktree = world.worktree(&format!("{run}/c1"));
        assert_eq!(files(&worktree), files(&by_git), "round {round}");
        assert_clean_without_reading(&world, &worktree);
        world.git(["worktree", "remove", "--force", by_git.to_str().unwrap()]);
        world.frites(["clean", "-q", "--discard", "--forget", &run]).expect(0);
    }
}

/// A filter of the long-running kind, which writes content in capital letters.
const PROCESS: &str = r#"
get() { len=$(dd bs=1 count=4 2>/dev/null); test -n "$len" || exit 0; size=$((0x$len)); text=
  test $size = 0 || text=$(dd bs=1 count=$((size - 4)) 2>/dev/null; echo .); text=${text%?}; }
until_flush() { all=; while get; test $size != 0; do all=$all$text; done; }
put() { printf '%04x%s\n' $((${#1} + 5)) "$1"; }
until_flush; put git-filter-server; put version=2; printf 0000
until_flush; put capability=clean; put capability=smudge; printf 0000
while until_flush; do
  order=$all; until_flush
  case $order in
    command=smudge*) all=$(printf %s. "$all" | tr a-z A-Z); all=${all%?} ;;
    *) all=$(printf %s. "$all" | tr A-Z a-z); all=${all%?} ;;
  esac
  put status=success; printf 0000
  printf '%04x%s' $((${#all} + 4)) "$all"; printf 00000000
done
"#;

#[test]
fn paths_with_filters_encodings_or_ids_are_left_to_git() {
    let world = World::new();
    world.git(["config", "filter.rot.smudge", "tr a-z b-za"]);
    world.git(["config", "filter.rot.clean", "tr b-za a-z"]);
    let script = world.home().join("process.sh");
    write(&script, PROCESS);
    world.git(["config", "filter.capital.process", &format!("sh '{}'", script.display())]);
    let attributes = "*.rot filter=rot\n*.capital filter=capital\n*.id ident\n*.wide working-tree-encoding=UTF-16LE eol=lf\n*.none filter=missing\n";
    for (name, content) in [
        ("x.rot", "abc\n"),
        ("x.capital", "abc\n"),
        ("x.id", "$Id$\n"),
        ("x.none", "abc\n"),
        ("x.txt", "abc\n"),
        (".gitattributes", attributes),
    ] {
        write(&world.repo.join("dir").join(name), content);
    }
    write(&world.repo.join("dir/x.wide"), b"a\0b\0\n\0");
    world.commit("filters");
    assert_equal_to_git(&world, By::Git("an attribute of 'dir/x."));
    let run = world.spawn(["-n", "1"]);
    let read = |name: &str| fs::read(world.worktree(&format!("{run}/c1/dir")).join(name)).unwrap();
    let id = String::from_utf8(read("x.id")).unwrap();
    assert!(id.starts_with("$Id: ") && id.len() == 48, "{id}");
    assert_eq!(read("x.wide"), b"a\0b\0\n\0");
    assert_eq!(read("x.capital"), b"ABC\n");
}

#[test]
fn repositories_that_git_must_write_are_left_to_it_with_the_reason() {
    let settings = [
        ("core.fileMode", "false", "core.fileMode is false"),
        ("core.symlinks", "false", "core.symlinks is false"),
        ("core.precomposeUnicode", "true", "core.precomposeUnicode is true"),
        ("attr.tree", "HEAD", "attr.tree is set"),
        ("remote.origin.promisor", "true", "it is a partial clone"),
    ];
    let world = World::new();
    symlink("README", world.repo.join("link")).unwrap();
    write(&world.repo.join("run.sh"), "#!/bin/sh\n");
    make_executable(&world.repo.join("run.sh"));
    world.commit("a link and a program");
    for (key, value, reason) in settings {
        world.git(["config", key, value]);
        assert_equal_to_git(&world, By::Git(reason));
        world.git(["config", "--unset", key]);
    }
    write(&world.repo.join(".gitattributes"), "* filter=set\n");
    world.commit("a filter whose name is a state");
    assert_equal_to_git(&world, By::Git("an attribute has the value '=set'"));
    // git does not read attributes through a link.
    fs::remove_file(world.repo.join(".gitattributes")).unwrap();
    symlink("README", world.repo.join(".gitattributes")).unwrap();
    world.commit("attributes through a link");
    assert_equal_to_git(&world, By::Git("'.gitattributes' is not a regular file"));
}

#[test]
fn sparse_checkouts_are_left_to_git() {
    let world = World::new();
    world.git(["sparse-checkout", "set", "src"]);
    let run = world.spawn(["-n", "1"]);
    let worktree = world.worktree(&format!("{run}/c1"));
    assert!(worktree.join("README").exists() && worktree.join("src/lib.txt").exists());
    world.git(["config", "core.sparseCheckout", "true"]);
    world.git(["config", "--worktree", "--unset", "core.sparseCheckout"]);
    assert_equal_to_git(&world, By::Git("its checkouts are sparse"));
}

#[test]
fn clones_of_every_kind_and_linked_worktrees_get_the_files_that_git_writes() {
    let world = World::new();
    world.write("src/lib.txt", "more\n");
    world.commit("more");
    world.git(["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", world.repo.display());
    for (options, expected) in [
        (&["--depth=1"][..], By::Us),
        (&["--shared"], By::Us),
        (&["--bare"], By::Us),
        (&["--filter=blob:none", "--no-checkout"], By::Git("it is a partial clone")),
    ] {
        let clone = world.home().join("clone");
        let from = if options == ["--shared"] { world.repo.to_str().unwrap() } else { &from };
        world.git([&["clone", "-q"], options, &[from, clone.to_str().unwrap()]].concat());
        assert_equal_to_git_in(&world, &clone, expected);
        fs::remove_dir_all(&clone).unwrap();
    }
    let linked = world.home().join("linked");
    world.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    assert_equal_to_git_in(&world, &linked, By::Us);
    // A linked worktree's own configuration holds there alone, and the main one's is copied.
    world.git(["config", "extensions.worktreeConfig", "true"]);
    world.git_in(&linked, ["config", "--worktree", "core.symlinks", "false"]);
    assert_equal_to_git_in(&world, &linked, By::Us);
    world.git(["config", "--worktree", "core.fileMode", "false"]);
    assert_equal_to_git_in(&world, &linked, By::Git("core.fileMode is false"));
}

#[test]
fn worktrees_beyond_the_number_that_is_filled_at_once_are_complete() {
    let world = World::new();
    world.git(["config", "frites.limits.candidates", "150"]);
    world.git(["config", "frites.limits.worktrees", "150"]);
    let run = world.spawn(["-n", "130"]);
    for at in [1, 2, 64, 128, 129, 130] {
        let worktree = world.worktree(&format!("{run}/c{at}"));
        assert_eq!(World::files_of(&worktree), world.files(), "c{at}");
        assert_clean_without_reading(&world, &worktree);
    }
}

#[test]
fn registered_worktrees_look_to_git_like_its_own() {
    let world = World::new();
    let by_git = world.home().join("c1");
    world.git(["worktree", "add", "-q", "-b", "by-git", by_git.to_str().unwrap()]);
    // A process was killed while it put an entry together.
    write(&world.repo.join(".git/frites-entry/HEAD"), "half of an ent");
    let run = world.spawn(["-n", "2"]);
    let entries = world.repo.join(".git/worktrees");
    // The name `c1` is taken.
    let own = entries.join("c11");
    let files = |entry: &Path| -> Vec<PathBuf> {
        let files = files_below(entry).into_iter();
        let not_of_checkout = files.filter(|p| !p.ends_with("ORIG_HEAD") && !p.ends_with("index"));
        not_of_checkout.map(|p| p.strip_prefix(entry).unwrap().to_owned()).collect()
    };
    assert_eq!(files(&own), files(&entries.join("c1")));
    let worktree = world.worktree(&format!("{run}/c1"));
    assert_eq!(
        fs::read_to_string(own.join("gitdir")).unwrap(),
        format!("{}\n", worktree.join(".git").display())
    );
    assert_eq!(
        fs::read_to_string(worktree.join(".git")).unwrap(),
        format!("gitdir: {}\n", own.display())
    );
    assert!(!world.repo.join(".git/frites-entry").exists());
    let list = world.git(["worktree", "list", "--porcelain"]);
    for candidate in ["c1", "c2"] {
        assert!(
            list.contains(&format!("branch refs/heads/frites/run/{run}/{candidate}")),
            "{list}"
        );
    }
    assert!(!list.contains("locked") && !list.contains("prunable"), "{list}");
    let reflog = world.git_in(&worktree, ["reflog", "--format=%H", "HEAD"]);
    assert_eq!(reflog, world.git(["rev-parse", "HEAD"]));
    world.assert_clean();
}

/// A build tool takes a source for built that is not younger than its output.
#[test]
fn sources_beside_young_seeds_are_younger_than_these() {
    let world = World::new();
    world.write(".gitignore", "/out\n");
    world.commit("an ignored output");
    world.write("out", "built\n");
    world.git(["config", "frites.seed.copy", "out"]);
    let modified = |run: &str, name: &str| {
        fs::metadata(world.worktree(&format!("{run}/c1")).join(name)).unwrap().modified().unwrap()
    };
    let run = world.spawn(["-n", "1"]);
    assert!(modified(&run, "README") >= modified(&run, "out"));
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::options()
        .write(true)
        .open(world.repo.join("out"))
        .and_then(|file| file.set_modified(old))
        .unwrap();
    let run = world.spawn(["-n", "1"]);
    assert!(modified(&run, "README") > modified(&run, "out"));
    assert_clean_without_reading(&world, &world.worktree(&format!("{run}/c1")));
}
