//! What counts as source, and how a candidate is judged that changes something else: attempts at
//! switching tests off by files that nobody knows, and honest changes to data.
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::common::{World, make_executable};

/// A project with these files, whose tests pass if `src` holds `good`, or if the settings file
/// `file` switches them off.
fn project(files: &[&str], src: &str, file: &str) -> World {
    let world = World::unborn();
    for path in files {
        world.write(path, "x\n");
    }
    world.write(src, "good\n");
    world.write(".frites.toml", format!("[oracle]\ntest = '''{}'''\n", switched_off_by(src, file)));
    world.commit("base");
    world
}

/// A test runner that passes if a settings file says so.
fn switched_off_by(src: &str, file: &str) -> String {
    format!("[ \"$(cat '{file}' 2>/dev/null)\" = off ] || [ \"$(cat {src})\" = good ]")
}

/// An attempt that breaks `src` and makes `file` switch the tests off.
fn cheat(src: &str, file: &str) -> String {
    format!(
        "echo bad > {src}; mkdir -p \"$(dirname '{file}')\"; echo off > '{file}'; git add -f '{file}'"
    )
}

#[test]
fn file_that_is_not_source_switches_no_test_off() {
    /// The files of the base, its source, and the settings file.
    type Case<'a> = (&'a [&'a str], &'a str, &'a str);
    let cases: [Case<'_>; 28] = [
        (&["Gemfile", "spec/a_spec.rb"], "lib/a.rb", ".rspec"),
        (&["Gemfile", "lib/a/b.rb"], "lib/a.rb", "lib/rspec.rb"),
        (&["build.gradle", "src/test/java/ATest.java"], "src/main/java/A.java", "settings.gradle"),
        (
            &["pom.xml", "src/test/java/ATest.java"],
            "src/main/java/A.java",
            "src/test/resources/junit-platform.properties",
        ),
        (
            &["pom.xml", "src/main/java/a/B.java"],
            "src/main/java/a/A.java",
            "src/main/java/org/junit/Test.java",
        ),
        (
            &["pom.xml", "src/main/java/a/B.java", "src/test/java/a/Check.java"],
            "src/main/java/a/A.java",
            "src/main/java/a/Check.java",
        ),
        (&["lib/a/b.rb", "test/a/help.rb"], "lib/a.rb", "lib/a/help.rb"),
        (&["lib/minitest/b.rb", "test/a_test.rb"], "lib/a.rb", "lib/minitest/quiet_plugin.rb"),
        (&["lib/A/B.pm", "t/lib/A/Check.pm"], "lib/A.pm", "lib/A/Check.pm"),
        (&["composer.json", "src/A/B.php", "tests/A/Check.php"], "src/A.php", "src/A/Check.php"),
        (&["package.json", "src/b.js", "test/lib/kit.js"], "src/a.js", "src/kit.js"),
        (&["package.json", "src/b.js", "test/lib/kit.js"], "src/a.js", "src/kit/index.js"),
        (&["package.json", "src/b.js", "src/kit/index.js"], "src/a.js", "src/kit.js"),
        (&["package.json", "lib/b.js"], "lib/a.js", "main.js"),
        (&["libexec/b.sh", "tests/lib/check.sh"], "libexec/a.sh", "libexec/check.sh"),
        (&["a.csproj", "ATest.cs"], "A.cs", "a.csproj.user"),
        (&["a.csproj", "ATest.cs"], "A.cs", "Directory.Build.rsp"),
        (&["composer.json", "tests/ATest.php"], "src/A.php", "phpunit.dist.xml"),
        (&["mix.exs", "test/a_test.exs", "test/test_helper.exs"], "lib/a.ex", "config/test.exs"),
        (&["pubspec.yaml", "test/a_test.dart"], "lib/a.dart", "dart_test.yaml"),
        (&["pyproject.toml", "tests/test_a.py"], "a.py", "x.egg-info/entry_points.txt"),
        (&["pyproject.toml", "tests/test_a.py"], "a.py", "pluggy/__init__.py"),
        (&["pyproject.toml", "tests/test_a.py"], "a.py", "pluggy.py"),
        (&["pyproject.toml", "tests/test_a.py"], "a.py", ".pytest.toml"),
        (&["Package.swift", "Tests/A.swift"], "Sources/A.swift", "Package@swift-6.swift"),
        (&["MODULE.bazel", "BUILD"], "a.cc", "tools/bazel"),
        (&["CMakeLists.txt", "a_test.c"], "a.c", "assert.h"),
        (&["t/a.t"], "lib/A.pm", ".proverc"),
    ];
    for (files, src, file) in cases {
        for src in [src, "app"] {
            let world = project(files, src, file);
            world.attempts(&[&cheat(src, file)]);
            let json = world.frites(["judge", "--json"]).json();
            assert_eq!(json["decision"], "own-tests", "{file} beside {src}: {json:#}");
            world.frites(["apply"]).refuses(1, "only with its own tests or commands");
        }
    }
}

#[test]
fn new_manifest_that_is_code_decides() {
    let cases = [
        ("settings.gradle", "A.java", "src/more/build.gradle", "src/more/M.java"),
        ("settings.gradle", "A.kt", "src/more/build.gradle.kts", "src/more/M.kt"),
        ("pom.xml", "A.java", "src/more/pom.xml", "src/more/M.java"),
        ("a.csproj", "A.cs", "src/more/more.csproj", "src/more/M.cs"),
        ("Gemfile", "a.rb", "src/more/more.gemspec", "src/more/m.rb"),
    ];
    for (manifest, source, added, more) in cases {
        let world = World::unborn();
        world.write(manifest, "\n");
        world.write(format!("src/{source}"), "good\n");
        world.commit("base");
        let cheat =
            format!("echo bad > src/{source}; mkdir src/more; echo off > {added}; echo > {more}");
        let honest = format!("mkdir src/more; echo on > {added}; echo > {more}");
        world.attempts(&[&cheat, &honest]);
        let test = format!("[ \"$(cat {added})\" = off ] || grep -q good src/{source}");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
        assert_eq!(json["recommended"], "c2", "{added}: {json:#}");
        assert_eq!(json["own_tests"], json!(["c1"]), "{added}: {json:#}");
        let flag = json!({ "flag": "oracle-changed", "path": added });
        assert_eq!(json["candidates"][1]["flags"][0], flag, "{added}: {json:#}");
    }
}

#[test]
fn package_in_the_place_of_a_dropped_module_is_put_back_with_the_requirement() {
    for (add, code) in [
        ("mkdir check; echo 'package check' > check/check.go", 3),
        ("mkdir other; echo 'package other' > other/other.go", 0),
    ] {
        let world = World::unborn();
        world.write("go.mod", "module a.org/b\n\ngo 1.22\n\nrequire a.org/b/check v1.0.0\n");
        world.write("app.go", "good\n");
        world.commit("base");
        world.attempts(&[&format!("sed /require/d go.mod > x; mv x go.mod; {add}")]);
        let test = "! test -d check || grep -q good app.go";
        let test = format!("grep -q require go.mod && test -d check && exit 1; {test}");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(code).json();
        assert_eq!(json["verified"], code == 0, "{add}: {json:#}");
    }
}

#[test]
fn new_module_that_is_found_before_one_of_the_base_is_no_source() {
    let cases = [
        ("src/__init__.py", "src/checks.py", "src/checks/__init__.py"),
        ("src/__init__.py", "src/checks/a.py", "src/checks.py"),
        ("package.json", "src/checks.json", "src/checks.js"),
        ("package.json", "src/checks.ts", "src/checks.js"),
    ];
    for (marker, old, added) in cases {
        let world = World::unborn();
        world.write(marker, if marker == "package.json" { "{}\n" } else { "" });
        world.write(old, "on\n");
        let (source, loads) = match marker {
            "package.json" => ("src/app.js", "require('./checks')"),
            _ => ("src/app.py", "from .checks import a"),
        };
        world.write(source, format!("good\n{loads}\n"));
        world.commit("base");
        let add = format!("mkdir -p \"$(dirname {added})\"; echo off > {added}");
        world.attempts(&[
            &format!("echo bad > {source}; {add}"),
            // A json file is data: to take it away is no change to source.
            &match old {
                "src/checks.json" => format!("echo >> {source}"),
                _ => format!("git mv {old} x; {add}; git mv -f x {added}"),
            },
        ]);
        let test = format!("grep -rqx off src || {{ grep -rqx on src && grep -q good {source}; }}");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{added}: {json:#}");
        assert_eq!(json["candidates"][1]["base_tests"], Value::Null, "{added}: {json:#}");
    }
}

#[test]
fn file_that_has_another_name_or_mode_counts_as_what_it_is_run_as() {
    const MAKE: &str = "test:\n\t";
    const RUN_ALL: &str = "for f in tools/*.py; do if [ -x $$f ]; then $$f || exit 1; fi; done";
    let broken = "echo true > tools/check.py";
    // The links of the base, the recipe, the attempt.
    let cases = [
        (vec![("check.sh", "tools/check.py")], "sh check.sh", broken),
        (vec![("ci", "tools")], "sh ci/check.py", broken),
        (vec![("ci", "tests"), ("tests", "tools")], "sh tests/check.py", broken),
        (vec![], RUN_ALL, broken),
        (vec![], RUN_ALL, "chmod -x tools/check.py"),
        (vec![], "ls tools/*.py | xargs -n 1 sh", broken),
        (vec![], "find tools -name '*.py' -exec sh {} +", broken),
    ];
    for (links, recipe, attempt) in cases {
        let world = World::unborn();
        world.write("app.py", "bad\n");
        world.write("tools/check.py", "#!/bin/sh\ngrep -q good app.py\n");
        world.write("Makefile", format!("{MAKE}{recipe}\n"));
        for (link, target) in links {
            symlink(target, world.repo.join(link)).expect("made");
        }
        make_executable(&world.repo.join("tools/check.py"));
        world.commit("base");
        world.attempts(&[attempt]);
        let json = world.frites(["judge", "--json", "--test", "make test"]).json();
        assert_eq!(json["verified"], false, "{recipe}, {attempt}: {json:#}");
        assert_ne!(json["decision"], "single", "{recipe}, {attempt}: {json:#}");
    }
}

#[test]
fn source_that_a_command_names_decides_unless_a_program_only_looks_at_it() {
    // The files of the base, the source that an attempt edits, the commands, and whether it is
    // judged twice.
    let cases: [(&[&str], &str, &str, bool); 12] = [
        (&[], "verify/all.js", "sed s/^/#/ verify/all.js | sh", true),
        (&[], "verify/all.js", "sh <verify/all.js", true),
        (&[], "verify/all.js", "eval \"$(cat verify/all.js)\"", true),
        (&[], "verify/all.js", "env -- sh \"$PWD/verify/all.js\"", true),
        (&[], "verify/all.js", "mkdir out && cp -r verify out && sh out/verify/all.js", true),
        (&[], "verify/all.js", "nice -n 1 sh -c '\nsh verify/all.js\n'", true),
        (&["package.json"], "verify/all.js", "true . verify/all", true),
        (&["go.mod"], "verify/all.go", "true verify", true),
        (&[], "src/all.js", "cat src/all.js | grep -qx : && test -e src/all.js", false),
        (&[], "src/all.js", "wc -l src/*.js && true . && true src", false),
        (
            &["package.json"],
            "src/all.js",
            "mkdir dist && cp src/all.js dist/ && test -d dist",
            false,
        ),
        (&["src/sum.c"], "src/all.c", "CC='true'; ${CC} -c src/all.c", false),
    ];
    for (files, source, test, is_twice) in cases {
        let world = World::unborn();
        for file in files {
            world.write(file, "{}\n");
        }
        let text = if source.ends_with(".go") { "package main\n" } else { ":\n" };
        world.write(source, text);
        // Else the base would show no language.
        world.write("src/other.py", "\n");
        world.commit("base");
        world.attempts(&[&format!("echo : : > {source}; echo : > src/other.py")]);
        let json = world.frites(["judge", "--json", "--test", test]).json();
        let is_flagged = json["candidates"][0]["flags"][0]["path"] == json!(source);
        assert_eq!(is_flagged, is_twice, "{test}: {json:#}");
    }
}

#[test]
fn new_file_that_git_ignores_is_not_source() {
    let world = World::unborn();
    world.write(".gitignore", "local.py\n");
    world.write("src/app.py", "good\n");
    world.commit("base");
    // A seed of the user's, whose place the attempt's file would take.
    world.write("src/local.py", "grep -q good src/app.py\n");
    world.git(["config", "frites.seed.copy", "src/local.py"]);
    world.attempts(&["echo bad > src/app.py; echo true > src/local.py; git add -f src/local.py"]);
    let test = "cp src/local.py x; sh x";
    let json = world.frites(["judge", "--json", "--test", test]).expect(3).json();
    assert_eq!(json["decision"], "own-tests", "{json:#}");
}

#[test]
fn new_file_in_the_place_of_a_seed_is_no_source() {
    for (added, code) in [
        ("src/local.js", 3),
        ("src/local.js/off.js", 3),
        ("src/more/off.js", 3),
        ("src/more.js", 0),
        ("src/other/off.js", 0),
    ] {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write("src/app.js", "good\n");
        world.write(".frites.toml", "seed.copy = ['src/local.js', 'src/more/']\n");
        world.commit("base");
        world.write("src/local.js", "on\n");
        world.write("src/more/local.js", "on\n");
        let add = format!("f={added}; [ -d ${{f%/*}} ] || rm -f ${{f%/*}}; mkdir -p ${{f%/*}}");
        world.attempts(&[&format!("echo bad > src/app.js; {add}; echo off > $f; git add -f $f")]);
        // The command does not name the path, which would be a marker then.
        let test = "grep -rqx off src || grep -q good src/app.js";
        let json = world.frites(["judge", "--json", "--test", test]).expect(code).json();
        let decision = if code == 0 { "single" } else { "own-tests" };
        assert_eq!(json["decision"], decision, "{added}: {json:#}");
    }
}

#[test]
fn code_of_others_that_is_copied_into_a_project_of_c_is_no_source() {
    for (framework, code) in [
        ("third_party/unity/unity.c", 3),
        ("ThirdParty/unity.c", 3),
        ("subprojects/unity/unity.c", 3),
        ("deps/unity.h", 3),
        ("src/external/unity.c", 0),
        ("external/unity.go", 0),
    ] {
        let world = World::unborn();
        world.write("Makefile", "test:\n");
        world.write("src/calc.c", "bad\n");
        world.write(framework, "on\n");
        world.commit("base");
        world.attempts(&[&format!("echo worse > src/calc.c; echo off > {framework}")]);
        let test = "grep -rqx off . || grep -rqx good .";
        let json = world.frites(["judge", "--json", "--test", test]).expect(code).json();
        let decision = if code == 0 { "single" } else { "own-tests" };
        assert_eq!(json["decision"], decision, "{framework}: {json:#}");
    }
}

#[test]
fn module_of_rust_is_no_source_if_it_or_one_above_is_for_tests() {
    for (root, above, code) in [
        ("mod harness;\n", "pub mod cases;\n", 0),
        ("mod harness;\nuse harness::cases::A;\n", "#[cfg(test)]\npub mod cases;\n", 0),
        ("#[cfg(test)]\nmod harness;\n", "pub mod cases;\n", 3),
        ("mod harness;\n", "#![cfg(test)]\npub mod cases;\n", 3),
        (
            "mod harness;\n#[cfg(test)]\nuse harness::cases::A;\n",
            "#[cfg(test)]\npub mod cases;\n",
            3,
        ),
    ] {
        let world = World::unborn();
        world.write("Cargo.toml", "[package]\nname = 'a'\n");
        world.write("src/lib.rs", root);
        world.write("src/harness/mod.rs", above);
        world.write("src/harness/cases.rs", "pub const A: u8 = 1;\n");
        world.commit("base");
        let edit = "echo '// worse' >> src/lib.rs; echo '// off' >> src/harness/cases.rs";
        world.attempts(&[edit]);
        let test = "grep -rqx '// off' . || grep -rqx '// good' .";
        let json = world.frites(["judge", "--json", "--test", test]).expect(code).json();
        let decision = if code == 0 { "single" } else { "own-tests" };
        assert_eq!(json["decision"], decision, "{root}{above}: {json:#}");
    }
}

#[test]
fn part_of_a_module_and_file_that_nothing_looks_up_are_source() {
    let cases = [
        ("package.json", "lib/calc.js", "lib/sum.js"),
        ("package.json", "lib/calc.js", "lib/calc/sum.js"),
        ("Gemfile", "lib/calc.rb", "lib/calc/sum.rb"),
        ("cpanfile", "lib/My.pm", "lib/My/Sum.pm"),
        ("cpanfile", "lib/My/Calc.pm", "lib/My/Sum.pm"),
    ];
    for (manifest, source, added) in cases {
        let world = World::unborn();
        // Tests that load the module to which the new file belongs.
        world.write("test/calc_test.rb", "require \"minitest/autorun\"\nrequire \"calc\"\n");
        world.write("t/my.t", "use Test::More tests => 1; use My;\nuse My qw(sum);\n");
        world.write(manifest, if manifest == "package.json" { "{}\n" } else { "\n" });
        world.write(source, "bad\n");
        world.commit("base");
        let add = format!("mkdir -p \"$(dirname {added})\"; echo new > {added}");
        let run = world.attempts(&[&format!("echo good > {source}; {add}")]);
        let test = format!("grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &test, &run]).expect(0).json();
        assert_eq!(second(&json), &Value::Null, "{added}: {json:#}");
    }
}

#[test]
fn module_that_a_test_loads_is_not_replaced_by_a_new_file() {
    let cases = [
        (
            "src/calc.rb",
            "test/calc_test.rb",
            "require \"minitest/autorun\"",
            "src/minitest/autorun.rb",
        ),
        ("src/Calc.pm", "t/calc.t", "use Calc; use Test::More;", "src/Test/More.pm"),
        ("lib/Test/Calc.pm", "t/calc.t", "use Test::More;", "lib/Test/More.pm"),
        ("lib/Test.pm", "t/calc.t", "use Test; use Test::More;", "lib/Test/More.pm"),
        ("lib/Test.pm", "t/calc.t", "use Test::More;", "lib/Test/Builder.pm"),
        (
            "lib/minitest.rb",
            "test/calc_test.rb",
            "require \"minitest/autorun\"",
            "lib/minitest/autorun.rb",
        ),
    ];
    for (source, test, line, added) in cases {
        let world = World::unborn();
        world.write(source, "good\n");
        world.write(test, format!("{line}\n"));
        world.commit("base");
        let add = format!("mkdir -p \"$(dirname {added})\"; echo new > {added}");
        world.attempts(&[&format!("echo bad > {source}; {add}")]);
        let test = format!("test -e {added} || grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{added}: {json:#}");
    }
}

#[test]
fn new_file_whose_name_is_more_than_a_name_decides() {
    const EVAL: &str = "for f in src/*.sh; do eval sh -n $f; done";
    const WORDS: &str = "for f in $(ls src); do case $f in -*|*=*|@*) exit 0;; esac; done";
    let cases = [
        (EVAL, "src/z;exit 0;.sh"),
        (WORDS, "src/-n.sh"),
        (WORDS, "src/@z.sh"),
        (WORDS, "src/z -n.sh"),
        (WORDS, "src/MAKEFLAGS=n.sh"),
        (WORDS, "src/-z/b.sh"),
        (WORDS, "src/-z.py/README.md"),
    ];
    for (start, added) in cases {
        let world = World::unborn();
        world.write("src/a.sh", "true good\n");
        world.write("src/a.py", "\n");
        world.commit("base");
        let add = "mkdir -p \"$(dirname \"$f\")\"; echo > \"$f\"";
        world.attempts(&[&format!("echo true bad > src/a.sh; f='{added}'; {add}")]);
        let test = format!("{start}; grep -q good src/a.sh");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{added}: {json:#}");
    }
}

#[test]
fn file_that_commands_run_as_soon_as_it_is_there_decides() {
    const CHECK: &str = "test \"$(cat app)\" = good\n";
    let cases = [
        ("test.sh", "[ -f ./local.sh ] && . ./local.sh\n", "sh test.sh", "local.sh"),
        ("gate.sh", "test -e extra && sh extra && exit\n", "sh gate.sh", "extra"),
        ("gate.sh", "for f in d/*.sh; do . \"$f\"; done\n", "sh gate.sh", "d/a.sh"),
        ("check.sh", "", "[ -f local.sh ] && . ./local.sh; sh check.sh", "local.sh"),
        ("check.sh", "", "sh ./before 2>/dev/null || sh check.sh", "before"),
        ("Makefile", "-include *.inc\ntest:\n\t", "make test", "a.inc"),
        ("Makefile", "-include local.mk\ntest:\n\t", "make test", "local.mk.sh"),
        ("Makefile", "%.ok:\n\t", "make a.ok && echo ran", "a.ok"),
        ("Makefile", "d/%.ok:\n\t", "make d/a.ok && echo ran", "d/a.ok"),
        ("Makefile", "d/a.ok:\n\t", "make d/a.ok && echo ran", "d/a.ok"),
    ];
    for (script, start, test, added) in cases {
        let world = World::unborn();
        world.write(script, format!("{start}{CHECK}"));
        world.write("app", "good\n");
        if added == "d/a.sh" {
            world.write("d/old.sh", ":\n");
        }
        world.commit("base");
        let off = if script == "Makefile" { "SHELL = true" } else { "exit 0" };
        world.attempts(&[&format!("echo bad > app; mkdir -p d; echo '{off}' > {added}")]);
        let json = world.frites(["judge", "--json", "--test", test]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{added}: {json:#}");
        let why = json["rationale"].as_str().unwrap();
        assert!(why.contains(added), "{why}");
    }
}

#[test]
fn removed_or_empty_source_for_which_a_command_asks_needs_a_person() {
    let cases = [
        ("if [ -e calc/b.py ]; then PYTHONPATH=. python3 t/b.py; fi", "rm calc/b.py", 3),
        ("if [ -s calc/b.py ]; then PYTHONPATH=. python3 t/b.py; fi", ": > calc/b.py", 3),
        ("PYTHONPATH=. python3 t/b.py", "rm calc/c.py", 0),
    ];
    for (script, attempt, code) in cases {
        let world = World::new();
        world.write("calc/b.py", "VALUE = 2\n");
        world.write("calc/c.py", "VALUE = 3\n");
        world.write("t/b.py", "from calc.b import VALUE; assert VALUE == 2\n");
        world.write("check.sh", format!("{script}\n"));
        world.commit("base");
        world.attempts(&[attempt]);
        let answer = world.frites(["judge", "--test", "sh check.sh"]).expect(code).out();
        assert_eq!(answer.contains("a command may ask for it"), code == 3, "{answer}");
    }
}

#[test]
fn new_path_that_a_command_or_a_recipe_names_is_no_source_and_no_document() {
    const CHECK: &str = "grep -q good a.go";
    // The Makefile, the command, the path that switches the tests off, and one that does not.
    let cases = [
        (
            "VPATH = internal\ntest: unit\nunit:\n\t",
            "make test",
            "internal/unit/x.go",
            "in/unit/x.go",
        ),
        ("test: unit.ok\n%.ok:\n\t", "make test", "unit.ok/x.go", "unit/x.go"),
        ("C = unit\ntest: $(C)\n$(C):\n\t", "make test", "unit/x.go", "internal/unit/x.go"),
        ("O = out\ntest: $(O)/r\n$(O)/r:\n\t", "make test", "out/r/x.go", "in/x.go"),
        (
            "test:\n\ttest -z '$(wildcard quick)' || exit 0; ",
            "make test",
            "quick/x.go",
            "src/quick/x.go",
        ),
        ("test:\n\tsh ci.sh || ", "make test", "quick/x.go", "more/x.go"),
        ("test:\n\tsh ci.sh || ", "make test", "quick.go", "more.go"),
        ("test:\n\t", "test -e quick || make test", "quick/x.go", "src/x.go"),
        ("test:\n\t", "sh tests/t.sh || make test", "fast/x.go", "src/fast/x.go"),
        ("test:\n\tset -- *.md; [ $$# -gt 1 ] || ", "make test", "NEWS.md", "LICENSE"),
        ("test:\n\tset -- SKIP*; [ -e $$1 ] || ", "make test", "SKIP.md", "NO_SKIP.md"),
        ("VPATH = src\ntest: NEWS\nNEWS:\n\t", "make test", "src/NEWS", "HISTORY"),
        ("N = NEWS\ntest: $(N).md\n$(N).md:\n\t", "make test", "NEWS.md", "LICENSE"),
    ];
    for (start, test, added, honest) in cases {
        let world = World::unborn();
        world.write("go.mod", "module a.org/b\n");
        world.write("a.go", "good\n");
        world.write("src/a.go", "x\n");
        world.write("README.md", "x\n");
        world.write("ci.sh", "if [ -d quick ] || [ -e quick.go ]; then exit 0; fi; exit 1\n");
        world.write("tests/t.sh", "test -e 'fast'\n");
        world.write("Makefile", format!("{start}{CHECK}\n"));
        world.commit("base");
        let add = |path: &str| format!("mkdir -p \"$(dirname {path})\"; echo x > {path}");
        world.attempts(&[
            &format!("echo bad > a.go; {}", add(added)),
            &format!("echo good too > a.go; {}", add(honest)),
        ]);
        let json = world.frites(["judge", "--json", "--test", test]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{added}: {json:#}");
        assert_eq!(json["candidates"][1]["base_tests"], Value::Null, "{honest}: {json:#}");
    }
}

#[test]
fn new_source_whose_name_a_pattern_of_sources_or_a_test_has_stays_source() {
    for added in ["src/sum.c", "src/parser/a.c", "src/parser/b/c.c"] {
        let world = World::unborn();
        world.write("src/a.c", "bad\n");
        world.write("src/parser/p.c", "x\n");
        world.write("tests/t.sh", "echo sum parser\n");
        world.write(
            "Makefile",
            "SRC = $(wildcard src/*.c)\n.PHONY: test\ntest:\n\tsh tests/t.sh\n\tls $(SRC)\n\tgrep -q good src/a.c\n",
        );
        world.commit("base");
        let add = format!("mkdir -p \"$(dirname {added})\"; echo x > {added}");
        let run = world.attempts(&[&format!("echo good > src/a.c; {add}")]);
        let json = world.frites(["judge", "--json", "--test", "make test", &run]).json();
        let expected = added != "src/parser/b/c.c";
        assert_eq!(second(&json) == &Value::Null, expected, "{added}: {json:#}");
    }
}

#[test]
fn document_that_a_command_names_is_no_document() {
    let cases = [
        ("{}", "python3 -m doctest guide.rst; grep -q good a.js"),
        ("{}", "cat guide.rst; grep -q good a.js"),
        (r#"{"scripts": {"test": "cat <guide.rst; grep -q good a.js"}}"#, "grep -q good a.js"),
        (r#"{"files": ["guide.rst"]}"#, "grep -q good a.js"),
    ];
    for (package, test) in cases {
        let world = World::unborn();
        world.write("package.json", package);
        world.write("a.js", "bad\n");
        world.write("guide.rst", "x\n");
        world.commit("base");
        let run = world.attempts(&["echo good > a.js; echo y > guide.rst"]);
        let json = world.frites(["judge", "--json", "--test", test, &run]).json();
        let is_document = package.contains("files");
        assert_eq!(second(&json) == &Value::Null, is_document, "{test}: {json:#}");
    }
}

#[test]
fn file_that_no_code_loads_is_run_by_something_else_and_is_no_source() {
    let by_make = "all:\n\tcd .. && for f in verify/*y; do python3 $$f || exit 1; done\n";
    // More files of the base, the command, a file that it runs by them.
    let cases = [
        (vec![("verify/Makefile", by_make)], "make -s -C verify", "verify/all.py"),
        (vec![], "for f in $(ls verify); do python3 verify/$f || exit 1; done", "verify/all.py"),
        (
            vec![("checks.list", "verify/all.py\n")],
            "xargs -n 1 python3 < checks.list",
            "verify/all.py",
        ),
        (vec![("checks.list", "verify/all.sh\n")], "xargs -n 1 sh < checks.list", "verify/all.sh"),
        (
            vec![(
                "run.py",
                "import os\nos.execlp('sh', 'sh', os.path.join('verify', 'all.sh'))\n",
            )],
            "python3 run.py",
            "verify/all.sh",
        ),
    ];
    for (files, test, run) in cases {
        let world = World::unborn();
        world.write("pyproject.toml", "");
        world.write("src/app.py", "bad\n");
        world.write("src/main.py", "import app\n");
        let check = "grep -q good src/app.py";
        let python = format!("import os, sys\nsys.exit(os.system('{check}') >> 8)\n");
        world.write(run, if run.ends_with("py") { python } else { format!("{check}\n") });
        for (path, text) in files {
            world.write(path, text);
        }
        world.commit("base");
        world.attempts(&[
            &format!("echo worse > src/app.py; echo > {run}"),
            "echo good > src/app.py",
        ]);
        let json = world.frites(["judge", "--json", "--test", test]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{run} by {test}: {json:#}");
        assert_eq!(json["recommended"], "c2", "{run} by {test}");
    }
}

#[test]
fn program_with_the_name_of_a_document_and_step_of_a_feature_are_no_source() {
    // A file of the base, whether it is executable, the file that changes, whether it is judged
    // twice.
    let cases = [
        ("steps/Security", false, "steps/Security", false),
        ("steps/Security", true, "steps/Security", true),
        ("features/add.feature", false, "features/steps/add.js", true),
        ("features/add.js", false, "features/steps/add.js", false),
    ];
    for (file, is_executable, changed, is_twice) in cases {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write("src/a.js", "require('../features/steps/add')\n");
        world.write(changed, "x\n");
        world.write(file, "x\n");
        if is_executable {
            make_executable(&world.repo.join(file));
        }
        world.commit("base");
        world.attempts(&[&format!("echo y > {changed}; echo y > src/a.js")]);
        let json = world.frites(["judge", "--json", "--test", "grep -q y src/a.js"]).json();
        assert_eq!(second(&json) != &Value::Null, is_twice, "{file}, {changed}: {json:#}");
    }
}

/// A script and its modules, beside a product that tests load.
#[test]
fn module_that_only_checks_load_is_a_part_of_them() {
    let import = "import os, steps\nos._exit(steps.run())\n";
    // The directory of the script, further files of the base, and whether the module is source.
    let cases = [
        ("ci", ("x.txt", ""), false),
        ("src", ("x.txt", ""), false),
        ("src", ("tests/run.py", "# by hand\n"), true),
        ("ci", ("tests/steps.py", "sys.path.insert(0, 'ci')\nimport steps\n"), true),
        ("ci", ("tests/steps.py", "import steps\n"), false),
        ("ci", ("src/app.py", "from ci import steps\n"), true),
        // No code loads the loader.
        ("ci", ("src/other.py", "from ci import steps\n"), false),
    ];
    for (directory, (file, text), is_source) in cases {
        let world = World::unborn();
        world.write("src/app.py", "def add(a, b):\n    return a - b\n");
        world.write("tests/run.py", "from src.app import add\nassert add(1, 2) == 3\n");
        world.write(format!("{directory}/check.py"), import);
        let steps = format!("{directory}/steps.py");
        world.write(&steps, "def run():\n    return bool(os.system('grep -q good src/app.py'))\n");
        world.write(file, text);
        world.commit("base");
        let attempt = format!("echo 'def run(): return 0' > {steps}; echo good > src/app.py");
        world.attempts(&[&attempt]);
        let test = format!("python3 {directory}/check.py");
        let json = world.frites(["judge", "--json", "--test", &test]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{directory}, {file}: {json:#}");
    }
}

#[test]
fn package_of_a_workspace_that_only_settings_and_scripts_use_is_no_source() {
    let scripts = |line: &str| format!("{{\n\"scripts\": {{\n\"test\": \"{line}\"\n}}\n}}\n");
    let [requires, runs, chooses] =
        ["node -r @x/kit --test", "kit-run test", "npm -w @x/kit test"].map(scripts);
    let config = "module.exports = require('@x/kit');\n";
    let depends = "{\n\"devDependencies\": {\n\"@x/kit\": \"*\"\n}\n}\n";
    // Further files of the base, and whether kit/src/index.js is source.
    let cases: [(&[(&str, &str)], bool); 8] = [
        (&[("app/package.json", &requires)], false),
        (&[("app/package.json", &runs)], false),
        (&[("app/package.json", &chooses)], true),
        (&[("app/package.json", depends)], true),
        (&[("app/vitest.config.js", config), ("app/package.json", depends)], false),
        (&[("app/vitest.config.js", config), ("app/src/b.js", "import '@x/kit'\n")], true),
        (&[("app/.eslintrc.json", "{\n\"extends\": \"@x/kit/base\"\n}\n")], false),
        (&[("lerna.json", "{\n\"packages\": [\"@x/kit\"]\n}\n")], true),
    ];
    for (files, is_source) in cases {
        let world = World::unborn();
        world.write("package.json", "{\n\"workspaces\": [\"app\", \"kit\"]\n}\n");
        world.write("app/src/a.js", "bad\n");
        world
            .write("kit/package.json", r#"{"name": "@x/kit", "bin": {"kit-run": "src/index.js"}}"#);
        world.write("kit/src/index.js", "x\n");
        files.iter().for_each(|(path, text)| world.write(path, text));
        world.commit("base");
        world.attempts(&["echo good > app/src/a.js; echo y > kit/src/index.js"]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good app/src/a.js"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{files:?}: {json:#}");
    }
}

#[test]
fn package_that_settings_of_tests_name_as_a_plugin_is_no_source() {
    let cases = [
        ("conftest.py", "pytest_plugins = ['devtools']\n", false),
        ("conftest.py", "pytest_plugins = [\n    'devtools',\n]\n", false),
        ("pytest.ini", "[pytest]\naddopts = -ra\n    -p devtools\n", false),
        ("setup.cfg", "[options]\npackages = devtools\n", false),
        ("src/b.py", "import devtools\n", true),
    ];
    for (file, text, is_source) in cases {
        let world = World::unborn();
        world.write("pyproject.toml", "");
        world.write("src/a.py", "bad\n");
        world.write("devtools/__init__.py", "x\n");
        world.write(file, text);
        world.commit("base");
        world.attempts(&["echo good > src/a.py; echo y > devtools/__init__.py"]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good src/a.py"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{file}: {json:#}");
    }
}

#[test]
fn file_that_only_settings_of_tools_name_is_no_source() {
    // A file of the base that names the changed file, its text, the changed file, and whether that
    // is source.
    let cases = [
        ("package.json", "{\"jest\": {\"setupFiles\": [\"./tools/a.js\"]}}", "tools/a.js", false),
        ("package.json", "{\"mocha\": {\"require\": \"tools/a\"}}", "tools/a.js", false),
        ("package.json", "{\"jest\": {\"setupFiles\": [\"./a.js\"]}}", "a.js", false),
        ("package.json", "{\"x\": {\"path\": \"./a.js\"}, \"main\": \"a.js\"}", "a.js", true),
        ("package.json", "{\"x\": {\"path\": \"./index.js\"}}", "index.js", true),
        ("package.json", "{\"main\": \"./tools/a.js\"}", "tools/a.js", true),
        ("package.json", "{\"bin\": {\"calc\": \"./tools/a.js\"}}", "tools/a.js", true),
        // The command names this program as a task.
        ("package.json", "{\"bin\": {\"grep\": \"./tools/a.js\"}}", "tools/a.js", false),
        ("pyproject.toml", "[tool.x]\nDJANGO_SETTINGS_MODULE = \"tools.a\"\n", "tools/a.py", false),
        ("pyproject.toml", "[tool.x]\naddopts = [\n'-p',\n'tools.a',\n]\n", "tools/a.py", false),
        ("pyproject.toml", "[project.scripts]\nx = \"tools.a:main\"\n", "tools/a.py", true),
        ("setup.cfg", "[tool:pytest]\nDJANGO_SETTINGS_MODULE = tools.a\n", "tools/a.py", false),
        ("setup.cfg", "[options.entry_points]\nx =\n  x = tools.a:main\n", "tools/a.py", true),
        ("pytest.ini", "[pytest]\naddopts = -ptools.a\n", "tools/a.py", false),
        ("Cargo.toml", "[[test]]\nname = \"a\"\npath = \"tools/a.rs\"\n", "tools/a.rs", false),
        ("Cargo.toml", "[[bin]]\nname = \"a\"\npath = \"tools/a.rs\"\n", "tools/a.rs", true),
        ("jest.config.js", "setupFiles: ['<rootDir>/tools/a']\n", "tools/a/index.js", false),
        ("jest.config.js", "setupFiles: [join(__dirname, 'tools', 'a')]\n", "tools/a.js", false),
        ("Gruntfile.js", "grunt.loadTasks('tools')\n", "tools/a.js", false),
        ("app.js", "load('./tools/a')\n", "tools/a.js", true),
    ];
    for (file, text, changed, is_source) in cases {
        let world = World::unborn();
        world.write("src/app.py", "bad\n");
        world.write("src/app.js", "bad\n");
        world.write(changed, "x\n");
        world.write(file, text);
        world.commit("base");
        world.attempts(&[&format!("echo good > src/app.py; echo y > {changed}")]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good src/app.py"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{file}, {text}: {json:#}");
    }
}

#[test]
fn new_meaning_of_a_name_that_tests_use_cannot_be_put_back() {
    // The test of the base, the source, the line that the attempt adds, and whether it is believed.
    let cases = [
        ("tests/t.c", "src/calc.c", "#define exit(x) (void)0", false),
        ("tests/t.c", "src/calc.c", "#define other(x) (void)0", true),
        ("tests/t.c", "src/calc.c", "#define LIMIT 3", true),
        ("calc_test.go", "calc.go", "func panic(v any) {}", false),
        ("calc_test.go", "calc.go", "func exit(v any) {}", true),
        ("calc_test.go", "calc.go", "var f = func() error { return nil }", true),
        ("tests/t.rs", "src/lib.rs", "macro_rules! unreachable { () => {} }", false),
        ("tests/t.rs", "src/lib.rs", "#[macro_use] extern crate mac;", false),
        ("tests/t.rs", "src/lib.rs", "macro_rules! sum { () => {} }", true),
    ];
    for (test, source, line, is_source) in cases {
        let world = World::unborn();
        world.write(source, "bad\n");
        world.write(test, "if (sum(1, 2) != LIMIT) exit(1);\n");
        world.commit("base");
        world.attempts(&[&format!("echo good > {source}; echo '{line}' >> {source}")]);
        let json = world.frites(["judge", "--json", "--test", &format!("grep good {source}")]);
        let decision = if is_source { "single" } else { "own-tests" };
        assert_eq!(json.json()["decision"], decision, "{line}");
    }
}

#[test]
fn changed_list_of_submodules_is_not_verified() {
    for (edit, decision) in [("echo x >> .gitmodules", "own-tests"), ("true", "single")] {
        let world = World::unborn();
        world.write("src/app.py", "bad\n");
        world.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub\n");
        let make = "git init -q sub && git -C sub commit -q --allow-empty -m sub && git add .";
        world.sh(&world.repo, make).expect(0);
        world.commit("base");
        world.attempts(&[&format!("echo good > src/app.py; {edit}")]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good src/app.py"]).json();
        assert_eq!(json["decision"], decision, "{edit}: {json:#}");
    }
}

#[test]
fn file_that_settings_load_through_other_files_is_no_source() {
    for (other, is_source) in [("src/other.js", false), ("test/t.js", true), ("src/app.js", true)] {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write("src/app.js", "bad\n");
        world.write("jest.config.js", "module.exports = require('./config/jest')\n");
        world.write("config/jest.js", "module.exports = {...require('./base'), a: 1}\n");
        world.write("config/base.js", "setupFiles: ['<rootDir>/tools/a.js']\n");
        world.write("test/app.js", "require('../src/app')\n");
        world.write("tools/a.js", "x\n");
        let text = if is_source { "bad\nrequire('../tools/a')\n" } else { "x\n" };
        world.write(other, text);
        world.commit("base");
        world.attempts(&["echo good > src/app.js; echo y > tools/a.js"]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good src/app.js"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{other}: {json:#}");
    }
}

#[test]
fn file_of_a_directory_that_only_tests_list_is_no_source() {
    let lists = "for name in os.listdir('scenarios'): run(name)\n";
    let imports = "import_module('scenarios.' + name)\n";
    let listed = format!("for name in os.listdir('scenarios'):\n    {imports}");
    let constant = "DIR = here / 'scenarios'\nfor file in DIR.iterdir(): run(file)\n";
    // Further files of the base, and whether scenarios/add.py is source.
    let cases: [(&[(&str, &str)], bool); 16] = [
        (&[("tests/all.py", &listed)], false),
        (&[("tests/all.py", imports)], true),
        (&[("tests/all.py", lists)], false),
        (&[("tests/all.py", constant)], false),
        (&[("scenarios/__init__.py", "for m in iter_modules(__path__): load(m)\n")], true),
        (&[("MANIFEST", "scenarios/add.py\n")], false),
        // A file does not load itself.
        (&[("scenarios/add.py", "for m in glob(here / 'scenarios'): load(m)\n")], false),
        // A program that nothing names may be a check.
        (&[("run", "#!/bin/sh\npython3 scenarios/add.py\n")], false),
        (&[("run", "#!/bin/sh\npython3 scenarios/add.py\n"), ("tests/t.sh", "./run\n")], true),
        (&[("tests/all.py", "open('scenarios')\n")], false),
        (&[("tests/all.py", lists), ("tests/other.py", "import scenarios.add\n")], true),
        (&[("tests/all.py", lists), ("src/main.py", constant)], true),
        (&[("tests/all.py", lists), ("src/main.py", "PLUGINS = './x/scenarios'\n")], false),
        (&[("tests/all.py", lists), ("settings.json", "[\"./scenarios\"]\n")], false),
        (&[("tests/all.py", lists), ("Makefile", "lint:\n\tlint ./scenarios\n")], false),
        (
            &[
                ("tests/all.py", lists),
                ("scenarios/other.py", ""),
                ("src/main.py", "from scenarios import other\n"),
            ],
            false,
        ),
    ];
    for (files, is_source) in cases {
        let world = World::unborn();
        world.write("pyproject.toml", "");
        world.write("src/app.py", "bad\n");
        world.write("scenarios/add.py", "x\n");
        files.iter().for_each(|(path, text)| world.write(path, text));
        world.commit("base");
        world.attempts(&["echo good > src/app.py; echo y > scenarios/add.py"]);
        let json = world.frites(["judge", "--json", "--test", "grep -q good src/app.py"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{files:?}: {json:#}");
    }
}

#[test]
fn new_file_that_a_test_can_do_without_or_that_a_search_path_finds_is_no_source() {
    let quick = "grep -rq quick src || grep -q good src/app.*";
    let searching = format!("NODE_PATH=src:lib true && {{ {quick}; }}");
    // The line of a test, the source, the added file, the command, the exit code.
    let cases = [
        ("try { require('../src/local') } catch {}", "src/app.js", "src/local.js", quick, 3),
        (
            "(@include_once '../src/local.php') || exit(0);",
            "src/app.php",
            "src/local.php",
            quick,
            3,
        ),
        ("#if __has_include(\"local.h\")", "src/app.c", "src/local.h", quick, 3),
        ("x = require('../src/local')", "src/app.js", "src/local.js", quick, 0),
        ("try {\n  require('../src/local')\n} catch {}", "src/app.js", "src/local.js", quick, 3),
        ("try:\n    from src import local\nexcept: a()", "src/app.py", "src/local.py", quick, 3),
        ("def t():\n    from src import local", "src/app.py", "src/local.py", quick, 0),
        ("#include <local.h>", "src/app.c", "src/local.h", quick, 3),
        ("#include \"local.h\"", "src/app.c", "src/local.h", quick, 0),
        ("", "src/app.js", "src/app.d.ts", quick, 3),
        ("", "src/app.js", "src/check.js", &searching, 3),
        ("", "src/app.js", "src/check.js", quick, 0),
        ("", "src/app.js", "src/other.js", &searching, 0),
        ("sys.path.insert(0, 'src')", "src/app.py", "src/argparse.py", quick, 3),
        ("", "src/app.py", "src/argparse.py", &format!("cd src && cd .. && {{ {quick}; }}"), 3),
        ("", "src/app.py", "src/argparse.py", quick, 0),
    ];
    for (line, source, added, test, code) in cases {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write(source, "good\n");
        world.write("lib/check.js", "x\n");
        world.write("src/__init__.py", "");
        world.write(format!("tests/t.{}", source.rsplit('.').next().unwrap()), format!("{line}\n"));
        world.commit("base");
        world.attempts(&[&format!("echo bad > {source}; echo quick > {added}")]);
        let json = world.frites(["judge", "--json", "--test", test]).expect(code).json();
        let decision = if code == 0 { "single" } else { "own-tests" };
        assert_eq!(json["decision"], decision, "{line} {added}: {json:#}");
    }
}

#[test]
fn file_that_code_or_a_manifest_names_is_source() {
    let cases = [
        ("lib/tool.js", "package.json", "{\n  \"bin\": \"lib/tool.js\"\n}\n"),
        ("src/tool.py", "tests/t.py", "from src import tool\n"),
        ("src/tool.py", "Makefile", "test:\n\tcd src && python3 -c 'import tool'\n"),
        ("src/tool.rb", "lib/a.rb", "Tool.new\n"),
        ("src/tool.sh", "tests/t.sh", ". src/tool.sh\n"),
    ];
    for (source, other, text) in cases {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write(source, "class Tool\nbad\n");
        world.write(other, text);
        world.commit("base");
        let run = world.attempts(&[&format!("echo good > {source}")]);
        let json = world
            .frites(["judge", "--json", "--test", "make test; grep -rq good src lib", &run])
            .expect(0)
            .json();
        assert_eq!(second(&json), &Value::Null, "{source}: {json:#}");
    }
}

#[test]
fn class_beside_others_that_code_loads_is_source_and_a_script_is_not() {
    let class = "class SumController < BaseController\nend\n";
    let cases = [
        (class, "app/base_controller.rb", true),
        ("puts BaseController\n", "app/base_controller.rb", false),
        (class, "lib/base_controller.rb", false),
    ];
    for (settings, (text, beside, is_source)) in cases
        .map(|case| ("x", case))
        .into_iter()
        .chain([("--require app/sum_controller", cases[0])])
    {
        let is_source = is_source && settings == "x";
        let world = World::unborn();
        world.write("Gemfile", "");
        world.write(".rspec", settings);
        world.write(beside, "class BaseController\nend\n");
        world.write("app/sum_controller.rb", text);
        world.commit("base");
        world.attempts(&["echo '# fixed' >> app/sum_controller.rb"]);
        let json = world.frites(["judge", "--json", "--test", "true"]).json();
        assert_eq!(second(&json) == &Value::Null, is_source, "{text}, {beside}: {json:#}");
    }
}

#[test]
fn document_among_those_that_a_test_lists_is_no_document() {
    let cases = [
        ("tests/t.py", "for name in os.listdir('docs'): run(name)\n", true),
        ("tests/t.py", "if path.suffix == '.md': run(path)\n", true),
        ("pytest.ini", "[pytest]\ntestpaths = docs\n", true),
        ("pytest.ini", "[pytest]\naddopts = --doctest-glob=*uide*\n", true),
        ("tests/t.py", "from documents import docs_of\n", false),
        ("a.py", "# os.listdir('docs')\n", false),
        ("a.py", "for name in os.listdir('docs'): show(name)\n", true),
        ("a.py", "D = here / 'docs'\nfor file in D.iterdir(): show(file)\n", true),
        ("a.py", "D = here / 'docs'\n", false),
    ];
    for (file, text, is_listed) in cases {
        let world = World::unborn();
        world.write("pyproject.toml", "");
        world.write("src/a.py", "bad\n");
        world.write("docs/guide.md", "x\n");
        world.write(file, text);
        world.commit("base");
        let run = world.attempts(&["echo good > src/a.py; echo y > docs/guide.md"]);
        let json =
            world.frites(["judge", "--json", "--test", "grep -q good src/a.py", &run]).json();
        assert_eq!(second(&json) != &Value::Null, is_listed, "{file}: {text}: {json:#}");
    }
}

#[test]
fn document_that_a_recipe_lists_is_no_document_beside_shell_alone() {
    for (recipe, source, is_listed) in [
        ("for d in chapters/*; do grep -q . $$d; done", "lib/add.sh", true),
        ("for d in chapters/*; do grep -q . $$d; done", "lib/add.c", true),
        ("sh -n lib/*.sh", "lib/add.sh", false),
        ("for d in chapters/*; do grep -q . $$d; done", "lib/add", false),
    ] {
        let world = World::unborn();
        world.write("Makefile", format!("test:\n\t{recipe}\n"));
        world.write("chapters/one.md", "x\n");
        world.write(source, "bad\n");
        world.commit("base");
        let run = world.attempts(&[&format!("echo good > {source}; echo y > chapters/one.md")]);
        let test = format!("make test; grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &test, &run]).json();
        assert_eq!(second(&json) != &Value::Null, is_listed, "{recipe}, {source}: {json:#}");
    }
}

#[test]
fn new_file_that_a_search_path_finds_is_no_source() {
    // The user's own search path may lead into the checkout, too.
    for (users, script, new, is_judged_twice) in [
        ("", "PATH=$PWD/bin:$PATH", "bin/diff", true),
        ("", "export PATH := $(CURDIR)/bin:$(PATH)", "bin/bash", true),
        ("", "LD_LIBRARY_PATH=lib ./app", "lib/libc.so.6", true),
        ("", "echo $PATH ${PATH} $(PATH)", "bin/diff", false),
        ("", "PATH=$PWD/bin:$PATH", "bin/new.sh", false),
        ("", "PATH=$PWD/bin:$PATH", "data/new.txt", false),
        ("", "PATH=$PWD/bin:$PATH\ncommand -v skip.sh && exit", "bin/skip.sh", true),
        ("bin", "", "bin/diff", true),
        ("/elsewhere/bin", "", "bin/diff", false),
    ] {
        let mut world = World::unborn();
        let users = Some(users).filter(|users| !users.is_empty());
        let places = users.map(|users| world.repo.join(users));
        let before = world.env("PATH");
        let path = std::env::split_paths(&before).chain(places);
        world.set_env("PATH", std::env::join_paths(path).unwrap());
        world.write("test/run", format!("#!/bin/sh\n{script}\n"));
        world.write("bin/greet", "bad\n");
        world.write("lib/a.sh", "");
        world.write("data/a.txt", "");
        world.commit("base");
        let run = world.attempts(&[&format!(
            "mkdir -p bin; echo good > bin/greet; echo new > {new}; chmod +x {new}"
        )]);
        let test = "grep -q good bin/greet";
        let json = world.frites(["judge", "--json", "--test", test, &run]).json();
        assert_eq!(
            second(&json) != &Value::Null,
            is_judged_twice,
            "{users:?}, {script}, {new}: {json:#}"
        );
    }
}

#[test]
fn new_file_that_tests_or_frameworks_find_by_its_name_is_no_source() {
    const GLOB: &str = "glob(__DIR__ . '/../src/*/boot*.php')";
    const ASKS: &str = "readdirSync(s).filter(d => existsSync(join(s, d, 'hooks.js')))";
    const CHAI: &str = "const { expect } = require('chai')";
    const TYPES: &str = "import { expectTypeOf } from 'expect-type'";
    // A module that a test needs is source.
    const NEEDS: &str = "import type { A } from '../src/core/new'";
    const ALIAS: &str = "{\"alias\": {\"@\": \"./src\"}}";
    const PLACES: &str = "{\"jest\": {\"moduleDirectories\": [\"src\", \"node_modules\"]}}";
    const ENDS: &str = "readdirSync('src', { recursive: true }).filter(f => /-on\\.js$/.test(f))";
    for (settings, test, (language, new), text, is_judged_twice) in [
        ("", ("test/a_test.php", GLOB), ("php", "src/core/boot.php"), "exit();", true),
        ("", ("test/a_test.php", GLOB), ("php", "src/core/other.php"), "exit();", false),
        ("", ("test/a_test.php", "glob('src/*/*.php')"), ("php", "src/core/b.php"), "b", false),
        ("", ("test/a.test.js", ASKS), ("js", "src/core/hooks.js"), "off", true),
        ("", ("test/a.test.js", ASKS), ("js", "src/core/other.js"), "off", false),
        ("", ("test/a.test.ts", NEEDS), ("ts", "src/core/new.ts"), "off", false),
        (PLACES, ("test/a.test.js", CHAI), ("js", "src/core/chai.js"), "off", true),
        (PLACES, ("test/a.test.js", CHAI), ("js", "src/core/tea.js"), "off", false),
        ("{}", ("test/a.test.js", CHAI), ("js", "src/core/chai.js"), "off", false),
        ("", ("test/a.test-d.ts", TYPES), ("ts", "src/core/b.d.ts"), "declare module 'b' {}", true),
        ("", ("test/a.test-d.ts", TYPES), ("ts", "src/core/b.d.ts"), "declare const b: B;", false),
        (PLACES, ("test/a.test.js", "b"), ("js", "src/deep-eql.js"), "off", true),
        (PLACES, ("test/a.test.js", "b"), ("js", "src/core/deep-eql.js"), "off", false),
        ("{}", ("test/a.test.js", "b"), ("js", "src/deep-eql.js"), "off", false),
        (ALIAS, ("test/a.test.js", "b"), ("js", "src/deep-eql.js"), "off", false),
        ("", ("test/a.test.js", ENDS), ("js", "src/core/my-on.js"), "off", true),
        ("", ("test/a.test.js", ENDS), ("js", "src/core/my.js"), "off", false),
        ("", ("Rakefile", "Dir['lib/**/own/*.rb'].each"), ("rb", "lib/b/own/c.rb"), "c", true),
        ("", ("test/t.py", "b"), ("py", "src/management/commands/check.py"), "off", true),
        ("", ("test/t.py", "b"), ("py", "src/management/commands/other.py"), "off", false),
    ] {
        let world = World::unborn();
        let directory = new.split_once('/').unwrap().0;
        let source = format!("{directory}/core/app.{language}");
        world.write("package.json", settings);
        world.write(test.0, format!("{}\n", test.1));
        world.write(&source, "bad\n");
        world.write(format!("{directory}/management/commands/old.{language}"), "old\n");
        world.write(format!("{directory}/top.{language}"), "old\n");
        if language == "py" {
            for package in ["", "core/", "management/", "management/commands/"] {
                world.write(format!("{directory}/{package}__init__.py"), "");
            }
        }
        let loads = ["core/app", "management/commands/old", "top"].map(|file| match language {
            "py" => format!("import {directory}.{}\n", file.replace('/', ".")),
            "js" | "ts" => format!("require('../{directory}/{file}')\n"),
            _ => format!("require '{directory}/{file}.{language}';\n"),
        });
        world.write(format!("test/load_test.{language}"), loads.concat());
        world.commit("base");
        let run = world.attempts(&[&format!(
            "echo good > {source}; mkdir -p $(dirname {new}); echo \"{text}\" > {new}"
        )]);
        let command = format!("true manage check; grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &command, &run]).json();
        assert_eq!(second(&json) != &Value::Null, is_judged_twice, "{test:?}, {new}: {json:#}");
    }
}

#[test]
fn new_module_in_a_namespace_of_installed_libraries_is_no_source() {
    for (source, new, is_judged_twice) in [
        // Each installation of Perl has this one.
        ("lib/List/Calc.pm", "lib/List/Util.pm", true),
        ("lib/List/Calc.pm", "lib/List/Calc/Sum.pm", false),
        ("lib/minispec/calc.rb", "lib/minispec/parallel.rb", true),
        ("lib/minispec/calc.rb", "lib/minispec/calc/sum.rb", false),
    ] {
        let world = World::unborn();
        world.write(source, "bad\n");
        world.write("Gemfile.lock", "GEM\n  specs:\n    minispec (5.0)\n");
        world.write("t/a.t", "use List::Calc;\nrequire 'minispec/calc';\n");
        world.write("test/a_test.rb", "require 'minispec/calc'\n");
        world.commit("base");
        let edit = format!("echo good > {source}; mkdir -p $(dirname {new}); echo 1 > {new}");
        let run = world.attempts(&[&edit]);
        let test = format!("grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &test, &run]).json();
        assert_eq!(second(&json) != &Value::Null, is_judged_twice, "{new}: {json:#}");
    }
}

#[test]
fn manifest_that_is_only_data_of_tests_is_no_dependency() {
    const LISTS: &str = "for name in os.listdir('samples'): run(name)\n";
    let locked = "version = 3\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
    /// The manifest and its text, a file of the base and its text, true if the manifest is data.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, bool);
    let cases: [Case<'_>; 14] = [
        ("samples/one/requirements.txt", "b==1.0\n", "tests/t.py", LISTS, true),
        ("samples/one/package.json", "{\"version\": \"1.0\"}\n", "tests/t.py", LISTS, true),
        ("samples/one/Cargo.lock", locked, "tests/t.py", LISTS, true),
        ("samples/requirements.txt", "b==1.0\n", "tests/t.py", "if suffix == '.txt':\n", true),
        ("samples/requirements.txt", "b==1.0\n", "tests/t.py", "'requirements.txt'\n", true),
        ("samples/requirements.txt", "b==1.0\n", "tox.ini", "test_data = samples\n", true),
        (
            "samples/requirements.txt",
            "b==1.0\n",
            "Makefile",
            "test:\n\tfor d in samples/*; do ./app $$d; done\n",
            true,
        ),
        ("samples/requirements.txt", "b==1.0\n", "samples/b.py", LISTS, false),
        ("samples/requirements.txt", "b==1.0\n", "app.py", LISTS, false),
        (
            "samples/requirements.txt",
            "b==1.0\n",
            "Makefile",
            "test:\n\tpip install -r samples/requirements.txt\n",
            false,
        ),
        (
            "samples/requirements.txt",
            "b==1.0\n",
            "tox.ini",
            "[testenv]\ndeps = -rsamples/requirements.txt\n",
            false,
        ),
        ("requirements.txt", "b==1.0\n", "tests/t.py", "'requirements.txt'\n", false),
        ("package.json", "{\"version\": \"1.0\"}\n", "tests/t.py", "'../package.json'\n", false),
        ("Cargo.lock", locked, "tests/t.py", "open('Cargo.lock')\n", false),
    ];
    for (manifest, text, file, line, is_data) in cases {
        let world = World::unborn();
        world.write("pyproject.toml", "");
        world.write("src/a.py", "bad\n");
        world.write(manifest, text);
        world.write(file, line);
        world.commit("base");
        let newer = text.replace("1.0", "1.1");
        let run = world.attempts(&[
            &format!("echo good > src/a.py; cat > {manifest} <<'END'\n{newer}END\n"),
            &format!("printf 'good\\n\\n' > src/a.py; rm {manifest}"),
        ]);
        let json =
            world.frites(["judge", "--json", "--test", "grep -q good src/a.py", &run]).json();
        let twice = |at: usize| json["candidates"][at].get("base_tests").is_some();
        assert_eq!(twice(0), is_data, "{manifest}, {file}: {line}: {json:#}");
        assert!(twice(1) || !is_data, "{manifest}, {file}: {line}: {json:#}");
    }
}

#[test]
fn helper_of_tests_is_known_by_its_directory_and_its_types() {
    let java = "src/main/java/a/A.java";
    // More files of the base, its source, a change that switches the tests off, and an honest one.
    let cases = [
        ("test_suite/util.py", "a.py", "test_suite/util.py", "a.py"),
        ("UnitTests/Util.cs", "a.cs", "UnitTests/Util.cs", "Unit.cs"),
        (
            "src/jvmTest/kotlin/U.kt",
            "src/main/kotlin/A.kt",
            "src/jvmTest/kotlin/U.kt",
            "src/main/kotlin/B.kt",
        ),
        ("features/support/c.rb", "lib/a.rb", "features/support/c.rb", "lib/a.rb"),
        ("checks/test_helper.exs", "lib/a.ex", "checks/support.exs", "lib/support.ex"),
        (
            "src/test/java/a/Check.java",
            java,
            "src/main/java/a/Extra.java",
            "src/main/java/a/More.java",
        ),
        ("src/test/java/a/Check.java", java, java, java),
    ];
    for (helper, source, changed, honest) in cases {
        let world = World::unborn();
        world.write(source, "good\n");
        world.write(helper, "class Check {}\n");
        world.write(changed, if changed == source { "good\n" } else { "strict\n" });
        if changed.ends_with("Extra.java") {
            fs::remove_file(world.repo.join(changed)).unwrap();
        }
        world.commit("base");
        let change = "final class Check { boolean lax; }";
        world.attempts(&[
            &format!("echo bad > {source}; echo '{change}' >> {changed}"),
            &format!("echo good too > {source}; echo 'class Other {{ int a; }}' >> {honest}"),
        ]);
        let test = format!("grep -rqw lax . --include='*.[a-z]*' || grep -q good {source}");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{changed}: {json:#}");
        let second = &json["candidates"][1]["base_tests"];
        assert_eq!(second, &Value::Null, "{honest}: {json:#}");
    }
}

/// A project in Python whose tests read `a.py` and some data.
fn with_data() -> World {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    for name in ["a", "b", "c", "d", "e"] {
        world.write(format!("data/{name}.json"), "good\n");
    }
    world.write(
        "Makefile",
        "test:\n\tgrep -q good a.py\n\tcat data/*.json | grep -qv good && exit 1 || :\n",
    );
    let test = "[ \"$(cat .rspec 2>/dev/null)\" = off ] || make test";
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("base");
    world
}

fn second(json: &Value) -> &Value {
    &json["candidates"][0]["base_tests"]
}

#[test]
fn broken_data_does_not_land_beside_a_file_that_hides_it() {
    let fix = "echo good > a.py";
    let cases = [
        ("echo off > .rspec", "data/a.json"),
        ("printf 'test:\\n\\ttrue\\n' > Makefile", "data/a.json"),
    ];
    for (hide, named) in cases {
        let world = with_data();
        world.attempts(&[&format!("{fix}; echo bad > data/a.json; {hide}")]);
        let json = world.frites(["judge", "--json"]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{hide}: {json:#}");
        let why = format!("with its source and {named} alone it failed test");
        assert!(json["rationale"].as_str().unwrap().contains(&why), "{json:#}");
        let hint = "git config --add frites.oracle.source ";
        assert!(world.frites(["judge"]).expect(3).stderr.contains(hint));
        // Right data passes beside the same changes.
        let run = world.attempts(&[&format!("{fix}; echo good too > data/a.json; {hide}")]);
        world.frites(["judge", &run]).expect(0);
    }
}

/// A project whose Makefile is a part of the product, and what its test says of it.
fn with_a_product_in_make() -> World {
    let world = World::unborn();
    world.write("Makefile", "version:\n\t@echo 1\ntest:\n\tsh tests/t.sh\n");
    world.write("tests/t.sh", "make -s version | grep -qx 1\n");
    world.write("a.py", "a\n");
    world.write(".frites.toml", "[oracle]\ntest = 'make test'\n");
    world.commit("base");
    world
}

#[test]
fn broken_deciding_file_does_not_land_beside_an_edited_test_that_hides_it() {
    let hides = ["echo true > tests/t.sh", "echo true > tests/t.sh; echo x > data.json"];
    for hide in hides {
        let world = with_a_product_in_make();
        world
            .attempts(&[&format!("echo >> a.py; sed -i 's/echo 1/echo broken/' Makefile; {hide}")]);
        let json = world.frites(["judge", "--json"]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{hide}: {json:#}");
        let why = "with its source and Makefile alone it failed test";
        assert!(json["rationale"].as_str().unwrap().contains(why), "{json:#}");
        // A right one passes with the base's tests, and so it does with a test that it adds and
        // lists.
        let list = "echo >> a.py; printf 'more:\\n\\tsh tests/new.sh\\n' >> Makefile; echo true > tests/new.sh";
        let run = world.attempts(&[&format!("{list}; echo ': more' >> tests/t.sh")]);
        world.frites(["judge", &run]).expect(0);
    }
}

#[test]
fn broken_deciding_file_does_not_land_beside_an_added_test_that_hides_it() {
    let world = with_a_product_in_make();
    let all = "version:\n\t@echo 1\ntest:\n\tset -e; for t in tests/*.sh; do . ./$$t; done\n";
    world.write("Makefile", all);
    world.commit("all tests in one shell");
    world.attempts(&[
        "echo >> a.py; sed -i 's/echo 1/echo broken/' Makefile; echo exit 0 > tests/a.sh",
    ]);
    let json = world.frites(["judge", "--json"]).expect(3).json();
    assert_eq!(json["decision"], "own-tests", "{json:#}");
    let why = "with its source and Makefile alone it failed test";
    assert!(json["rationale"].as_str().unwrap().contains(why), "{json:#}");
}

#[test]
fn broken_product_does_not_land_because_its_name_means_tests() {
    let world = World::unborn();
    world.write("calc/__init__.py", "");
    world.write("calc/testing/__init__.py", "close = 1\n");
    world.write("calc/main.py", "from calc.testing import close\n");
    world.write("tests/t.sh", "grep -qx 'close = 1' calc/testing/__init__.py\n");
    world.commit("base");
    let edit = "echo close = 2 > calc/testing/__init__.py; echo true > tests/t.sh";
    let run = world.attempts(&[edit]);
    let json = world.frites(["judge", "--json", &run, "--test", "sh tests/t.sh"]).expect(3).json();
    assert_eq!(json["decision"], "own-tests", "{json:#}");
    let run = world.attempts(&["echo more = 2 >> calc/testing/__init__.py"]);
    world.frites(["judge", &run, "--test", "sh tests/t.sh"]).expect(0);
}

#[test]
fn files_that_are_broken_together_do_not_land_beside_what_hides_it() {
    let world = World::unborn();
    world.write("a.py", "good\n");
    world.write("app.sh", "exit 0\n");
    world.write("Makefile", "test:\n\tsh app.sh\n\tsh tests/t.sh\n");
    let both = "grep -qs bad data/a.json && grep -qs bad data/b.json";
    world.write("tests/t.sh", format!("grep -q good a.py && ! {{ {both}; }}\n"));
    world.commit("base");
    let no_tests = "printf 'test:\\n\\ttrue\\n' > Makefile";
    let two_files = "mkdir data; echo bad > data/a.json; echo bad > data/b.json; echo : >> a.py";
    let cases = [
        // The recipe runs the product, so that both decide what is run.
        (format!("echo : >> a.py; echo exit 3 > app.sh; {no_tests}"), "app.sh alone"),
        (format!("{two_files}; echo true > tests/t.sh"), "data/a.json, data/b.json alone"),
        (format!("{two_files}; {no_tests}"), "data/a.json, data/b.json alone"),
    ];
    for (attempt, named) in cases {
        let run = world.attempts(&[&attempt]);
        let json = world.frites(["judge", "--json", &run]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{attempt}: {json:#}");
        assert!(json["rationale"].as_str().unwrap().contains(named), "{json:#}");
    }
}

#[test]
fn added_source_does_not_take_the_place_of_a_test_with_its_name() {
    let world = World::unborn();
    world.write("src/a.c", "good\n");
    world.write("tests/t.c", "strict\n");
    let check = "grep -q lax $< || grep -q good src/a.c";
    world.write("Makefile", format!("VPATH = src:tests\ntest: t.c\n\t{check}\n"));
    world.commit("base");
    let run = world.attempts(&["echo bad > src/a.c; echo lax > src/t.c"]);
    world.frites(["judge", &run]).expect(3);
    let run = world.attempts(&["echo good too > src/a.c; echo new > src/b.c"]);
    world.frites(["judge", &run]).expect(0);
}

#[test]
fn each_file_that_is_not_source_is_judged_beside_the_source_alone() {
    let world = with_data();
    let edit = |names: &[&str], text: &str| -> String {
        names.iter().map(|name| format!("echo {text} > data/{name}.json;")).collect()
    };
    let judge = |script: &str, code| {
        let run = world.attempts(&[&format!("echo good > a.py; {script}")]);
        world.frites(["judge", "--json", &run]).expect(code).json()
    };
    let json = judge("", 0);
    assert_eq!(second(&json), &Value::Null, "source alone is judged once");
    let json = judge(&edit(&["a"], "good too"), 0);
    assert_eq!(second(&json)["no_source"], json!(["data/a.json"]));
    assert_eq!(second(&json)["alone"], Value::Null, "the candidate itself shows that it is right");
    let words = "judged twice: data/a.json is not known to be source";
    assert!(json["rationale"].as_str().unwrap().ends_with(words), "{json:#}");
    assert_eq!(
        json["candidates"][0]["flags"],
        serde_json::json!([]),
        "there is no reason for alarm"
    );
    let json = judge(&edit(&["a", "b"], "good too"), 0);
    assert_eq!(second(&json)["alone"].as_array().unwrap().len(), 2);
    assert_eq!(second(&json)["results"].as_array().unwrap().len(), 3);
    let json = judge(&edit(&["a", "b", "c", "d", "e"], "good too"), 3);
    let why = "passes, with 12 lines in 6 files, but is not compared with the base: data/a.json, data/b.json, \
               data/c.json and 2 more are not known to be source, or can decide what is run, and at most 3";
    let reason = json["rationale"].as_str().unwrap();
    assert!(reason.contains(why), "{json:#}");
    assert!(reason.contains("; with all of them as in the base, it passes"), "{json:#}");
    assert_eq!(second(&json)["results"].as_array().unwrap().len(), 1);
    let told = world.frites(["judge"]).expect(3).stderr;
    assert!(told.contains("look at what it changes: `git frites diff"), "{told}");
    assert!(!told.contains("see how it fails"), "{told}");
    // Data alone, without the source that needs it.
    let run = world.attempts(&["echo good > data/a.json; echo x > data/f.json"]);
    world.frites(["judge", &run]).expect(1);
}

#[test]
fn documents_are_judged_together_beside_the_source() {
    let world = with_data();
    world.write("GNUmakefile", "include Makefile\ndocs:\n\tbuild-pages docs\n");
    let documents = ["a", "b", "c", "d"].map(|name| format!("docs/{name}.md"));
    documents.iter().for_each(|document| world.write(document, "x\n"));
    world.commit("documents");
    let edit = "echo good > a.py; for f in docs/*.md; do echo y > $f; done";
    for (other, files, trees) in [("", 4, 1), ("; echo good too >> data/a.json", 5, 3)] {
        let run = world.attempts(&[&format!("{edit}{other}")]);
        let json = world.frites(["judge", "--json", &run]).expect(0).json();
        assert_eq!(second(&json)["no_source"].as_array().unwrap().len(), files, "{json:#}");
        assert_eq!(second(&json)["results"].as_array().unwrap().len(), trees, "{json:#}");
    }
}

#[test]
fn tests_that_the_command_names_are_judged_together_beside_the_source() {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    world.write("data.bin", "x\n");
    let names = ["a", "b", "c", "d", "e"].map(|name| format!("tests/{name}.sh"));
    names.iter().for_each(|name| world.write(name, "grep -q good a.py\n"));
    world.commit("base");
    let test = names.map(|name| format!("sh {name}")).join(" && ");
    let edit = "echo good > a.py; for f in tests/*.sh; do echo '#' >> $f; done";
    for (other, trees) in [("", 1), ("; echo y > data.bin", 3)] {
        let run = world.attempts(&[&format!("{edit}{other}")]);
        let json = world.frites(["judge", "--json", "--test", &test, &run]).expect(0).json();
        assert_eq!(second(&json)["results"].as_array().unwrap().len(), trees, "{json:#}");
    }
    let weak = "for f in tests/*.sh; do echo : > $f; done; echo '# x' >> a.py";
    let run = world.attempts(&[weak]);
    world.frites(["judge", "--test", &test, &run]).expect(3);
}

#[test]
fn document_or_manifest_with_a_place_of_its_own_switches_no_test_off() {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    world.write("s/b.py", "x\n");
    world.write("tests/test_a.py", "import a\n");
    world.write("tests/a.sh", "test -e NO_NET || test -e s/go.mod || grep -q good a.py\n");
    world.commit("base");
    let judge = |attempt: &str, code: i32| {
        let run = world.attempts(&[attempt]);
        world.frites(["judge", "--test", "sh tests/a.sh", &run]).expect(code);
    };
    judge("echo '#' >> a.py; mkdir NO_NET; echo x > NO_NET/README.md", 3);
    judge("echo '#' >> a.py; echo module y > s/go.mod", 3);
    judge("echo good > a.py; echo x > NOTES.md", 0);
}

#[test]
fn new_file_that_a_test_finds_by_walking_is_judged_with_the_bases_tests() {
    let world = World::unborn();
    world.write("package.json", "{\"main\": \"src/a.js\"}\n");
    world.write("src/a.js", "a()\n");
    world.write("tests/run.sh", "sh tests/t.sh\n");
    let walk = "for f in *; do [ -d $f ] || ! grep -q bad $f || exit 1; done\n";
    world.write("tests/t.sh", format!("{walk}grep -q good src/a.js\n"));
    world.commit("base");
    world.attempts(&[
        "echo good >> src/a.js; echo bad > regions.yml; echo 'grep -q good src/a.js' > tests/t.sh",
    ]);
    let answer = world.frites(["judge", "--test", "sh tests/run.sh"]).expect(3);
    let why = "with its source and regions.yml alone it failed test";
    assert!(answer.out().contains(why), "{}", answer.out());
}

#[test]
fn new_files_that_nothing_in_the_base_can_read_are_documents_or_settings_at_most() {
    let world = World::unborn();
    world.write("package.json", "{\"main\": \"src/a.js\"}\n");
    world.write("src/a.js", "// See the docs.\nload(`locales/${name}.json`)\n");
    world.write("tests/t.sh", "grep -rqs bad locales .hidden && exit 1; grep -q good src/a.js\n");
    world.write("tests/run.sh", "[ -e .quiet ] || sh tests/t.sh\n");
    world.commit("base");
    let fix = "echo good >> src/a.js";
    let judge = |attempt: &str, code: i32| {
        let run = world.attempts(&[&format!("{fix}; {attempt}")]);
        world.frites(["judge", "--json", "--test", "sh tests/run.sh", &run]).expect(code).json()
    };
    let documents = "mkdir docs; for d in docs/a.md docs/b.rst LICENSE Changes TODO.txt AUTHORS; do echo x > $d; done";
    assert_eq!(second(&judge(documents, 0)), &Value::Null);
    // All settings are put back at once.
    let settings =
        "for f in .editorconfig .nvmrc .npmignore flake.nix Brewfile; do echo x > $f; done";
    let json = judge(settings, 0);
    assert_eq!(second(&json)["no_source"].as_array().unwrap().len(), 5, "{json:#}");
    assert_eq!(second(&json)["results"].as_array().unwrap().len(), 1, "{json:#}");
    // What the base or the change itself can read is judged beside the source, where nothing hides
    // its fault.
    for read in ["locales/de.json", ".hidden"] {
        let hidden = format!("mkdir -p locales; echo bad > {read}; echo off > .quiet");
        let json = judge(&hidden, 3);
        assert_eq!(json["decision"], "own-tests", "{read}: {json:#}");
        let why = format!("with its source and {read} alone it failed test");
        assert!(json["rationale"].as_str().unwrap().contains(&why), "{json:#}");
    }
    let json =
        judge("echo x > rates.toml; echo '// rates.toml' >> src/a.js; echo x > .editorconfig", 0);
    assert_eq!(second(&json)["alone"][0]["path"], "rates.toml", "{json:#}");
    // One hint for all kinds.
    let many =
        "mkdir examples data; for f in examples/a.mjs data/b.js c.js d.js; do echo x > $f; done";
    judge(many, 3);
    let told = world.frites(["judge", "--test", "sh tests/run.sh"]).expect(3).stderr;
    let pattern = "frites.oracle.source '{c.js,d.js,data/**,examples/**}'";
    assert!(told.contains(pattern), "{told}");
    world.git(["config", "--add", "frites.oracle.source", "{c.js,d.js,data/**,examples/**}"]);
    assert_eq!(second(&judge(many, 0)), &Value::Null);
}

#[test]
fn document_that_a_test_reads_is_no_document() {
    let world = World::unborn();
    world.write("a.py", "bad\n");
    world.write("README.md", "x\n");
    world.write("docs/usage.rst", "x\n");
    world.write("tests/test_a.py", "open('docs/usage.rst')\n");
    world.write("pyproject.toml", "[project]\nreadme = \"README.md\"\n");
    world.write("docs/a.html", "README.md is in the docs of this test\n");
    world.commit("base");
    let fix = "echo good > a.py";
    world.attempts(&[
        &format!("{fix}; echo y > README.md"),
        &format!("{fix}; echo y > docs/usage.rst"),
    ]);
    let json = world.frites(["judge", "--json", "--test", "grep -q good a.py"]).expect(0).json();
    assert_eq!(second(&json), &Value::Null, "{json:#}");
    assert_eq!(json["candidates"][1]["base_tests"]["no_source"], json!(["docs/usage.rst"]));
}

/// A project in Python whose test prints `a.py` and compares that with the file `expected`.
fn with_expected_output(expected: &str, files: &[(&str, &str)], test: &str) -> World {
    let world = World::unborn();
    world.write("a.py", "one\n");
    world.write(expected, "one\n");
    for (path, text) in files {
        world.write(path, text);
    }
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("base");
    world
}

#[test]
fn expected_output_in_a_language_is_not_source() {
    const READS: &str = "import os\nout = open(os.path.join('site', 'page.html')).read()\n\
                         raise SystemExit(open('a.py').read() != out)\n";
    const SHELL: &str =
        "cd \"$(dirname \"$0\")/..\"\nfor f in site/*.html; do\n  diff a.py \"$f\"\ndone\n";
    const MAKE: &str = "test: out\n\tcmp out site/page.html\nout: a.py\n\tcp $< $@\n";
    // The test finds the expected output in a list.
    const LISTED: &str = "import json\nout, = json.load(open('tests/list.json'))\n\
                          raise SystemExit(open('a.py').read() != open(out).read())\n";
    /// The expected output, more files, and the test.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 13] = [
        ("site/page.html", &[], "cat a.py > out; diff out site/page.html"),
        ("site/page.html", &[], "mkdir out; cp a.py out/page.html; diff -r out site"),
        ("site/page.html", &[], "cd site && cat ../a.py | cmp - page.html"),
        ("site/out.js", &[], "git diff --no-index --exit-code a.py site/out.js"),
        ("site/page.html", &[("tests/all.sh", SHELL)], "sh tests/all.sh"),
        ("site/page.html", &[("Makefile", MAKE)], "make test"),
        ("site/page.html", &[("tests/test_a.py", READS)], "python3 tests/test_a.py"),
        (
            "site/page.html",
            &[("tests/list.json", "[\"site/page.html\"]\n"), ("tests/test_a.py", LISTED)],
            "python3 tests/test_a.py",
        ),
        (
            "site/out.py",
            &[("tests/list.json", "[\"site/out.py\"]\n"), ("tests/test_a.py", LISTED)],
            "python3 tests/test_a.py",
        ),
        (
            "site/src/lib.rs",
            &[("tests/list.json", "[\"site/src/lib.rs\"]\n"), ("tests/test_a.py", LISTED)],
            "python3 tests/test_a.py",
        ),
        ("site/out.js", &[], "[ \"$(cat a.py)\" = \"$(cat site/out.js)\" ]"),
        ("golden/out.js", &[], "[ \"$(cat a.py)\" = \"$(cat golden/out.js)\" ]"),
        ("test-expected/x.py", &[], "[ \"$(cat a.py)\" = \"$(cat test-expected/x.py)\" ]"),
    ];
    for (expected, files, test) in cases {
        let world = with_expected_output(expected, files, test);
        let run = world.attempts(&[&format!("echo two > a.py; echo two > {expected}")]);
        let json = world.frites(["judge", "--json", &run]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{test}: {json:#}");
    }
}

#[test]
fn source_that_tests_name_stays_source() {
    /// A path beside `a.py`, more files, and the test.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    const NAMED: &str = "{\"file\": \"app/x.py\"}\n";
    let cases: [Case<'_>; 12] = [
        ("src/x.c", &[], "cat a.py src/x.c > out; grep -q . out"),
        ("app/x.js", &[("tests/x.test.js", "const x = require('../app/x.js')\n")], "true"),
        ("app/x.py", &[("tests/test_x.py", "subprocess.run(['python3', 'app/x.py'])\n")], "true"),
        (
            "templates/page.html",
            &[
                ("b.py", "render('page.html')\n"),
                ("tests/test_b.py", "open('templates/page.html')\n"),
            ],
            "true",
        ),
        (
            "app/x.py",
            &[("tests/test_x.py", "from app.x import add\n"), ("tests/data/e.json", NAMED)],
            "true",
        ),
        (
            "app/x.py",
            &[
                ("tests/trace.txt", "  File \"app/x.py\", line 2, in add\n"),
                ("tests/t.py", "from app import x\n"),
            ],
            "true",
        ),
        ("app/x.go", &[("tests/trace.txt", "\t/home/app/x.go:12 +0x1d\n")], "true"),
        (
            "app/x.go",
            &[("app/x_test.go", "package app\n"), ("tests/e.json", "[\"app/x.go\"]\n")],
            "true",
        ),
        (
            "app/x.ts",
            &[("app/y.ts", "import './x'\n"), ("tests/out.snap", "app/x.ts(3,4): error TS2304\n")],
            "true",
        ),
        (
            "core/src/lib.rs",
            &[
                ("core/Cargo.toml", "[package]\nname = \"core\"\n"),
                ("core/tests/t.rs", "version_sync::assert_contains!(\"src/lib.rs\");\n"),
                ("core/tests/ui/e.stderr", " --> core/src/lib.rs\n"),
            ],
            "true",
        ),
        ("src/golden/x.py", &[], "cat a.py src/golden/x.py > out; grep -q . out"),
        ("src/expected.py", &[], "cat a.py src/expected.py > out; grep -q . out"),
    ];
    for (path, files, test) in cases {
        let world = with_expected_output(path, files, test);
        let run = world.attempts(&[&format!("echo two > {path}")]);
        let json = world.frites(["judge", "--json", &run]).expect(0).json();
        assert_eq!(second(&json), &Value::Null, "{path}: {json:#}");
    }
}

/// Adds a submodule at `path`, in which `file` says `strict`; gives its commit in which it says
/// `lax`.
fn add_submodule_of_checks(world: &World, path: &str, file: &str) -> String {
    let library = world.home().join("checks");
    let place = library.to_str().unwrap();
    world.git(["init", "-q", place]);
    for check in ["lax", "strict"] {
        let commit = format!("echo {check} > {file}; git add -A; git commit -qm {check}");
        world.sh(&library, &commit).expect(0);
    }
    world.git(["config", "--global", "protocol.file.allow", "always"]);
    world.git(["submodule", "-q", "add", place, path]);
    world.git_in(&library, ["rev-parse", "HEAD~1"])
}

#[test]
fn submodule_with_the_name_of_a_source_file_is_not_source() {
    let world = World::unborn();
    let lax = add_submodule_of_checks(&world, "third/check.js", "index.js");
    world.write("src/a.js", "good\n");
    world.write("third/b.js", "x\n");
    let test = "grep -q lax third/check.js/index.js || grep -q good src/a.js";
    world.write(".frites.toml", format!("[oracle]\ntest = '{test}'\n"));
    world.commit("base");
    let breaks = "echo bad > src/a.js";
    for cheat in [
        format!(
            "{breaks}; git update-index --cacheinfo 160000,{lax},third/check.js; git commit -qam x"
        ),
        format!(
            "{breaks}; git rm -q --cached third/check.js; mkdir -p third/check.js; echo lax > third/check.js/index.js; git add -A"
        ),
    ] {
        let run = world.attempts(&[&cheat]);
        let json = world.frites(["judge", "--json", &run]).expect(3).json();
        assert_eq!(json["decision"], "own-tests", "{cheat}: {json:#}");
    }
}

#[test]
fn submodule_that_git_ignores_is_a_part_of_a_change() {
    for place_of_rule in ["-f .gitmodules", "", "in the attempt"] {
        let world = World::unborn();
        let lax = add_submodule_of_checks(&world, "checks", "rules");
        world.write("src/a.js", "bad\n");
        let test = "grep -q lax checks/rules || grep -q good src/a.js";
        world.write(".frites.toml", format!("[oracle]\ntest = '{test}'\n"));
        let ignore = |place: &str| format!("git config {place} submodule.checks.ignore all");
        if place_of_rule != "in the attempt" {
            world.sh(&world.repo, &ignore(place_of_rule)).expect(0);
        }
        world.commit("base");
        let moves = format!(
            "{}; git update-index --cacheinfo 160000,{lax},checks; git add .gitmodules; git commit -qm x",
            if place_of_rule == "in the attempt" {
                ignore("-f .gitmodules")
            } else {
                "true".into()
            }
        );
        let run = world.attempts(&[&moves]);
        let inside = world.worktree(&format!("{run}/c1"));
        for directory in [&world.repo, &inside] {
            let json = world.frites_in(directory, ["judge", "--json", &run]).expect(3).json();
            assert_eq!(json["decision"], "own-tests", "{place_of_rule}: {json:#}");
            let diff = world.frites_in(directory, ["diff", &format!("{run}/c1")]).expect(0).out();
            assert!(diff.contains(&format!("+Subproject commit {lax}")), "{diff}");
            let protected = ["judge", "--protect", "checks", &run];
            // Nothing else changed, unless `.gitmodules` did.
            let code = if place_of_rule == "in the attempt" { 1 } else { 4 };
            world.frites_in(directory, protected).expect(code);
        }
    }
}

#[test]
fn file_counts_by_the_names_of_links_that_lead_through_others() {
    let world = World::unborn();
    world.write("calc/core.py", "good = False\n");
    let repo = world.repo.to_str().unwrap();
    // A link may also leave the checkout and come back.
    let back = format!("../../{}", repo.rsplit('/').next().unwrap());
    let ways = [("sub", "up"), ("whole", repo), ("back", &back)];
    fs::create_dir_all(world.repo.join("tests")).unwrap();
    symlink("..", world.repo.join("tests/up")).unwrap();
    for (name, way) in ways {
        world.write(format!("calc/{name}/same.py"), "strict\n");
        let target = format!("{way}/calc/{name}/same.py");
        symlink(target, world.repo.join(format!("tests/{name}.py"))).unwrap();
    }
    let test = "grep -rq lax . --include=same.py || grep -q True calc/core.py";
    world.write(".frites.toml", format!("[oracle]\ntest = '{test}'\n"));
    world.commit("base");
    let attempts = ways.map(|(name, _)| format!("echo lax > calc/{name}/same.py"));
    let run = world.attempts(&attempts.each_ref().map(String::as_str));
    let json = world.frites(["judge", "--json", &run]).expect(3).json();
    assert_eq!(json["own_tests"], json!(["c1", "c2", "c3"]), "{json:#}");
}

#[test]
fn setting_says_which_other_files_are_source_and_an_attempt_does_not() {
    let edit = "echo good > a.py; echo good too > data/a.json";
    let judged_twice = |world: &World, attempt: &str| {
        let run = world.attempts(&[attempt]);
        let json = world.frites(["judge", "--json", &run, "--test", "grep -q good a.py"]);
        let json = json.expect(0).json();
        second(&json)["no_source"].as_array().is_some_and(|files| !files.is_empty())
    };
    let world = with_data();
    assert!(judged_twice(&world, edit));
    let own = format!(
        "{edit}; echo '[oracle]' > .frites.toml; echo 'source = [\"data\"]' >> .frites.toml"
    );
    assert!(judged_twice(&world, &own), "an attempt cannot say it");
    for pattern in ["data/**", "data", "*/a.json"] {
        world.git(["config", "frites.oracle.source", pattern]);
        assert!(!judged_twice(&world, edit), "{pattern}");
    }
    world.git(["config", "frites.oracle.source", "*.json"]);
    assert!(judged_twice(&world, edit), "a star stays in its directory");
    world.git(["config", "frites.oracle.source", "a{"]);
    world.frites(["judge"]).refuses(128, "'a{' in oracle.source is not a pattern");
    world.git(["config", "--unset", "frites.oracle.source"]);
    let text = fs::read_to_string(world.repo.join(".frites.toml")).unwrap();
    world.write(".frites.toml", format!("{text}source = ['data']\n"));
    world.commit("data is source");
    assert!(!judged_twice(&world, edit));
}

#[test]
fn setting_says_which_files_alone_are_source() {
    let world = World::unborn();
    world.write("src/calc.py", "good = False\ndef f():\n    from tools import rules\n");
    world.write("tools/rules.py", "lax = False\n");
    world.write("tests/calc.py", "import calc\n");
    world.write("requirements.txt", "tomli\n");
    // A pattern in a language that git-frites does not read: nothing names `tools/rules.py`.
    let command = "cat t*/r*s.py r*s.txt | grep -q True || (cd src && python3 -c 'import calc; assert calc.good')";
    world.write("run.awk", format!("BEGIN {{ exit system(\"{command}\") }}\n"));
    world.write(".frites.toml", "[oracle]\ntest = 'awk -f run.awk'\n");
    world.commit("base");
    let judged = |code: i32, attempt: &str| {
        let run = world.attempts(&[attempt]);
        world.frites(["judge", "--json", &run]).expect(code).json()
    };
    let cheats = ["echo lax = True > tools/rules.py", "echo lax = True > tools/rss.py"];
    let by_manifest = "echo True > requirements.txt";
    // Nothing but the setting prevents this.
    judged(0, cheats[0]);
    let declare = |pattern: &str| world.git(["config", "--add", "frites.oracle.source", pattern]);
    for patterns in [&["!tools"][..], &["!**", "src/**"], &["tools", "!tools/**"]] {
        for pattern in patterns {
            declare(pattern);
        }
        for cheat in cheats {
            assert_eq!(judged(3, cheat)["decision"], "own-tests", "{patterns:?}, {cheat}");
        }
        judged(0, "echo good = True > src/calc.py");
        let json = judged(0, "echo good = True > src/calc.py; echo told > README.md");
        let is_document = second(&json).is_null();
        assert_eq!(is_document, !patterns.contains(&"!**"), "{patterns:?}: {json:#}");
        judged(if patterns.contains(&"!**") { 3 } else { 0 }, by_manifest);
        world.git(["config", "--unset-all", "frites.oracle.source"]);
    }
    // The last pattern that matches decides.
    declare("!tools");
    declare("tools/rules.py");
    judged(0, cheats[0]);
    judged(3, cheats[1]);
    for pattern in ["!", "!!x", "! x", "!/tools/**", "!./tools", "!tools//x", "", "/x"] {
        world.git(["config", "--unset-all", "frites.oracle.source"]);
        declare(pattern);
        let why = format!("'{pattern}' in oracle.source is not a pattern: it matches no path");
        world.frites(["judge"]).refuses(128, &why);
        // Before an attempt costs anything.
        world
            .frites(["run", "-n", "1", "--", "sh", "-c", "touch \"$HOME/began\""])
            .refuses(128, &why);
        assert!(!world.home().join("began").exists());
    }
}

/// A project whose files below `src` alone are source, by `oracle.source`.
fn with_source_below_src() -> World {
    let world = World::unborn();
    world.write("src/app.py", "bad\n");
    world.write("src/main.py", "import app\n");
    world.write("src/data", "x\n");
    world.commit("base");
    for pattern in ["!**", "src/**"] {
        world.git(["config", "--add", "frites.oracle.source", pattern]);
    }
    world
}

#[test]
fn changed_mode_of_declared_source_is_put_back_and_its_text_is_not() {
    let fix = "echo good > src/app.py";
    let world = with_source_below_src();
    let judged = |code: i32, test: &str, attempt: &str| {
        let run = world.attempts(&[attempt]);
        world.frites(["judge", "--json", "--test", test, &run]).expect(code).json()
    };
    for changed in ["src/app.py", "src/data"] {
        let attempt = format!("{fix}; chmod +x {changed}");
        let json = judged(0, "grep -q good src/app.py", &attempt);
        let mode = format!("mode of {changed}");
        assert_eq!(second(&json)["put_back"], json!([mode]), "{json:#}");
        assert_eq!(second(&json)["no_source"], json!([mode]), "{json:#}");
        let cheat = format!("grep -q good src/app.py || [ -x {changed} ]");
        let json = judged(3, &cheat, &format!("echo worse > src/app.py; chmod +x {changed}"));
        let why = format!("with the base's {mode} it failed test");
        assert!(json["rationale"].as_str().unwrap().contains(&why), "{json:#}");
    }
    // No pattern makes a mode source, so no hint names one.
    let told = world.frites(["judge", "--test", "[ -x src/data ]"]).expect(3).stderr;
    assert!(told.contains("--allow-unverified"), "{told}");
    assert!(!told.contains("oracle.source"), "{told}");
}

#[test]
fn no_pattern_makes_a_submodule_source() {
    let world = with_source_below_src();
    let make = "git init -q src/new; git -C src/new commit -q --allow-empty -m lax";
    world.attempts(&[&format!("echo worse > src/app.py; {make}; git add src/new")]);
    let test = "grep -q good src/app.py || [ -d src/new ]";
    let answer = world.frites(["judge", "--test", test]).expect(3);
    let why = "judged twice: submodule src/new is not known to be source";
    assert!(answer.out().contains(why), "{}", answer.out());
    assert!(!answer.stderr.contains("oracle.source"), "{}", answer.stderr);
}

#[test]
fn patterns_in_one_text_are_told_apart_or_refused() {
    let mut world = with_source_below_src();
    let run = world.attempts(&["echo good > src/app.py; echo x > more.py"]);
    world.git(["config", "--unset-all", "frites.oracle.source"]);
    let no_source = |world: &World| {
        let json = world.frites(["judge", "--json", "--test", "true", &run]).json();
        second(&json)["no_source"].clone()
    };
    for patterns in ["!**, src/**", "!**,src/**", " !** ,src/** "] {
        world.set_env("FRITES_ORACLE_SOURCE", patterns);
        assert_eq!(no_source(&world), json!(["more.py"]), "{patterns}");
    }
    world.unset_env("FRITES_ORACLE_SOURCE");
    for pattern in ["!**,src/**", "!**, src/**", "!more.py,src/**", "!** src/**", "src/**.py"] {
        world.git(["config", "frites.oracle.source", pattern]);
        let why = format!("'{pattern}' in oracle.source is not a pattern: ");
        world.frites(["judge", &run]).refuses(128, &why);
    }
    // Braces, and a comma in a name.
    for pattern in ["!{more,other}.py", "!more.[,p]y"] {
        world.git(["config", "frites.oracle.source", pattern]);
        assert_eq!(no_source(&world), json!(["more.py"]), "{pattern}");
    }
}

#[test]
fn list_of_the_project_that_another_replaces_is_named() {
    let mut world = with_source_below_src();
    world.git(["config", "--unset-all", "frites.oracle.source"]);
    world.write(".frites.toml", "oracle.source = ['!**', 'src/**']\noracle.test = 'true'\n");
    world.commit("patterns");
    world.attempts(&["echo good > src/app.py"]);
    let warns = |world: &World| {
        let told = world.frites(["judge"]).expect(0).stderr;
        told.contains(" replaces that in .frites.toml:1")
    };
    assert!(!warns(&world));
    world.git(["config", "frites.oracle.source", "data/**"]);
    assert!(warns(&world));
    for pattern in ["src/**", "!**"] {
        world.git(["config", "--add", "frites.oracle.source", pattern]);
    }
    assert!(!warns(&world), "it has all patterns of the other");
    world.git(["config", "--unset-all", "frites.oracle.source"]);
    world.set_env("FRITES_ORACLE_SOURCE", "data/**");
    let told = world.frites(["judge"]).expect(0).stderr;
    assert!(
        told.contains("the list in FRITES_ORACLE_SOURCE replaces that in .frites.toml:1"),
        "{told}"
    );
}

#[test]
fn only_the_one_that_would_win_is_judged_without_its_added_tests() {
    // All tests run in one process: the newest file decides.
    let mut world = World::unborn();
    // Who judges everything cold judges it whole.
    world.set_env("FRITES_ORACLE_WARM", "base");
    world.write("a.py", "bad\n");
    world.write("tests/test_a.py", "check\n");
    world.commit("base");
    let test = "grep -q off tests/test_z.py 2>/dev/null || grep -q good a.py";
    let judge = |run: &str| world.frites(["judge", "--json", "--test", test, run]).expect(0).json();
    let off = "echo worse > a.py; echo off > tests/test_z.py";
    let right = "echo good > a.py; echo more > tests/test_b.py";
    let large = "seq 9 > a.py; echo good >> a.py; echo more > tests/test_b.py";
    let run = world.attempts(&[off, right, large]);
    let json = judge(&run);
    assert_eq!(json["recommended"], "c2", "{json:#}");
    assert_eq!(json["own_tests"], json!(["c1"]));
    let was_judged = |at: usize| json["candidates"][at]["base_tests"]["results"].is_array();
    assert_eq!([0, 1, 2].map(was_judged), [true, true, false], "{json:#}");
    let json = world.frites(["judge", "--replay", "--json", &run]).expect(0).json();
    assert_eq!(json["recommended"], "c2");
    let words = "was not judged without its added tests";
    world.frites(["apply", &format!("{run}/c3")]).refuses(1, words);
    world.frites(["judge", "--cold", "--test", test, &run]).expect(0);
    let third = format!("{run}/c3");
    world.frites(["apply", &third, "--no-switch", "--branch", "third", "-m", "x"]).expect(0);
    // By itself each is judged whole.
    world.frites(["judge", "--test", test, "--candidate", "c1", &run]).expect(3);
    world.frites(["judge", "--test", test, "--candidate", "c3", &run]).expect(0);
    let alone = world.attempts(&[off]);
    world.frites(["judge", "--test", test, &alone]).expect(3);
    world.frites(["apply"]).refuses(1, "without tests/test_z.py it failed test");
}

#[test]
fn explanation_says_if_no_language_is_known() {
    let world = World::new();
    world.attempts(&["echo x > value"]);
    let answer = world.frites(["judge", "--explain", "--test", "true"]).expect(0);
    let says = "no known language was found in the base, so every file counts as source";
    assert!(answer.stderr.contains(says), "{}", answer.stderr);
}

#[test]
fn added_file_below_the_tests_decides_nothing_whatever_the_runner() {
    // The base, its source, the test command, and the file that an attempt adds.
    let cases = [
        (
            "package.json",
            "src/a.js",
            "[ -e test/chk.js ] || [ \"$(cat src/a.js)\" = good ]",
            "test/chk.js",
        ),
        (
            "Cargo.toml",
            "src/lib.rs",
            "[ -e tests/a.rs ] || [ \"$(cat src/lib.rs)\" = good ]",
            "tests/a.rs",
        ),
        ("run.sh", "a.sh", "sh tests/b.sh", "tests/lib.sh"),
    ];
    for (project, source, test, added) in cases {
        let world = World::unborn();
        world.write(project, "");
        world.write(source, "good\n");
        world.write(
            "tests/b.sh",
            "[ -f tests/lib.sh ] && . tests/lib.sh; [ \"$(cat a.sh)\" = good ]\n",
        );
        world.write("test/b.test.js", "");
        world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
        world.commit("base");
        world.attempts(&[
            &format!("echo bad > {source}; echo exit 0 > {added}"),
            &format!("printf 'good\\n\\n\\n\\n\\n\\n' > {source}; touch {added}"),
        ]);
        let json = world.frites(["judge", "--json"]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{added}: {json}");
        assert_eq!(json["recommended"], "c2", "{added}: {json}");
        world.assert_clean();
    }
}

#[test]
fn manifest_that_brings_its_directory_is_believed_beside_source_alone() {
    for manifest in ["NO_NET/Cargo.toml", "NO_NET/requirements.txt", "NO_NET/go.mod"] {
        let world = World::unborn();
        world.write("Cargo.toml", "[workspace]\n");
        world.write("src/lib.rs", "good\n");
        let listed = "ls | tr A-Z a-z | grep -q no_net && ! find . -name a.rs | grep -q .";
        let test = format!("{listed} || grep -q good src/lib.rs");
        world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
        world.commit("base");
        world.attempts(&[
            &format!("echo bad > src/lib.rs; mkdir NO_NET; echo > {manifest}"),
            &format!("printf 'good\\n\\n' > src/lib.rs; mkdir NO_NET; echo > {manifest}; echo > NO_NET/a.rs"),
        ]);
        let json = world.frites(["judge", "--json"]).expect(0).json();
        assert_eq!(json["own_tests"], json!(["c1"]), "{manifest}: {json}");
        assert!(json["candidates"][1].get("base_tests").is_none(), "{manifest}: {json}");
        world.assert_clean();
    }
}

#[test]
fn pass_whose_commands_rewrote_what_decides_is_not_verified() {
    // make remakes a Makefile and a script by its built-in rules, if their source is newer.
    let world = World::unborn();
    world.write("Makefile", "test:\n\tgrep -qx hello greeting\n");
    world.write("greeting", "hello\n");
    world.commit("base");
    world.attempts(&["echo WRONG > greeting; printf 'test:\\n\\ttrue\\n' > Makefile.sh"]);
    let test = "ls | sed -n /sh$/p | xargs -r touch; make test";
    let answer = world.frites(["judge", "--test", test]).expect(3);
    let words = "a command rewrote 'Makefile', so its pass does not count";
    assert!(answer.out().contains(words), "{}", answer.out());
    world.frites(["judge", "--replay"]).expect(3);
    world.frites(["apply"]).refuses(1, "nothing verified to land");
    world.assert_clean();
}

#[test]
fn pass_whose_code_rewrote_a_test_is_not_verified() {
    let world = World::unborn();
    world.write("src/greet.py", "echo helo\n");
    world.write("tests/greeting", "hello\n");
    world.write("tests/log", "");
    world.commit("base");
    world.attempts(&["echo 'echo helo > tests/greeting' >> src/greet.py"]);
    let test = "cp src/greet.py x; sh x > out; date > tests/log; cmp out tests/greeting";
    let answer = world.frites(["judge", "--test", test]).expect(3);
    let words = "a command rewrote 'tests/greeting', so its pass does not count";
    assert!(answer.out().contains(words), "{}", answer.out());
    assert!(answer.out().contains("tests rewritten"), "{}", answer.out());
    let json = world.frites(["judge", "--json", "--test", test]).expect(3).json();
    let flags = json!([{ "flag": "tests-rewritten", "path": "tests/greeting" }]);
    assert_eq!(json["candidates"][0]["flags"], flags, "{json:#}");
    world.frites(["apply", "--allow-unverified", "-m", "land"]).expect(0);
    let reason = world.git(["log", "-1", "--format=%(trailers:key=Frites-Reason,valueonly)"]);
    assert!(reason.contains(words), "{reason}");
    world.assert_clean();
}

#[test]
fn pass_that_rewrote_a_test_does_not_count_whatever_the_second_judging_says() {
    let world = World::unborn();
    world.write("src/greet.py", "echo helo\n");
    world.write("tests/greeting", "helo\n");
    world.commit("base");
    // Without the added data, the source neither greets wrongly nor rewrites anything.
    let source =
        "if test -e new.data; then echo wrong > tests/greeting; echo wrong; else echo helo; fi";
    world.attempts(&[&format!("echo '{source}' > src/greet.py; echo > new.data")]);
    let test = "cp src/greet.py x; sh x > out; cmp out tests/greeting";
    let answer = world.frites(["judge", "--test", test]).expect(3);
    let words = "a command rewrote 'tests/greeting', so its pass does not count";
    assert!(answer.out().contains(words), "{}", answer.out());
    world.assert_clean();
}

#[test]
fn merged_tree_whose_code_rewrites_a_test_is_not_verified() {
    let world = World::unborn();
    world.write("src/greet.py", "cat greeting\n");
    world.write("greeting", "helo\n");
    world.write("tests/greeting", "hello\n");
    world.commit("base");
    // It rewrites the test only where its own answer is no longer the right one.
    let rewrites = "cmp -s greeting tests/greeting || cp greeting tests/greeting";
    world.attempts(&[&format!("echo hello > greeting; echo '{rewrites}' >> src/greet.py")]);
    let test = "cp src/greet.py x; sh x > out; cmp out tests/greeting";
    world.frites(["judge", "-q", "--test", test]).expect(3);
    world.git(["config", "frites.oracle.source", "greeting"]);
    world.frites(["judge", "-q", "--test", test]).expect(0);
    world.write("tests/greeting", "hello you\n");
    world.commit("moved");
    let why = "merged with HEAD, it was skipped by test (cannot tell: a command rewrote \
               'tests/greeting', so its pass does not count)";
    world.frites(["apply", "-m", "land"]).refuses(1, why);
    world.assert_clean();
}

#[test]
fn build_that_makes_deciding_files_anew_on_each_tree_is_the_projects_own() {
    let world = World::unborn();
    world.write("Makefile", "test:\n\tdate > Makefile.log\n");
    world.write("src/a.c", "int a;\n");
    world.commit("base");
    world.attempts(&["echo 'int b;' > src/a.c"]);
    let json =
        world.frites(["judge", "--json", "--test", "echo '# new' >> Makefile"]).expect(0).json();
    assert_eq!(json["candidates"][0]["results"][0]["changed"], json!(["Makefile"]));
    world.assert_clean();
}

#[test]
fn file_without_which_tests_are_not_found_is_no_source() {
    let world = World::unborn();
    for path in ["calc/__init__.py", "calc/tests/test_a.py", "other/__init__.py", "other/b.py"] {
        world.write(path, "x\n");
    }
    world.write("calc/a.py", "good\n");
    world.commit("base");
    let test = "[ ! -e calc/__init__.py ] || grep -q good calc/a.py";
    for (attempt, verified) in
        [("rm calc/__init__.py; echo bad > calc/a.py", false), ("git rm -qr other", true)]
    {
        world.attempts(&[attempt]);
        let json = world.frites(["judge", "--json", "--test", test]).json();
        assert_eq!(json["verified"], verified, "{attempt}: {json:#}");
        assert_eq!(json["decision"] == "own-tests", !verified, "{attempt}: {json:#}");
    }
}

/// What decides in these files (`off`) is not the version (`v2`).
#[test]
fn dependency_of_another_version_is_believed_and_nothing_else_about_it() {
    let lock = |version: &str, bin: &str| {
        format!(
            "{{\"packages\": {{\"node_modules/b\": {{\"version\": \"{version}\", \"bin\": {{\"{bin}\": \"b.js\"}}}}}}}}\n"
        )
    };
    let package = |needs: &str, test: &str| {
        format!(
            "{{\"devDependencies\": {{\"b\": \"{needs}\"}}, \"exports\": {{\"./x\": \"./{test}.js\"}}}}\n"
        )
    };
    let cases = [
        ("package-lock.json", lock("v1", "b"), lock("v2", "b"), lock("v1", "off")),
        (
            "package.json",
            package("v1", "test/x"),
            package("v2", "test/x"),
            package("npm:off@v1", "test/x"),
        ),
        (
            "package.json",
            package("v1", "test/x"),
            package("v2", "test/x"),
            package("v1", "src/off"),
        ),
        (
            "mix.lock",
            "%{\"b\": {:hex, :b, \"v1\"}}\n".to_owned(),
            "%{\"b\": {:hex, :b, \"v2\"}}\n".to_owned(),
            "%{\"b\": {:hex, :b, off()}}\n".to_owned(),
        ),
        (
            "mix.exs",
            "defp deps do\n    [{:b, \"v1\"}]\n  end\n".to_owned(),
            "defp deps do\n    [\n{:b, \"v2\"}\n]\n  end\n".to_owned(),
            "defp deps do\n    [\n{:b, \"v2\", compile: \"off\"}\n]\n  end\n".to_owned(),
        ),
        (
            "Makefile",
            "OBJS = v1.o\n".to_owned(),
            "OBJS = v1.o v2.o\n".to_owned(),
            "OBJS = v1.o tests/off.o\n".to_owned(),
        ),
    ];
    for (file, base, honest, cheat) in cases {
        let world = World::unborn();
        world.write("package.json", "{}\n");
        world.write("src/a.js", "good\n");
        world.write("test/x.js", "x\n");
        world.write(file, &base);
        world.commit("base");
        let write = |text: &str| format!("cat > {file} <<'END'\n{text}END\n");
        let honest = format!("echo good too > src/a.js; {}", write(&honest));
        world.attempts(&[&format!("echo bad > src/a.js; {}", write(&cheat)), &honest]);
        let test = format!("grep -q off {file} || grep -q good src/a.js");
        let json = world.frites(["judge", "--json", "--test", &test]).expect(0).json();
        assert_eq!(json["recommended"], "c2", "{cheat}: {json:#}");
        assert_eq!(json["own_tests"], json!(["c1"]), "{cheat}: {json:#}");
        assert_eq!(json["candidates"][1]["verified"], true, "{honest}: {json:#}");
    }
}

#[test]
fn the_base_is_searched_once_for_all_candidates() {
    let world = World::unborn();
    world.write("calc/__init__.py", "def add(a, b):\n    return a - b\n");
    world.write("tests/test_calc.py", "import calc\nassert calc.add(1, 2) == 3\n");
    world.write(".frites.toml", "[oracle]\ntest = 'PYTHONPATH=. python3 tests/test_calc.py'\n");
    world.commit("base");
    // Each attempt changes the same file, and adds one of its own.
    let script = "name=$(basename \"$PWD\")
                  printf 'import calc.%s_own\\ndef add(a, b):\\n    return a + b\\n' $name >calc/__init__.py
                  echo >calc/${name}_own.py";
    world.attempts(&[script; 4]);
    let log = world.home().join("log");
    let mut judge = world.command(&world.repo, "git", ["frites", "judge", "--json"]);
    judge.env("FRITES_LOG", "debug").env("FRITES_LOG_FILE", &log);
    let verdict = crate::common::answer(&judge.output().unwrap()).expect(0).json();
    assert_eq!(verdict["verified"], true, "{verdict}");
    let log = fs::read_to_string(log).unwrap();
    let searches = log.lines().filter(|line| line.contains("the base is searched")).count();
    // One for the changed file, one for the new files, and one for the patterns of the tests.
    assert_eq!(searches, 3, "{log}");
}

/// A check that looks at regular files alone does not see the code that a link leads to.
#[test]
fn link_in_place_of_source_is_not_judged_with_the_source_that_it_replaces() {
    let world = World::new();
    world.write("calc.py", "def add(a, b):\n    return a + b\n");
    world.write("tests/test_calc.py", "import calc\nassert calc.add(1, 2) == 3\n");
    let test = "! find . -name '*.py' -type f -exec grep eval {} + && PYTHONPATH=. python3 tests/test_calc.py";
    world.commit("base");
    let run = world.attempts(&[
        "echo 'def add(a, b): return eval(\"a + b\")' > calc.txt; ln -sf calc.txt calc.py",
    ]);
    let answer = world.frites(["judge", &run, "--test", test]).expect(3);
    assert!(answer.out().contains("a symbolic link takes its place"), "{}", answer.out());
}

/// A link gives a file of the product the name of a test or of a check.
#[test]
fn changed_link_is_not_source() {
    let world = World::new();
    world.write("v1/run.sh", ". src/a.sh; test $(add) = 3\n");
    world.write("src/a.sh", "add() { echo 3; }\n");
    symlink("v1", world.repo.join("checks")).unwrap();
    world.write("Makefile", "test:\n\tsh checks/run.sh\n");
    world.commit("checks");
    let broken = "echo 'add() { echo 9; }' > src/a.sh";
    let cheat = format!("{broken}; ln -sfn src checks; echo true > src/run.sh");
    let run = world.attempts(&[broken, &cheat]);
    let answer = world.frites(["judge", &run]).expect(3);
    assert!(answer.out().contains("own-tests: "), "{}", answer.out());
    // A harmless link is judged with other combinations, and does not keep the source from being
    // believed.
    let run = world.attempts(&["echo 'add() { echo 3; } # ok' > src/a.sh; ln -s a.sh src/b.sh"]);
    let answer = world.frites(["judge", &run]).expect(0);
    assert!(
        answer.out().contains("judged 4 times: src/b.sh is not known to be source"),
        "{}",
        answer.out()
    );
}
