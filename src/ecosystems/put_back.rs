//! Decides which changes of an attempt are put back, so that the base's tests and commands judge
//! it. The decision depends on the changed paths, and on the texts of the files.
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::ops::Range;

use crate::ecosystems::ALL;
use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::dependencies::ecosystem_of;
use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound, TestPart, TestParts};
use crate::ecosystems::javascript;
use crate::ecosystems::languages::{is_hidden_or_installed, language_of};
use crate::ecosystems::loading::javascript_paths::declared_modules;
use crate::ecosystems::manifest::words;
use crate::ecosystems::marks::{code, code_or_text, has_fewer_tests, loose_tests, new_skip_mark};
use crate::ecosystems::new_file::is_plain_name;
use crate::ecosystems::paths::{directory_of, file_name, is_in_name};
use crate::ecosystems::touched::{is_named, is_test_path, source_of};
use crate::error::Result;
use crate::model::changed_file::ChangedFile;

/// The treatment of a changed path in the second judging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// Nothing: the file is source, a document or a list of dependencies.
    Keep,
    /// Put the base's file back: it is an existing test.
    Test,
    /// Put the base's file back: it decides which commands run. An added file is taken out.
    Deciding,
    /// Use this text: the attempt's, with the base's deciding part.
    Part(String),
    /// Use this text: the attempt's, with the base's tests in this file.
    InnerTests(String),
    /// Use this text: the attempt's, without the tests that the attempt adds to a source file.
    AddedInnerTests(String),
    /// Take out an added test. It may need a file that is put back. It may also change the results
    /// of the base's tests, because it shares a process, a directory or outputs with them.
    AddedTest,
    /// Put the base's file back, and also judge the source together with the changed file. The file
    /// is of unknown kind: it may be data, or a setting of a tool that git-frites does not know.
    Other,
    /// As `Other`, but put only the mode back: the text is source, a document or a list of
    /// dependencies.
    Mode,
    /// The change may decide what is run, but cannot be put back without other changes. The string
    /// is the reason.
    Inseparable(&'static str),
}

impl PutBack {
    /// True if the file decides which commands run.
    pub fn decides(&self) -> bool {
        matches!(self, PutBack::Deciding | PutBack::Part(_))
    }

    /// True if it is not known what the change of the file, or of its mode, does.
    pub fn is_unknown(&self) -> bool {
        matches!(self, PutBack::Other | PutBack::Mode)
    }

    /// True if only added tests are taken out.
    pub fn is_added_test(&self) -> bool {
        matches!(self, PutBack::AddedTest | PutBack::AddedInnerTests(_))
    }
}

/// Decides what to do with one changed file of an attempt on this base. `path` is its path as text.
pub fn put_back(file: &ChangedFile, path: &str, base: &BaseProject<'_>) -> Result<PutBack> {
    let (before, after) = (file.before.text(), file.after.text());
    let (before, after) = (before.as_deref(), after.as_deref());
    let code = base.code()?;
    let known = put_back_by_names(path, [before, after], base)?;
    match known {
        // A submodule has no text, so `before` is empty.
        PutBack::Keep if before.is_none_or(str::is_empty) && is_named(path, &code.submodules) => {
            Ok(PutBack::Other)
        }
        PutBack::Keep if before.is_none() && !is_plain_name(path, code.nearest_directory(path)) => {
            Ok(PutBack::Other)
        }
        // A command may run a test only if the file is there and not empty. If the base's file were
        // put back, the test would run, and tell nothing about the tree that lands.
        PutBack::Keep
            if before.is_some()
                && after.is_none_or(str::is_empty)
                && language_of(path).is_some()
                && base.is_marker(path)? =>
        {
            Ok(PutBack::Inseparable("it is gone, and a command may ask for it"))
        }
        // Without the file that makes a directory a package, tests below the directory may not be
        // found.
        PutBack::Keep
            if after.is_none()
                && ALL.iter().any(|e| e.package_file == file_name(path))
                && base.has_tests_beside(path)? =>
        {
            Ok(PutBack::Other)
        }
        PutBack::Keep | PutBack::Part(_) | PutBack::AddedInnerTests(_)
            if base.excludes(path) || before.is_none() && base.takes_place_of_seed(path)? =>
        {
            Ok(if known.decides() { PutBack::Deciding } else { PutBack::Other })
        }
        PutBack::Keep => {
            let is_new = before.is_none();
            let counts = if let Some(ecosystem) = about_dependencies(path) {
                // In a directory of the base, a new manifest may begin another project, whose tests
                // no command runs.
                let brings_directory = !code.has_directory(directory_of(path));
                let takes_name = ecosystem.finds == PackagesFound::InstalledAndMembers;
                !is_new || brings_directory && !takes_name || !code.is_known
            } else {
                let mut texts = before.iter().chain(&after);
                let is_script = texts.any(|text| text.starts_with("#!"));
                base.is_source(path, is_new)? || !is_script && base.is_document(path)?
            };
            Ok(if counts { PutBack::Keep } else { PutBack::Other })
        }
        // A change of this file may break the product, so the base's tests must see the attempt's
        // version, too.
        PutBack::Test if base.is_test_by_name_alone(path)? => Ok(PutBack::Other),
        known => Ok(known),
    }
}

/// Decides by a changed path's names and texts alone: its own name, and those that links of the base
/// give to it. `texts` are the file's texts before and after the change.
fn put_back_by_names(
    path: &str,
    texts: [Option<&str>; 2],
    base: &BaseProject<'_>,
) -> Result<PutBack> {
    let [before, after] = texts;
    // The commands never read this file, because submodules are copied from the user's checkout.
    if path == MODULES && !base.code()?.submodules.is_empty() {
        return Ok(PutBack::Inseparable("no command reads it where a tree is judged"));
    }
    let mut known = put_back_by_name(path, before, after, &base.scripts);
    for name in base.names_by_links(path)? {
        if known == PutBack::Keep {
            known = put_back_by_name(&name, before, after, &base.scripts);
        }
    }
    if let PutBack::Keep = known
        && let Some(source) = source_of(path)
        && base.tests_call_one_of(path, &new_names(source, before, after))?
    {
        return Ok(PutBack::Inseparable("it defines a macro with a name that tests call"));
    }
    Ok(known)
}

/// True if a change of TypeScript declares a module by its name. A compiler reads the declaration in
/// place of the package of that name, which tests or other packages may load.
pub fn declares_new_module(file: &ChangedFile, path: &str) -> bool {
    let before = file.before.text().unwrap_or_default();
    let after = file.after.text().unwrap_or_default();
    javascript::ECOSYSTEM.has_source(path)
        && !declared_modules(&after).is_subset(&declared_modules(&before))
}

/// The ecosystem of a manifest or a lock file; `None` for other files, and for hidden and installed
/// files.
fn about_dependencies(path: &str) -> Option<&'static Ecosystem> {
    if is_hidden_or_installed(path) { None } else { ecosystem_of(file_name(path)) }
}

/// True if a new file of unknown kind can only be the setting of a tool. Nothing in the base reads
/// such a file as data or as code.
pub fn is_setting_at_most(path: &str, base: &BaseProject<'_>) -> Result<bool> {
    let is_plain = is_plain_name(path, base.code()?.nearest_directory(path));
    Ok(is_plain && !is_read_as_text(path) && base.reads_no_new(path)?)
}

/// True if tools read a file of this name as text: source, a manifest or a lock file.
pub fn is_read_as_text(path: &str) -> bool {
    language_of(path).is_some() || about_dependencies(path).is_some()
}

/// True if tests in a source file of this name run because a module names the file, wherever it is.
pub fn tests_are_named_by_modules(path: &str) -> bool {
    source_of(path).is_some_and(|source| source.inner_tests.is_some())
}

/// True if a new file is a manifest or a lock file in a directory that the base does not have.
pub fn begins_project(path: &str, base: &BaseProject<'_>) -> Result<bool> {
    let code = base.code()?;
    let is_there = code.has_directory(directory_of(path));
    Ok(about_dependencies(path).is_some() && !is_there && code.is_known)
}

/// True if a file that an attempt adds decides which commands run, or keeps tests from running.
pub fn decides_by_being_there(path: &str, text: &[u8], scripts: &BTreeSet<String>) -> bool {
    put_back_by_name(path, None, Some(&String::from_utf8_lossy(text)), scripts).decides()
}

/// Decides by a changed path's name and texts alone, without looking at other files.
fn put_back_by_name(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
    scripts: &BTreeSet<String>,
) -> PutBack {
    let decides = deciding_change(path, before, after, scripts);
    if decides != PutBack::Keep {
        return decides;
    }
    let source = source_of(path);
    let is_test = is_test_path(path);
    let skip_mark = source.and_then(|own| new_skip_mark(own, is_test, before, after));
    let skips = skip_mark.is_some();
    if is_test {
        return match before {
            Some(_) => PutBack::Test,
            // A test with such a mark may decide which other tests run.
            None if skips => PutBack::Deciding,
            None => PutBack::AddedTest,
        };
    }
    let Some(source) = source else { return PutBack::Keep };
    if skip_mark.is_some_and(|mark| mark.starts_with("def ")) {
        return PutBack::Inseparable("it has a hook with which it chooses the tests that run");
    }
    let of_library = words(source.assertions.1);
    if new_names(source, before, after).iter().any(|name| of_library.contains(&name.as_str())) {
        return PutBack::Inseparable("it gives another meaning to a name by which tests assert");
    }
    match (before, after, source.inner_tests) {
        (before, Some(after), _) if before == Some(after) => PutBack::Keep,
        (before, Some(after), Some(parts)) => inner_tests(source, parts, before, after),
        (Some(before), Some(after), None) => {
            let [old, new] = [before, after].map(|text| loose_tests(source, text));
            let kept: HashSet<&str> = new.iter().map(|test| test.text.as_str()).collect();
            // If the code cannot be read, a test that is still in the text may be in a comment.
            let changes_tests = !old.iter().all(|test| kept.contains(test.text.as_str()))
                || !old.is_empty() && code(source, after).is_none();
            if changes_tests || (skips && !(old.is_empty() && new.is_empty())) {
                PutBack::Inseparable(MIXED)
            } else {
                PutBack::Keep
            }
        }
        (Some(before), None, _) if has_fewer_tests(source, path, Some(before), None) => {
            PutBack::Inseparable("its tests are gone with the file")
        }
        _ => PutBack::Keep,
    }
}

/// Decides what to do with a change that may decide which commands run, or how. In a manifest, only
/// the deciding part counts. `scripts` are the files that the oracle's commands run.
pub fn deciding_change(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
    scripts: &BTreeSet<String>,
) -> PutBack {
    if is_named(path, scripts) || ALL.iter().any(|e| e.is_decisive(path)) {
        return PutBack::Deciding;
    }
    let text = after.unwrap_or_default();
    if before.is_none() && ALL.iter().any(|e| (e.shadows_library)(path, text)) {
        return PutBack::Deciding;
    }
    let name = file_name(path);
    let Some(put_back) = ALL.iter().find_map(|ecosystem| ecosystem.manifest(name)) else {
        return PutBack::Keep;
    };
    let Some(after) = after else { return PutBack::Deciding };
    match put_back(before, after) {
        Some(text) if text == after => PutBack::Keep,
        Some(text) => PutBack::Part(text),
        None if before == Some(after) => PutBack::Keep,
        // The part cannot be told from the rest.
        None => PutBack::Deciding,
    }
}

/// Decides what to do with a source file that may contain tests beside the code. Each of the base's
/// tests is put back by itself. Added tests are taken out, because they may have the same names as
/// tests in a file that is no longer part of the program.
fn inner_tests(
    source: &Ecosystem,
    parts: fn(&str) -> Option<TestParts>,
    before: Option<&str>,
    after: &str,
) -> PutBack {
    let old_text = before.unwrap_or_default();
    let Some((old, new)) = parts(old_text).zip(parts(after)) else {
        return PutBack::Inseparable(MIXED);
    };
    // The parts that can be put back only with the code around them.
    let mixed = |read: &TestParts, text: &str| -> HashSet<(u64, bool, String)> {
        let parts = read.parts.iter().filter(|part| !part.is_separable);
        parts.map(|part| (part.scope, part.is_test, text[part.range.clone()].to_owned())).collect()
    };
    let old_mixed = mixed(&old, old_text);
    let new_mixed = mixed(&new, after);
    let mut lost = old_mixed.difference(&new_mixed);
    let mut gained = new_mixed.difference(&old_mixed);
    if lost.clone().any(|(_, is_test, _)| *is_test) || gained.any(|(_, is_test, _)| *is_test) {
        return PutBack::Inseparable(MIXED);
    }
    let mut modules = new.modules.iter();
    if modules.any(|(of, own)| old.modules.get(of).is_some_and(|base| base != own)) {
        return PutBack::Inseparable("it changes the attributes of a module that has its own file");
    }
    // An import that is gone may leave its name to other code, which tests would then use.
    let imported = |read: &TestParts| -> HashSet<(u64, String)> {
        let each = read.imports.iter();
        each.flat_map(|of| of.items.iter().map(|item| (of.scope, item.clone()))).collect()
    };
    if lost.next().is_some() || !imported(&old).is_subset(&imported(&new)) {
        return PutBack::Inseparable("it changes or drops code that only tests compile");
    }
    let mut own: BTreeMap<(u64, &str), VecDeque<&TestPart>> = BTreeMap::new();
    for part in new.parts.iter().filter(|part| part.is_separable) {
        own.entry((part.scope, &part.name)).or_default().push_back(part);
    }
    let mut edits = Vec::new();
    let mut missing = String::new();
    for part in old.parts.iter().filter(|part| part.is_separable) {
        let test = &old_text[part.range.clone()];
        match own.get_mut(&(part.scope, part.name.as_str())).and_then(VecDeque::pop_front) {
            Some(found) if after[found.range.clone()] == *test => {}
            Some(found) => edits.push((found.range.clone(), test)),
            None if part.scope == new.root => missing.extend(["\n", test.trim_end(), "\n"]),
            None => return PutBack::Inseparable(MIXED),
        }
    }
    let puts_back = !edits.is_empty() || !missing.is_empty();
    let added = own.into_values().flatten();
    edits.extend(added.map(|part| (with_space(after, &part.range), "")));
    let is_changed = puts_back || !edits.is_empty();
    edits.sort_by_key(|(range, _)| range.start);
    let mut text = String::new();
    let mut at = 0;
    for (range, test) in edits {
        // The part before may have taken the blank lines before this one.
        text.extend([&after[at..range.start.max(at)], test]);
        at = range.end;
    }
    text.extend([&after[at..], &missing]);
    if before.is_some() && new_skip_mark(source, false, before, Some(&text)).is_some() {
        return PutBack::Inseparable("it may keep its tests from running");
    }
    match (is_changed, puts_back) {
        (false, _) => PutBack::Keep,
        (true, true) => PutBack::InnerTests(text),
        (true, false) => PutBack::AddedInnerTests(text),
    }
}

/// The range of a part with the blank lines before it, or, at the start of the text, those after
/// it. If other code is on the line, the range is the part alone.
fn with_space(text: &str, part: &Range<usize>) -> Range<usize> {
    let before = text[..part.start].trim_end();
    let after = &text[part.end..];
    if before.is_empty() {
        0..text.len() - after.trim_start().len()
    } else if after.is_empty() || after.starts_with(['\n', '\r']) {
        before.len()..part.end
    } else {
        part.clone()
    }
}

/// The names that the new code defines in more places than the old code. In C and Rust, only macros
/// count.
fn new_names(source: &Ecosystem, before: Option<&str>, after: Option<&str>) -> BTreeSet<String> {
    if source.assertions.0.is_empty() {
        return BTreeSet::new();
    }
    let defining = words(source.assertions.0);
    let defined = |text: Option<&str>| -> BTreeMap<String, usize> {
        let code = code_or_text(source, text.unwrap_or_default());
        let mut places = BTreeMap::new();
        let mut before = "";
        let mut is_near = false;
        for part in code.split_inclusive(|c| !is_in_name(c)) {
            let word = part.trim_end_matches(|c| !is_in_name(c));
            if !word.is_empty() {
                if is_near && defining.contains(&before) {
                    *places.entry(word.to_owned()).or_default() += 1;
                }
                (before, is_near) = (word, true);
            }
            // In Go, `func() error` defines nothing.
            is_near &= !part.ends_with('(');
        }
        places
    };
    let known = defined(before);
    let new = defined(after).into_iter();
    new.filter(|(name, places)| known.get(name).is_none_or(|before| places > before))
        .map(|(name, _)| name)
        .collect()
}

/// The file that says where submodules come from.
const MODULES: &str = ".gitmodules";

/// The reason why the tests in a source file cannot be put back alone.
const MIXED: &str = "its tests cannot be told from its code";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(path: &str, before: Option<&str>, after: Option<&str>) -> PutBack {
        put_back_by_name(path, before, after, &BTreeSet::from(["ci/check.sh".to_owned()]))
    }

    const ADDED: PutBack = PutBack::AddedTest;

    #[test]
    fn hook_that_chooses_the_tests_cannot_be_put_back() {
        let hook = "def load_tests(loader, tests, pattern):\n    return loader.suiteClass()\n";
        for before in [Some("A = 1\n"), None] {
            let done = of("calc/__init__.py", before, Some(hook));
            assert!(matches!(done, PutBack::Inseparable(_)), "{done:?}");
        }
    }

    #[test]
    fn attributes_of_a_module_may_leave_out_the_tests_in_its_file() {
        let base = "pub mod a;\n#[cfg(unix)]\nmod b;\n";
        for (own, is_kept) in [
            ("#[cfg(not(test))]\npub mod a;\n#[cfg(unix)]\nmod b;\n", false),
            ("#[path = \"c.rs\"]\npub mod a;\n#[cfg(unix)]\nmod b;\n", false),
            ("pub mod a;\n#[cfg(windows)]\nmod b;\n", false),
            ("/// Text.\n#[allow(x)]\nmod a;\n#[cfg(unix)]\npub mod b;\n", true),
            ("pub mod a;\n#[cfg(unix)]\nmod b;\n#[cfg(unix)]\nmod c;\n", true),
        ] {
            let done = of("src/lib.rs", Some(base), Some(own));
            assert_eq!(done == PutBack::Keep, is_kept, "{own}: {done:?}");
        }
    }

    #[test]
    fn file_of_marks_alone_is_read_in_time_and_memory_of_its_size() {
        // Each mark with the rest of the file would be 80 GB.
        let text = "#[test]\n".repeat(100_000);
        let before = "#[test]\nfn a() {}\n";
        assert!(matches!(of("src/a.rs", Some(before), Some(&text)), PutBack::Inseparable(_)));
        assert!(matches!(of("src/a.rs", Some(&text), Some(before)), PutBack::Inseparable(_)));
    }

    #[test]
    fn tests_and_deciding_files_are_put_back_and_the_rest_stays() {
        /// The path, its text before and after, the thing to do.
        type Case<'a> = (&'a str, Option<&'a str>, Option<&'a str>, PutBack);
        let cases: [Case<'_>; 23] = [
            ("src/a.py", Some("a"), Some("b"), PutBack::Keep),
            ("src/new.py", None, Some("b"), PutBack::Keep),
            ("src/old.py", Some("a"), None, PutBack::Keep),
            ("tests/a.py", Some("a"), Some("a\nb"), PutBack::Test),
            ("tests/a.py", Some("a"), None, PutBack::Test),
            ("tests/data.txt", Some("a"), Some("b"), PutBack::Test),
            ("out.expected", Some("a"), Some("b"), PutBack::Test),
            ("data/golden/a.txt", Some("a"), Some("b"), PutBack::Test),
            ("spec/helper.py", Some("a"), Some("b"), PutBack::Test),
            ("src/spec/parser.py", Some("a"), Some("b"), PutBack::Keep),
            ("src/snapshots/mod.rs", Some("a"), Some("b"), PutBack::Keep),
            ("src/expected.py", Some("a"), Some("b"), PutBack::Keep),
            ("tests/new.py", None, Some("def test_a(): pass"), ADDED),
            ("tests/new.py", None, Some("os._exit(0)"), PutBack::Deciding),
            ("tests/__init__.py", None, Some("def load_tests(a, b, c):"), PutBack::Deciding),
            ("conftest.py", None, Some(""), PutBack::Deciding),
            ("ci/check.sh", Some("a"), Some("b"), PutBack::Deciding),
            ("ci/check.sh", Some("a"), None, PutBack::Deciding),
            ("GNUmakefile", None, Some("t:"), PutBack::Deciding),
            ("package.json", Some("{}"), Some("{"), PutBack::Deciding),
            ("pyproject.toml", None, Some("[project]\nname = 'a'"), PutBack::Keep),
            (
                "pyproject.toml",
                None,
                Some("[tool.pytest.ini_options]\naddopts = '-k no'"),
                PutBack::Part(String::new()),
            ),
            (
                "pyproject.toml",
                Some(""),
                Some("[project.entry-points.pytest11]\na = 'a.plugin'"),
                PutBack::Part(String::new()),
            ),
        ];
        for (path, before, after, expected) in cases {
            assert_eq!(of(path, before, after), expected, "{path}: {after:?}");
        }
    }

    #[test]
    fn manifests_keep_the_packages_that_they_need_and_nothing_that_may_change_the_tests() {
        let part = |path, base: &str, own: &str| of(path, Some(base), Some(own));
        for (path, base, own) in [
            ("Cargo.toml", "[package]\nname='a'\n", "[package]\nname='a'\n[dependencies]\nb='1'\n"),
            ("pyproject.toml", "", "[project]\ndependencies = ['b']\n"),
            (
                "setup.cfg",
                "[metadata]\nname = a\n",
                "[metadata]\nname = a\n[options]\ninstall_requires = b\n",
            ),
            ("package.json", "{}", "{\"dependencies\": {\"b\": \"1\"}}"),
            ("composer.json", "{}", "{\"require\": {\"b/b\": \"1\"}}"),
            ("deno.json", "{}", "{\"imports\": {\"b\": \"jsr:@b/b\"}}"),
            ("go.mod", "module a\n", "module a\n\nrequire (\n\tb.org/b v1.0.0 // indirect\n)\n"),
            ("go.mod", "module a\n\ngo 1.9\n", "module a\n\ngo 1.22.1\n"),
            ("Gemfile", "gem 'a'\n", "gem 'a'\ngem \"b\", '~> 1'\n"),
            ("a.gemspec", "x\n", "x\n  s.add_runtime_dependency(\"b\", \">= 1\")\n"),
            (
                "mix.exs",
                "defp deps do\n    [\n    ]\n  end\n",
                "defp deps do\n    [\n      {:b, \"~> 1\", only: [:dev], runtime: false}\n    ]\n  end\n",
            ),
            (
                "build.gradle",
                "dependencies {\n}\n",
                "dependencies {\n    testImplementation('b:b:1')\n    api project(':b')\n}\n",
            ),
            (
                "build.gradle",
                "allprojects {\n  dependencies {\n    api 'b:b:1'\n  }\n  x\n}\n",
                "allprojects {\n  dependencies {\n  }\n  x\n}\n",
            ),
            (
                "pom.xml",
                "<dependencies>\n</dependencies>",
                "<dependencies>\n<dependency>\n<version>2</version>\n</dependency>\n</dependencies>",
            ),
            (
                "a.csproj",
                "<P>\n</P>\n",
                "<P>\n<PackageReference Include=\"b\" Version=\"1\" />\n</P>\n",
            ),
            (
                "a.csproj",
                "<PackageReference Include=\"b\" Version=\"1\" PrivateAssets=\"all\" />\n",
                "<PackageReference Include=\"b\" Version=\"2\" PrivateAssets=\"all\" />\n",
            ),
            (
                "mix.exs",
                "defp deps do\n    [\n{:b, \"~> 1.0\", override: true}\n]\n  end\n",
                "defp deps do\n    [\n{:b, \"~> 2.0\", override: true}\n]\n  end\n",
            ),
            ("CMakeLists.txt", "add_library(a a.c)\n", "add_library(a a.c\n  b.c)\n"),
            ("BUILD", "srcs = [\"a.cc\"],\n", "srcs = [\n\"a.cc\",\n\"b.cc\"],\n"),
            ("meson.build", "a = files('a.c')\n", "a = files('a.c', 'b.c')\n"),
        ] {
            assert_eq!(part(path, base, own), PutBack::Keep, "{path}: {own}");
        }
        for (path, base, own) in [
            ("Cargo.toml", "", "[patch.crates-io]\nb = { path = 'b' }\n"),
            ("package.json", "{\"exports\": \"./a.js\"}", "{\"exports\": {\".\": \"./b.js\"}}"),
            ("Cargo.toml", "", "[package]\nname = 'pretty_assertions'\n"),
            ("pyproject.toml", "", "[project.scripts]\npytest = 'a:main'\n"),
            ("pyproject.toml", "", "[tool.setuptools.package-dir]\npytest = 'src/a'\n"),
            ("setup.cfg", "[options]\n", "[options]\nscripts = pytest\n"),
            ("setup.cfg", "[options]\n", "[options]\npython_requires = >= 3\n"),
            ("setup.cfg", "", "[options.entry_points]\npytest11 = a = a.plugin\n"),
            ("package.json", "{}", "{\"overrides\": {\"chai\": \"file:a\"}}"),
            ("package.json", "{}", "{\"imports\": {\"#chai\": \"./a.js\"}}"),
            ("composer.json", "{}", "{\"replace\": {\"phpunit/phpunit\": \"*\"}}"),
            ("composer.json", "{}", "{\"autoload\": {\"psr-4\": {\"PHPUnit\\\\\": \"a\"}}}"),
            ("deno.json", "{}", "{\"imports\": {\"@std/assert\": \"./a.ts\"}}"),
            ("go.mod", "module a\n", "module a\n\ngodebug panicnil=1\n"),
            ("go.mod", "module a\n\ngo 1.22\n", "module a\n\ngo 1.9\n"),
            ("go.mod", "module a\n\ngo 1.22\n", "module a\n"),
            (
                "pyproject.toml",
                "[project]\nrequires-python = \">=3.8\"\n",
                "[project]\nrequires-python = \">=3.10\"\n",
            ),
            (
                "Cargo.toml",
                "[package]\nrust-version = \"1.60\"\n",
                "[package]\nrust-version = \"1.80\"\n",
            ),
            ("package.json", "{}", "{\"browser\": {\"./test/same.js\": \"./src/add.js\"}}"),
            (
                "package.json",
                "{\"engines\": {\"node\": \"18\"}}",
                "{\"engines\": {\"node\": \"22\"}}",
            ),
            ("go.mod", "module a\n", "module a\n\nreplace b.org/b => ./b\n"),
            ("Gemfile", "gem 'a'\n", "gem 'a', exit\n"),
            ("a.gemspec", "x\n", "x\nexit if \"dependency\"\n"),
            (
                "mix.exs",
                "defp deps do\n    []\n  end\n",
                "defp deps do\n    System.halt(0)\n  end\n",
            ),
            ("build.gradle", "dependencies {\n}\n", "dependencies {\n    apply from: 'a'\n}\n"),
            ("build.gradle", "dependencies {\n}\n", "dependencies {\n  api \"\"\" 'b' '\n}\n"),
            (
                "build.gradle",
                "allprojects {\n  dependencies {\n  }\n  check.dependsOn verify\n}\n",
                "allprojects {\n  dependencies {\n  }\n}\n",
            ),
            ("mix.exs", "defp deps do\n  end\n", "defp deps do\n{:b, exit 1}\n  end\n"),
            ("pom.xml", "<dependencies>\n-->\n</dependencies>", "<dependencies>\n</dependencies>"),
            (
                "build.gradle",
                "dependencies {\n}\n",
                "dependencies {\n    api test.enabled = false\n}\n",
            ),
            (
                "a.csproj",
                "<P>\n</P>\n",
                "<P>\n<Target Name=\"VSTest\" Label=\"Reference \" />\n</P>\n",
            ),
            (
                "CMakeLists.txt",
                "add_library(a a.c)\n",
                "add_library(a a.c)\nadd_definitions(-DNDEBUG)\n",
            ),
            (
                "mix.exs",
                "defp deps do\n    []\n  end\n",
                "defp deps do\n    [\n{:b, \"~> 1.0\", compile: \"x\"}\n]\n  end\n",
            ),
            (
                "mix.exs",
                "defp deps do\n    []\n  end\n",
                "defp deps do\n    [\n{:b, \"~> 1.0\", hex: :c}\n]\n  end\n",
            ),
            (
                "pom.xml",
                "<dependencies>\n</dependencies>",
                "<dependencies>\n<dependency><exclusions/></dependency>\n</dependencies>",
            ),
            (
                "pom.xml",
                "<dependencies>\n</dependencies>",
                "<dependencies>\n<dependency><type>x</type></dependency>\n</dependencies>",
            ),
            (
                "a.csproj",
                "<P>\n<PackageReference Include=\"b\" Version=\"1\" />\n</P>\n",
                "<P>\n<PackageReference Include=\"b\" Version=\"1\" ExcludeAssets=\"all\" />\n</P>\n",
            ),
            ("CMakeLists.txt", "set(SKIP\n  a.c\n)\n", "set(SKIP\n  a.c\n  b.c\n)\n"),
            (
                "BUILD",
                "glob([], exclude = [\"a.cc\"])\n",
                "glob([], exclude = [\"a.cc\", \"b.cc\"])\n",
            ),
            ("Cargo.toml", "[package]\nedition = \"2018\"\n", "[package]\nedition = \"2015\"\n"),
            (
                "Cargo.toml",
                "[workspace.package]\nedition = \"2018\"\n",
                "[workspace.package]\nedition = \"2015\"\n",
            ),
            (
                "package.json",
                "{\"exports\": {\"./check\": \"./test/check.js\"}}",
                "{\"exports\": {\"./check\": \"./check.js\"}}",
            ),
            ("package.json", "{\"main\": \"./test/check.js\"}", "{\"main\": \"./check.js\"}"),
            (
                "deno.json",
                "{\"exports\": {\"./check\": \"./tests/check.ts\"}}",
                "{\"exports\": {\"./check\": \"./check.ts\"}}",
            ),
        ] {
            assert_eq!(part(path, base, own), PutBack::Part(base.to_owned()), "{path}: {own}");
        }
    }

    #[test]
    fn source_that_changes_how_tests_assert_is_not_believed_by_itself() {
        for (path, text) in [
            ("src/m.rs", "#[allow(unused_macros)] macro_rules! assert_eq { ($($t:tt)*) => {} }"),
            ("src/m.rs", "pub(crate) use fake as assert;"),
            ("src/add.h", "# define NDEBUG 1"),
            ("src/add.h", "#de\\\nfine NDEBUG 1"),
            ("src/add.h", "char a[] = R\"(\" /*)\";\n#define NDEBUG 1\nchar b[] = \"*/\";"),
            ("src/m.rs", "use fake::{\n    a as\n    assert_eq};"),
        ] {
            let done = of(path, Some(""), Some(text));
            assert!(matches!(done, PutBack::Inseparable(_)), "{text}: {done:?}");
            assert_eq!(of(path, Some(text), Some(text)), PutBack::Keep, "{text}");
        }
        for (path, text) in [
            ("src/m.rs", "macro_rules! assert_sorted { () => { assert_eq!(1, 1) } }"),
            ("src/add.h", "#define ADD_H\n#ifndef NDEBUG"),
            ("src/add.h", "int add(int, int); /* define NDEBUG to leave the check out */"),
            ("src/m.rs", "fn f() { 'a' } // callers treat 0 as panic"),
        ] {
            assert_eq!(of(path, None, Some(text)), PutBack::Keep, "{text}");
        }
        for (text, done) in [
            ("package org.junit;\nclass Assert {}", PutBack::Deciding),
            ("package a;\nclass Assert {}", PutBack::Keep),
        ] {
            assert_eq!(of("src/main/java/a/Assert.java", None, Some(text)), done, "{text}");
        }
        let script = "[package]\nname = 'b'\nbuild = 'src/b.rs'\n";
        assert_eq!(of("b/Cargo.toml", None, Some(script)), PutBack::Deciding);
        for path in ["src/features.h", "src/sys/cdefs.h", "include/stdc-predef.h"] {
            assert_eq!(of(path, None, Some("")), PutBack::Deciding, "{path}");
        }
    }

    #[test]
    fn tests_among_the_code_are_those_that_a_runner_may_find() {
        for (path, base) in [
            ("src/db.py", "class TestimonialView:\n    def get(self):\n        return 1\n"),
            ("src/db.py", "class Db:\n    def test_connection(self):\n        return 1\n"),
            ("src/db.go", "func TestConnection(x int) int {\n\treturn 1\n}\n"),
            ("src/db.js", "function describe(e) {\n  return 1;\n}\n"),
            ("src/db.js", "if (pattern.test(\"x\")) {\n  return 1;\n}\n"),
            ("src/db.js", "out.push(it(x - 1));\n/* it('a', () => { 1 }) */\n"),
            ("src/db.rb", "def describe x\n  1\nend\n"),
            ("src/db.rb", "raise \"please specify a name\" if x.nil? && 1\n"),
            ("src/db.rb", "=begin\n=end\ndef test_connection\n  1\nend\n"),
            ("src/Db.java", "@PropertySource(\"a\")\nclass Db {\n    int a = 1;\n}\n"),
            (
                "src/db.py",
                "import pytest\n\n@a\ndef b():\n    c(1)\n\n@a(1)\nclass D:\n    def test_e():\n        pass\n",
            ),
            ("src/Db.java", "@Test void a() {\n    b();\n}\nint c = 1;\n"),
            ("src/Db.cs", "return weights[Factor] - 1;\n"),
        ] {
            let done = of(path, Some(base), Some(&base.replace('1', "2")));
            assert_eq!(done, PutBack::Keep, "{path}: {base}");
        }
        for (path, base) in [
            (
                "src/db.py",
                "class A(TestCase):\n    def test_a(self):\n        b = \"\"\"\nc\n\"\"\"\n        d(1)\n",
            ),
            ("src/db.py", "import pytest\n\ndef test_a():\n    b = [\nc,\n    ]\n    d(1)\n"),
            ("src/db.js", "it('a', () => {\n  b(`\n`);\n  c(1);\n});\n"),
            ("src/db.js", "it (\n  // a\n  'a', () => {\n    b(1);\n  });\n"),
            (
                "src/db.py",
                "import pytest\n\n@a(\n    (1, 2),\n)\n# b\ndef test_a(c, d):\n    e(c)\n",
            ),
            (
                "src/Db.java",
                "@ParameterizedTest\n@CsvSource({\n    \"2\"\n})\nvoid b(int c) {\n    d(c, 1);\n}\n",
            ),
            (
                "src/Db.java",
                "@CsvSource(\"\"\"\n    1\n    \"\"\")\n/* a\n */\n@Test void b(int c) {\n    d(c);\n}\n",
            ),
            ("src/db.rb", "describe A do\n  it \"b\" do\n    c 1\n  end\nend\n"),
            ("src/Db.cs", "a = @\"\\\" + \"/*\";\n[Fact]\nvoid b() {\n    c(1);\n}\n/* */\n"),
            ("src/Db.kt", "a = \"\"\"\\\"\"\"\n@Test\nfun b() {}\nc(1)\n"),
            ("src/Db.java", "@Test // a\n\nvoid b() {\n    c(1);\n}\n"),
        ] {
            let done = of(path, Some(base), Some(&base.replace('1', "2")));
            assert_eq!(done, PutBack::Inseparable(MIXED), "{path}: {base}");
        }
    }

    #[test]
    fn tests_that_are_added_among_the_source_are_taken_out() {
        const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";
        let code = "fn a() {}\n";
        let with_tests = format!("{code}{TESTS}");
        let without = PutBack::AddedInnerTests(code.to_owned());
        assert_eq!(of("src/b.rs", None, Some(&with_tests)), without);
        assert_eq!(of("src/a.rs", Some(""), Some(&with_tests)), without);
        assert_eq!(of("src/a.rs", Some(&with_tests), Some(&with_tests)), PutBack::Keep);
        let inner = format!("mod b {{\n    {}}}\n", TESTS.replace('\n', "\n    "));
        let loose = "#[test]\nfn t() {}\n";
        for (own, left) in [
            (inner.clone(), "mod b {\n    }\n"),
            (format!("{TESTS}\n{inner}\n{TESTS}"), "mod b {\n    }\n"),
            (format!("fn a() {{}}\n\n{loose}"), code),
            (format!("// a\n{loose}fn b() {{}}\n"), "// a\nfn b() {}\n"),
            (loose.to_owned(), ""),
            (format!("{loose}{}", loose.replace("fn t", "fn s")), "\n"),
        ] {
            let done = of("src/lib.rs", Some(""), Some(&own));
            assert_eq!(done, PutBack::AddedInnerTests(left.to_owned()), "{own}");
        }
        let done = of("src/lib.rs", Some(""), Some("m! { #[test] fn t() {} }\n"));
        assert!(matches!(done, PutBack::Inseparable(_)), "{done:?}");
        let beside = of("src/a.rs", Some(TESTS), Some(&format!("{inner}{TESTS}")));
        assert_eq!(beside, PutBack::AddedInnerTests(format!("mod b {{\n    }}\n{TESTS}")));
    }

    #[test]
    fn tests_beside_code_are_put_back_where_that_is_exact() {
        const TESTS: &str = "#[cfg(test)]\nmod tests {\n    is(2);\n}\n";
        let base = format!("fn a() {{}}\n{TESTS}");
        let part = |text: String| PutBack::InnerTests(text);
        let cases = [
            (format!("fn b() {{}}\n{TESTS}"), PutBack::Keep),
            (format!("fn b() {{}}\n{TESTS}fn c() {{}}\n"), PutBack::Keep),
            (format!("const A: &[u8] = br\"\\\";\n{TESTS}"), PutBack::Keep),
            (
                format!("fn b() {{}}\n{}", TESTS.replace('2', "1")),
                part(format!("fn b() {{}}\n{TESTS}")),
            ),
            ("fn b() {}\n".to_owned(), part(format!("fn b() {{}}\n\n{TESTS}"))),
        ];
        for (after, expected) in cases {
            assert_eq!(of("src/a.rs", Some(&base), Some(&after)), expected, "{after}");
        }
        for after in [
            format!("fn a() {{}}\n#[cfg(any())]\nmod b {{}}\n{TESTS}"),
            format!("#![cfg(windows)]\nfn a() {{}}\n{TESTS}"),
            format!("{TESTS}#[cfg(any())]\n"),
            format!("m!(const A: u8 = 1;\n{TESTS});\n"),
            format!("fn a() {{\n{TESTS}"),
        ] {
            let done = of("src/a.rs", Some(&base), Some(&after));
            assert!(matches!(done, PutBack::Inseparable(_)), "{after}: {done:?}");
        }
        // Tests that the attempt hides run all the same, because they are put back.
        for (before, after) in
            [("fn a() {}\n/*\n", "*/\n"), ("const A: &[u8] = br\"\\\"; /* \";\n", "*/\n")]
        {
            let own = format!("{before}{TESTS}{after}");
            let done = of("src/a.rs", Some(&base), Some(&own));
            assert_eq!(done, part(format!("{own}\n{TESTS}")));
        }
        let off = of("src/a.rs", Some(&base), Some(&format!("mod off {{\n{TESTS}}}\n")));
        assert_eq!(off, part(format!("mod off {{\n}}\n\n{TESTS}")));
        // Each test is put back by itself, wherever it is.
        let file = |code: &str, value: &str| {
            format!(
                "#[cfg(all(test, unix))]\nmod a {{\n    const A: &str = r#\"{{\n}}\"#;\n    is({value});\n}}\n\
                 {code}\n#[cfg(test)]\nmod b {{\n    is({value});\n}}\nmod c {{\n    {code}\n    #[test]\n    \
                 fn d() {{\n        is({value})\n    }}\n}}\n"
            )
        };
        let done = of("src/a.rs", Some(&file("x!();", "1")), Some(&file("y!();", "2")));
        assert_eq!(done, part(file("y!();", "1")));
        for either in
            ["#[cfg(any(test, a))]\nfn b() {{ 1 }}\n", "#[cfg(not(test))]\nfn b() {{ 1 }}\n"]
        {
            let done = of("src/a.rs", Some(either), Some(&either.replace('1', "2")));
            assert_eq!(done, PutBack::Keep, "{either}");
        }
        let gone = of("src/a.rs", Some("#[test]\nfn t() {}\n"), None);
        assert!(matches!(gone, PutBack::Inseparable(_)), "{gone:?}");
        let dropped = of("src/lib.rs", Some("#[cfg(test)]\nmod tests;\n"), Some("fn a() {}\n"));
        assert!(matches!(dropped, PutBack::Inseparable(_)), "{dropped:?}");
        let kept = of(
            "src/lib.rs",
            Some("#[cfg(test)]\nmod tests;\n"),
            Some("fn a() {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more;\n"),
        );
        assert_eq!(kept, PutBack::Keep);
        let off = of("src/lib.rs", Some("mod a;\n"), Some("#[cfg(any())]\nmod a;\n"));
        assert!(matches!(off, PutBack::Inseparable(_)), "{off:?}");
        let rename = |name: &str| format!("{{\"name\": \"{name}\"}}");
        let renamed = of("package.json", Some(&rename("a")), Some(&rename("chai")));
        assert_eq!(renamed, PutBack::Part(rename("a")));
        assert_eq!(of("src/a.js", Some("a"), Some("f({ skip: true })")), PutBack::Keep);
        let loose = |value: &str, expected: &str| {
            format!("fn a() {{ {value} }}\n#[test]\nfn t() {{\n    is({expected});\n}}\n")
        };
        let change = |to: String| of("src/a.rs", Some(&loose("1", "2")), Some(&to));
        assert_eq!(change(loose("2", "2")), PutBack::Keep);
        assert_eq!(change(loose("1", "1")), part(loose("1", "2")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_text_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "'", "'\\", "\\", "é", "\"", "r#\"", "b'", "/*", "*/", "//", "\n", "{", "}", "[", "]", "(", ")", "=", ":", ",", "a", "1", "#", "$", "<", ">", "%", "@", " ", "\u{0}",
            "#[cfg(test)]\nmod t {", "#[test]", "macro_rules! assert", "dependencies", "def deps do", "require (", "gem '", "srcs = [", "<dependency>", "[package]", "it(", "def test_",
        ]), 0..20)) {
            let after = parts.concat();
            let before = parts[parts.len() / 2..].concat();
            let extensions = ALL.iter().flat_map(|ecosystem| ecosystem.extensions);
            let sources = extensions.map(|extension| format!("src/a.{extension}"));
            let manifests = [
                "Cargo.toml", "package.json", "deno.json", "composer.json", "pyproject.toml", "setup.cfg", "go.mod", "Gemfile", "a.gemspec",
                "mix.exs", "build.gradle", "pom.xml", "a.csproj", "CMakeLists.txt", "BUILD", "Makefile",
            ];
            for path in sources.chain(manifests.map(str::to_owned)) {
                of(&path, None, Some(&after));
                of(&path, Some(&before), Some(&format!("{after}\n#[cfg(test)]\nmod t {{\n")));
            }
        }
    }
}
