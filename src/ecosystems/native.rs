//! C and C++: CMake, with presets or without, the autotools, Meson, and Bazel.
use serde_json::Value;

use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::just::JUSTFILES;
use crate::ecosystems::make::{
    MAKEFILES, TEST_WORDS, ends_with_source, is_longer_list, leaves_files_out,
};
use crate::ecosystems::manifest::line_hunks;
use crate::ecosystems::paths::{file_name, is_in, is_in_name};
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command, shell_command};
use crate::model::oracle::shell_quoted;
use crate::model::outcome::Stage;

/// C and C++, and the build tools that are mainly for them.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[
        (Evidence::Settings, cmake_presets),
        (Evidence::Settings, |files| cmake_if_called(files, false)),
        (Evidence::Names, |files| cmake_if_called(files, true)),
        (Evidence::Settings, autotools),
        (Evidence::Settings, meson),
        (Evidence::Settings, bazel),
    ],
    extensions: &["c", "cc", "cpp", "cxx", "h", "hpp", "hh", "hxx", "inl", "ipp", "m", "mm", "cu"],
    other_extensions: &["s", "S", "asm", "l", "y"],
    is_source_if_new: |file| file.is_beside_its_language() && !file.has_name_of_a_test(),
    project_files: &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel", "configure.ac", "meson.build"],
    comment: "//",
    block_comment: ("/*", "*/"),
    raw_text,
    joins_lines: true,
    test_marks: "TEST(|TEST_F(|TEST_P(|TEST_CASE(|SCENARIO(",
    skip_marks: "GTEST_SKIP*|DISABLED_*|SKIP(",
    assertions: ("define undef", "assert EOF EXIT_FAILURE EXIT_SUCCESS NDEBUG NULL"),
    test_words: TEST_WORDS,
    decisive_files: ".bazelrc .bazelversion CMakePresets.json CMakeUserPresets.json
        CTestConfig.cmake CTestCustom.cmake",
    shadows_library: |path, _| {
        let header = file_name(path).strip_suffix(".h");
        header.is_some_and(|name| SYSTEM_HEADERS.split_whitespace().any(|known| known == name))
            || SYSTEM_DIRECTORIES.iter().any(|name| is_in(path, name))
    },
    manifests: &[(&["CMakeLists.txt", "meson.build", "BUILD", "BUILD.bazel"], all_but_sources)],
    ..Ecosystem::NOTHING
};

/// The length of a raw string literal of C++: `R"x(…)x"`.
fn raw_text(before: &str, rest: &str) -> Option<Option<usize>> {
    let text = rest.strip_prefix('"')?;
    let word = before.rsplit(|c| !is_in_name(c)).next()?;
    if !RAW_PREFIXES.contains(&word) {
        return None;
    }
    let delimiter = &text[..text.find(|c: char| c.is_whitespace() || "()\\\"".contains(c))?];
    let is_raw = text[delimiter.len()..].starts_with('(');
    let end = format!("){delimiter}\"");
    is_raw.then(|| rest.find(&end).map(|length| length + end.len()))
}

/// The words before the quote of a raw string literal.
const RAW_PREFIXES: [&str; 5] = ["R", "LR", "UR", "uR", "u8R"];

/// The headers of C's libraries and compilers. A compiler may find a project's header of the same
/// name before the system's. These headers include each other, so a project's `features.h` would
/// change `assert.h`, too.
const SYSTEM_HEADERS: &str = "\
    AssertMacros Availability AvailabilityMacros TargetConditionals _types aio alloca argp argz
    assert byteswap cdefs complex cpio ctype dirent dlfcn elf endian envz err errno error
    execinfo fcntl features features-time64 fenv float fmtmsg fnmatch fts ftw getopt glob
    gnu-versions grp iconv ifaddrs inttypes iso646 langinfo libgen libintl limits link locale
    malloc math mcheck memory mm_malloc mntent monetary mqueue netdb nl_types obstack paths poll
    printf pthread pty pwd regex resolv sched search semaphore setjmp shadow signal spawn stab
    stdalign stdarg stdatomic stdbool stdc-predef stddef stdint stdio stdio_ext stdlib
    stdnoreturn string strings syscall sysexits syslimits syslog tar termio termios tgmath
    threads time uchar ucontext ulimit unistd unwind utime utmp utmpx values varargs wait wchar
    wctype wordexp xlocale";

/// The directories in which systems have further headers.
const SYSTEM_DIRECTORIES: [&str; 8] =
    ["asm", "asm-generic", "bits", "gnu", "linux", "mach", "machine", "sys"];

/// The maximum number of Bazel's rule files that are searched.
const MOST_BUILD_FILES: usize = 1_000;

const PRESETS: &str = "CMakePresets.json";

/// Builds and tests with the first visible configure preset, and with the build preset and the test
/// preset that belong to it.
fn cmake_presets(files: &RootFiles<'_>) -> FoundCommands {
    let presets = files.json(PRESETS)?.unwrap_or_default();
    let configure = preset_name(&presets, "configurePresets", |_| true);
    let belongs = |preset: &Value| preset["configurePreset"].as_str() == configure;
    let build = preset_name(&presets, "buildPresets", belongs);
    let (Some(configure), Some(build), true) = (configure, build, files.has("CMakeLists.txt"))
    else {
        return Ok(Vec::new());
    };
    // Configuring is part of this command, so that `spawn.setup` cannot replace it.
    let line = format!(
        "cmake --preset {} && cmake --build --preset {}",
        shell_quoted(configure),
        shell_quoted(build)
    );
    let mut found = vec![shell_command(Stage::Build, line, PRESETS)];
    if let Some(test) = preset_name(&presets, "testPresets", belongs) {
        found.push(command(Stage::Test, &["ctest", "--preset", test], PRESETS));
    }
    Ok(found)
}

/// Returns the commands of [`cmake`]: with `by_recipe` only if a recipe of the project calls CMake,
/// otherwise only if no recipe does. In the first case, the commands rank below the recipe, because
/// the recipe has the right options.
fn cmake_if_called(files: &RootFiles<'_>, by_recipe: bool) -> FoundCommands {
    let mut is_called = false;
    for recipes in MAKEFILES.iter().chain(&JUSTFILES) {
        let text = files.text(recipes)?.unwrap_or_default();
        is_called |= ["cmake ", "ctest", "$(CMAKE)"].iter().any(|program| text.contains(program));
    }
    if is_called == by_recipe { cmake(files) } else { Ok(Vec::new()) }
}

/// Configures and builds in a directory that the base does not have, and runs the tests there if
/// the project defines any. Some options that are off by default are switched on: those that build
/// tests, and those that CI's first call of CMake switches on.
fn cmake(files: &RootFiles<'_>) -> FoundCommands {
    const LISTS: &str = "CMakeLists.txt";
    /// The ends of the names of options that build tests.
    const ENDS: [&str; 3] = ["_TESTS", "_TESTING", "_TEST"];
    let Some(text) = files.text(LISTS)? else { return Ok(Vec::new()) };
    let Some(directory) = free_directory(files, "cmake-build") else { return Ok(Vec::new()) };
    let ci = files.ci().first_defines("cmake");
    let is_on_in_ci = |name: &str| ci.iter().any(|word| *word == format!("-D{name}=ON"));
    let options: String = text
        .lines()
        .filter_map(option_that_is_off)
        .filter(|name| ENDS.iter().any(|end| name.ends_with(end)) || is_on_in_ci(name))
        .map(|name| format!(" -D{name}=ON"))
        .collect();
    let line = format!("cmake -S . -B {directory}{options} && cmake --build {directory}");
    let mut found = vec![shell_command(Stage::Build, line, LISTS)];
    let lower = text.to_ascii_lowercase();
    if ["enable_testing", "include(ctest)", "add_test"].iter().any(|call| lower.contains(call)) {
        let words = ["ctest", "--test-dir", directory, "--no-tests=error", "--output-on-failure"];
        let report = ["--output-junit", "Testing/Temporary/report.xml"];
        found.push(command(Stage::Test, &[&words[..], &report].concat(), LISTS));
    }
    Ok(found)
}

/// A directory for a build that the base does not have; `own` is one for this build tool.
fn free_directory(files: &RootFiles<'_>, own: &'static str) -> Option<&'static str> {
    let directories = ["build", own, "build-frites"];
    directories.into_iter().find(|name| !files.has(name) && !files.has_directory(name))
}

/// Configures and builds in a directory that the base does not have, and runs the tests there.
fn meson(files: &RootFiles<'_>) -> FoundCommands {
    const SETTINGS: &str = "meson.build";
    let (Some(directory), true) = (free_directory(files, "meson-build"), files.has(SETTINGS))
    else {
        return Ok(Vec::new());
    };
    let line = format!("meson setup {directory} && meson compile -C {directory}");
    let test = ["meson", "test", "-C", directory, "--print-errorlogs"];
    Ok(vec![shell_command(Stage::Build, line, SETTINGS), command(Stage::Test, &test, SETTINGS)])
}

/// The name of an option such as `option(ABC_BUILD_TESTS "Build the tests" OFF)`.
fn option_that_is_off(line: &str) -> Option<&str> {
    let (call, rest) = line.trim().split_once('(')?;
    let name = rest.split_whitespace().next()?;
    let is_off = rest.trim_end().trim_end_matches(')').trim_end().ends_with("OFF");
    (call.eq_ignore_ascii_case("option") && name.chars().all(is_in_name) && is_off).then_some(name)
}

/// Builds with `./configure` and make, and tests with the author's target `test`, or else with
/// Automake's `check`.
fn autotools(files: &RootFiles<'_>) -> FoundCommands {
    const SETTINGS: &str = "configure.ac";
    let (Some(makefile), true) = (files.text("Makefile.am")?, files.has(SETTINGS)) else {
        return Ok(Vec::new());
    };
    let configure =
        if files.has("configure") { "./configure" } else { "autoreconf -fi && ./configure" };
    let has_test = makefile.lines().any(|line| line.starts_with("test:"));
    let target = if has_test { "test" } else { "check" };
    Ok(vec![
        shell_command(Stage::Build, format!("{configure} && make"), SETTINGS),
        command(Stage::Test, &["make", target], "Makefile.am"),
    ])
}

/// The name of the first visible preset of a kind for which `accept` is true.
fn preset_name<'p>(
    presets: &'p Value,
    kind: &str,
    accept: impl Fn(&Value) -> bool,
) -> Option<&'p str> {
    let preset = presets[kind]
        .as_array()?
        .iter()
        .find(|preset| preset["hidden"].as_bool() != Some(true) && accept(preset))?;
    preset["name"].as_str()
}

/// Builds and tests all targets, if the project has a test rule. With `--batch`, Bazel starts no
/// server, which would outlive the command.
fn bazel(files: &RootFiles<'_>) -> FoundCommands {
    let Some(name) = files.first(&["MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE"]) else {
        return Ok(Vec::new());
    };
    let is_build = |path: &&String| matches!(file_name(path), "BUILD" | "BUILD.bazel");
    let builds = files.paths().iter().filter(is_build).take(MOST_BUILD_FILES);
    let mut texts = builds.filter_map(|path| files.text(path).ok().flatten());
    if !texts.any(|text| text.contains("_test(")) {
        return Ok(Vec::new());
    }
    let all_targets = |verb: &'static str| ["bazel", "--batch", verb, "//..."];
    Ok(vec![
        command(Stage::Build, &all_targets("build"), name),
        command(Stage::Test, &all_targets("test"), name),
    ])
}

/// Restores the base's build file, but keeps source files that the attempt adds after other source
/// files.
fn all_but_sources(base: Option<&str>, own: &str) -> Option<String> {
    // All of a new build file may be code, so no part of it can be kept.
    let is_list = !leaves_files_out(base?);
    line_hunks(base, own, |hunk| {
        let words = |lines: &[&str]| {
            lines.concat().replace(['"', '\'', ','], " ").replace(')', " ) ").replace(']', " ] ")
        };
        let follows_source = ends_with_source(&words(&[hunk.before]));
        !(is_list && is_longer_list(&words(hunk.removed), &words(hunk.added), follows_source))
    })
}
