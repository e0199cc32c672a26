//! A published crate with its own test suite, from a bug in it to the landed fix, offline.
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{TestWorld, World, source};

/// The line of strsim's Levenshtein distance that the bug is in, and with the bug.
const RIGHT: &str = "result = min(result + 1, min(distance_a, distance_b + 1));";
const WRONG: &str = "result = min(result + 1, max(distance_a, distance_b + 1));";

/// Another distance in a file of its own, which is right and needless.
const NEEDLESS: &str = "\
//! The whole matrix, row by row.

pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..b.len() + 1).collect()];
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replace = rows[i][j] + usize::from(x != *y);
            let remove = rows[i][j + 1] + 1;
            let insert = row[j] + 1;
            row.push(replace.min(remove).min(insert));
        }
        rows.push(row);
    }
    rows[rows.len() - 1][b.len()]
}
";

/// The commands of each candidate; `edit` changes the library's source.
const ATTEMPTS: &str = r#"
edit() { sed "$@" src/lib.rs >lib.new; mv lib.new src/lib.rs; }
fix='s/max(distance_a, /min(distance_a, /'
case $FRITES_CANDIDATE in
large)
    edit "$fix"
    git commit -q -a -m 'Fix the distance'
    cp "$NEEDLESS" src/matrix.rs
    edit -e 's/^use std::char;/mod matrix;\n&/' -e 's/^    generic_levenshtein(&Str.*/    matrix::distance(a, b)/'
    git add -A
    git commit -q -m 'Compute the whole matrix' ;;
no-build) edit 's/max(distance_a, distance_b + 1)/min(distance_a, distance_b + 1/' ;;
no-test) edit 's/max(distance_a, distance_b + 1)/min(distance_a, distance_b)/' ;;
small) edit "$fix"; cargo build --quiet ;; # leaves target/ behind, as an agent would
nothing) ;;
exits-3) edit "$fix"; exit 3 ;;
esac"#;

/// A copy of strsim, which this project depends on, committed as it was published and then with a
/// bug.
struct Strsim {
    world: World,
    /// The published source of the library.
    source: Vec<u8>,
    /// The tree as it was published.
    tree: String,
    /// The commit with the bug.
    base: String,
}

impl Strsim {
    fn new() -> Strsim {
        let mut world = World::unborn();
        world.set_env("CARGO_NET_OFFLINE", "true");
        // Nobody debugs what is built here, or builds it a second time.
        world.set_env("CARGO_PROFILE_DEV_DEBUG", "0");
        world.set_env("CARGO_INCREMENTAL", "0");
        if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
            world.set_env("RUSTUP_TOOLCHAIN", toolchain);
        }
        copy(&package(&world, "strsim"), &world.repo);
        let needless = world.home().join("needless.rs");
        fs::write(&needless, NEEDLESS).unwrap();
        world.set_env("NEEDLESS", needless);
        world.run(&world.repo, "cargo", ["generate-lockfile"]).expect(0);
        // The crate ignores its lock file.
        world.git(["add", "-f", "Cargo.lock"]);
        world.commit("strsim as published");
        let tree = world.tree("HEAD");
        let source = fs::read(world.repo.join("src/lib.rs")).unwrap();
        let text = String::from_utf8(source.clone()).unwrap();
        assert_eq!(
            text.matches(RIGHT).count(),
            1,
            "strsim is not what it was: choose another line"
        );
        world.write("src/lib.rs", text.replace(RIGHT, WRONG));
        let base = world.commit("introduce a bug");
        Strsim { world, source, tree, base }
    }

    /// Spawns these candidates with their attempts; gives the progress that was told.
    fn attempt(&self, candidates: &[&str]) -> String {
        let words = [&["spawn", "-c"], candidates, &["--", "sh", "-euc", ATTEMPTS]].concat();
        let answer = self.world.frites(words).expect(0);
        let lines: String = candidates
            .iter()
            .map(|c| {
                let path = self.world.worktree(&format!("1/{c}"));
                // That of an attempt that changed nothing is gone.
                let path = path.exists().then(|| path.display().to_string());
                format!("1/{c}\t{}\n", path.unwrap_or_default())
            })
            .collect();
        assert_eq!(answer.out(), lines);
        answer.stderr
    }

    /// Each candidate's captured tree.
    fn captured(&self, candidate: &str) -> String {
        self.world.tree(&format!("refs/frites/1/{candidate}"))
    }
}

/// Where cargo keeps a package of this project's lock file.
fn package(world: &World, name: &str) -> PathBuf {
    let project = source();
    let rustc = world.run(&project, "rustc", ["-vV"]).expect(0).out();
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).unwrap();
    // Without a platform cargo would want packages for others, which nobody downloaded.
    let words =
        ["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host];
    let metadata = world.run(&project, "cargo", words).expect(0).json();
    let found =
        metadata["packages"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap();
    assert_eq!(found["dependencies"].as_array().unwrap().len(), 0, "{name} builds alone");
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

/// Copies a package, without what cargo itself put there.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let own = [
            ".cargo-ok",
            ".cargo-checksum.json",
            ".cargo_vcs_info.json",
            "Cargo.toml.orig",
            "Cargo.lock",
        ];
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(to.join(&name)).unwrap();
            copy(&entry.path(), &to.join(&name));
        } else if !own.iter().any(|o| name == *o) {
            // Not `fs::copy`: a vendored source may be read-only.
            fs::write(to.join(&name), fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// The results of a candidate's commands in the verdict.
fn outcomes(verdict: &serde_json::Value, candidate: &str) -> String {
    let entries = verdict["candidates"].as_array().unwrap();
    let entry = entries.iter().find(|e| e["candidate"] == candidate).unwrap();
    let results = entry["results"].as_array().cloned().unwrap_or_default();
    let words: Vec<String> = results
        .iter()
        .map(|r| {
            let code = r["code"].as_i64().map(|c| format!(" {c}")).unwrap_or_default();
            format!("{} {}{code}", r["stage"].as_str().unwrap(), r["outcome"].as_str().unwrap())
        })
        .collect();
    words.join(", ")
}

#[test]
fn smallest_attempt_that_passes_a_crates_tests_lands() {
    let strsim = Strsim::new();
    let world = &strsim.world;
    let broken = world.run(&world.repo, "cargo", ["test", "--locked", "--lib"]).expect(101);
    assert!(
        broken.out().contains("test tests::levenshtein_diff_short ... FAILED"),
        "{}",
        broken.out()
    );
    let before = world.belongings();

    let told = strsim.attempt(&["large", "no-build", "no-test", "small", "nothing", "exits-3"]);
    for line in ["1/small: succeeded in ", "1/nothing: empty in ", "1/exits-3: failed (exit 3) in "]
    {
        assert!(told.contains(line), "no '{line}':\n{told}");
    }
    let status = world.frites(["status", "1", "--json"]).expect(0).json();
    let states: Vec<&str> = status["runs"][0]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["succeeded", "succeeded", "succeeded", "succeeded", "empty", "failed"]);
    assert!(!world.worktree("1/nothing").exists());

    let judged = world.frites(["judge"]).expect(0);
    let counts = world.git(["diff-tree", "-r", "--numstat", &strsim.base, "refs/frites/1/large"]);
    let lines: u32 = counts.split_whitespace().filter_map(|word| word.parse::<u32>().ok()).sum();
    // The whole answer but for the times: nothing that a command said is among it.
    let words = |line: &str| {
        let is_time = |w: &str| w.strip_suffix('s').is_some_and(|n| n.parse::<f64>().is_ok());
        line.split_whitespace().filter(|w| !is_time(w)).collect::<Vec<_>>().join(" ")
    };
    let place = TestWorld::of_this_test().in_words();
    let expected = format!(
        "candidate outcome time lines files flags
1/@base test exit 101 - -
12 of 107 tests fail: lib::levenshtein_works,
lib::normalized_levenshtein_works,
strsim::src/lib.rs - generic_levenshtein (line 228),
strsim::src/lib.rs - levenshtein (line 264), and 8 more
* 1/small passed 2 1
1/large passed {lines} 2
1/no-test test exit 101 2 1
2 of 107 tests fail: strsim::tests::levenshtein_diff_longer (fails on the
base, too),
strsim::tests::levenshtein_diff_with_space (fails on the base, too)
1/no-build build exit 101 2 1
1/nothing - - 0 0 empty
1/exits-3 - - 2 1 failed (exit 3)

the commands ran {place}; attempts unguarded
judge: 2 of 4 passed; small changes the fewest lines, with 2 lines in 1 file; \
next is large with {lines} lines in 2 files"
    );
    assert_eq!(judged.out().lines().map(words).collect::<Vec<_>>().join("\n"), expected);
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    assert_eq!((&verdict["decision"], &verdict["recommended"]), (&"judge".into(), &"small".into()));
    let oracle: Vec<String> = verdict["oracle"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["command"].to_string() + &c["source"].to_string())
        .collect();
    assert_eq!(
        oracle,
        [
            r#"["cargo","build","--locked"]"Cargo.toml""#,
            r#"["cargo","test","--locked","--no-fail-fast"]"Cargo.toml""#
        ]
    );
    for (candidate, ends) in [
        ("large", "build passed, test passed"),
        ("no-build", "build failed 101, test skipped"),
        ("no-test", "build passed, test failed 101"),
        ("small", "build passed, test passed"),
        ("nothing", ""),
        ("exits-3", ""),
    ] {
        assert_eq!(outcomes(&verdict, candidate), ends, "{candidate}");
    }
    assert_eq!(world.belongings(), before, "nothing of the user's has moved so far");

    // The bug undone is the crate as it was published: one tree id from the attempt to the branch.
    assert_eq!(
        world.frites(["apply", "-m", "Mend the distance"]).expect(0).out(),
        "frites/apply/1\n"
    );
    assert_eq!(strsim.captured("small"), strsim.tree);
    assert_eq!(world.tree("frites/apply/1"), strsim.tree);
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/frites/apply/1");
    assert_eq!(world.git(["rev-parse", "HEAD^"]), strsim.base);
    assert_eq!(fs::read(world.repo.join("src/lib.rs")).unwrap(), strsim.source);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    let tree =
        world.git(["log", "-1", "--format=%(trailers:key=Frites-Tree,valueonly,separator=)"]);
    assert_eq!(tree, strsim.tree);
    let tested = world.run(&world.repo, "cargo", ["test", "--locked"]).expect(0);
    assert_eq!(
        tested.out().matches("test result: ok.").count(),
        3,
        "unit, integration and doc tests:\n{}",
        tested.out()
    );

    world.git(["switch", "-q", "-"]);
    assert_eq!(world.git(["symbolic-ref", "HEAD"]), "refs/heads/main");

    // Nothing that an attempt made is lost, whatever became of it.
    world.frites(["clean", "1"]).expect(0);
    assert_eq!(strsim.captured("exits-3"), strsim.tree);
    assert_eq!(world.git(["show", "refs/frites/1/large:src/matrix.rs"]) + "\n", NEEDLESS);
    let subjects = world.git(["log", "--format=%s", "main..refs/frites/1/large"]);
    for own in ["Fix the distance", "Compute the whole matrix"] {
        assert!(subjects.lines().any(|s| s == own), "its own commit '{own}' is gone:\n{subjects}");
    }
    world.assert_clean();
}

#[test]
fn nothing_lands_when_no_attempt_passes_a_crates_tests() {
    let strsim = Strsim::new();
    let world = &strsim.world;
    let before = world.belongings();
    strsim.attempt(&["no-build", "no-test", "nothing"]);
    let judged = world.frites(["judge"]).expect(1);
    let rationale = "near-miss: none of 2 passed; no-test came closest: it passed build and then failed test \
                     (exit 101; 2 of 107 tests), with 2 lines in 1 file; of its failing tests 2 (each fails on the base, too): \
                     strsim::tests::levenshtein_diff_longer, strsim::tests::levenshtein_diff_with_space\n";
    assert!(judged.out().ends_with(rationale), "expected {rationale}in:\n{}", judged.out());
    for (log, words) in
        [("no-build/build.log", "error: "), ("no-test/test.log", "test result: FAILED")]
    {
        let text = fs::read_to_string(world.repo.join(".frites/runs/1").join(log)).unwrap();
        assert!(text.contains(words), "{log}:\n{text}");
    }
    assert_eq!(world.frites(["judge", "--replay", "-q"]).expect(1).out(), "");
    world.frites(["apply"]).refuses(1, "nothing verified to land: none of 2 passed");
    world
        .frites(["apply", "1/no-build", "-m", "No"])
        .refuses(1, "1/no-build failed build (exit 101)");
    assert_eq!(world.git(["for-each-ref", "refs/heads/frites/apply"]), "");
    assert_eq!(world.belongings(), before);
    world.assert_clean();
}
