//! The description of an ecosystem, i.e. a language or a build tool. It answers questions about a
//! path, e.g. whether the path is a test.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::ecosystems::manifest::{EntryPoints, PutBackPart};
use crate::ecosystems::new_file::NewFile;
use crate::ecosystems::paths::file_name;
use crate::ecosystems::project::Detector;
use crate::ecosystems::recipe::Recipe;
use crate::ecosystems::test_names::is_name_of_test;
use crate::model::pattern::matches;

/// A language or a build tool. A field that does not apply keeps its value from
/// [`Ecosystem::NOTHING`].
pub struct Ecosystem {
    /// The functions that detect its projects' commands, in the order in which they are called.
    pub detectors: &'static [Detector],
    /// The extensions of its source files, without the dot. No two ecosystems share an extension.
    pub extensions: &'static [&'static str],
    /// The extensions of further source files. Each is a language of its own, for which no marks of
    /// tests are known.
    pub other_extensions: &'static [&'static str],
    /// The extensions of declarations. Type checkers read a declaration in place of a source file
    /// with the same name, or in place of a directory with this name.
    pub declarations: &'static [&'static str],
    /// True if a source file that is added at this place is surely nothing else: it is no test, it
    /// replaces no tool, and no tool loads it because of its name.
    pub is_source_if_new: fn(&NewFile<'_>) -> bool,
    /// The names of files that mark a directory as a project of this ecosystem, besides manifests.
    pub project_files: &'static [&'static str],
    /// The name of the file that makes a directory a package; empty if there is none.
    pub package_file: &'static str,
    /// The files in which its tools lock the dependencies of a manifest.
    pub lock_files: &'static [&'static str],
    /// True if the text of a lock file is only data. Some tools run their lock file as code.
    pub is_plain_lock: fn(&str) -> bool,
    /// The packages that a package can load.
    pub finds: PackagesFound,
    /// Gets the old and the new text of a manifest. Returns the directories, relative to the
    /// manifest, in which tools may now find a package that the manifest no longer names.
    pub found_instead: fn(&str, &str) -> Vec<String>,
    /// The characters that begin a comment line in a source file.
    pub comment: &'static str,
    /// The texts around a comment of several lines; empty if the language has none.
    pub block_comment: (&'static str, &'static str),
    /// The quotes around string literals. If one quote begins with another one, the longer quote
    /// comes first.
    pub quotes: &'static [&'static str],
    /// Gets the code before a place, and the text from there on. Returns the length of the raw
    /// string literal that begins there; in such a literal, a backslash is a character like any
    /// other. Returns `None` if no raw literal begins there, and `Some(None)` if it has no end, or
    /// if its end cannot be told.
    pub raw_text: fn(&str, &str) -> Option<Option<usize>>,
    /// True if a line that ends in a backslash goes on in the next one, even in a word.
    pub joins_lines: bool,
    /// Returns the content of a source file with blanks in place of comments and string literals,
    /// or `None` if it cannot be parsed. Set only if `quotes` is not enough to find the literals.
    pub code: Option<fn(&str) -> Option<String>>,
    /// The marks with which a test begins in a line of code (see `marks.rs`), with `|` between
    /// them.
    pub test_marks: &'static str,
    /// Gets the code of a file whose name is not that of a test, and the code of a marked part of
    /// it. True if a runner may find a test in this part.
    pub may_run: fn(&str, &str) -> bool,
    /// The marks in a line of code that skip tests, in the form of `test_marks`. A mark that is a
    /// comment counts in comments. Marks that begin with `def ` come first: each begins the
    /// definition of a hook that the runner calls to choose the tests. A change that adds such a
    /// hook cannot be compared with the base's tests.
    pub skip_marks: &'static str,
    /// Texts with `|` between them. If a file is not a test by its name, a skip mark counts only if
    /// the file has one of these texts or a test mark, because code of the product may have methods
    /// that are named like skip marks. Empty if skip marks occur only in tests.
    pub beside_skip_marks: &'static str,
    /// Two lists: the words that define the word after them (`define`), and names of the language or
    /// its library with which tests assert (`assert`).
    pub assertions: (&'static str, &'static str),
    /// Finds the parts for tests in a source file that may have them beside the code under test.
    /// Returns `None` for a text that cannot be read.
    pub inner_tests: Option<fn(&str) -> Option<TestParts>>,
    /// The extensions that only tests have.
    pub test_extensions: &'static [&'static str],
    /// The words with which the name of a test file begins, and those with which it ends; see
    /// [`is_name_of_test`].
    pub test_words: (&'static [&'static str], &'static [&'static str]),
    /// Patterns (see [`matches`]) for directories that hold tests or their data.
    pub test_directories: &'static [&'static str],
    /// Patterns, with blanks between them, for files in which any change may affect what is run. A
    /// pattern that ends in `/` matches all files below a directory of that name. Manifests are in
    /// `manifests` instead, because only a part of them may change what is run.
    pub decisive_files: &'static str,
    /// Patterns for the names of its manifests, with the function that restores the deciding part
    /// of such a manifest: settings, scripts, code.
    pub manifests: &'static [(&'static [&'static str], PutBackPart)],
    /// The names of manifests, and the function that finds the parts of the product that such a
    /// manifest names. Its other settings belong to tools. In other manifests, each value may name
    /// a part of the product.
    pub entry_points: &'static [(&'static str, EntryPoints)],
    /// True if a file at this path runs in place of the tool that a command names.
    pub shadows_tool: fn(&str) -> bool,
    /// True if a file that is added at this path with this text is loaded in place of a module that
    /// test runners use.
    pub shadows_library: fn(&str, &str) -> bool,
    /// The directories into which its tools install dependencies.
    pub installed: &'static [InstalledDirectory],
    /// The file in a project's root that names the dependencies, and the words of the command that
    /// downloads them and does nothing else.
    pub download: Option<(&'static str, &'static [&'static str])>,
    /// The files in a project's root that contain recipes, which may run further scripts.
    pub recipe_files: &'static [&'static str],
    /// The programs that run a recipe of `recipe_files` by its name.
    pub recipe_runners: &'static [&'static str],
    /// Returns the recipes in the text of a file of `recipe_files`. A program that gets no name
    /// runs the first recipe.
    pub recipes: fn(&str) -> Vec<Recipe>,
}

/// The packages that a package can load when it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PackagesFound {
    /// Only the packages that the package's own manifest names.
    Named,
    /// All installed packages, so a package that an attempt adds may replace another package.
    Installed,
    /// All installed packages, and each member of the workspace by the name that its manifest gives
    /// it.
    InstalledAndMembers,
}

/// A directory into which tools install dependencies, beside a manifest.
pub struct InstalledDirectory {
    pub directory: &'static str,
    /// A project with one of these files needs the directory.
    pub manifests: &'static [&'static str],
    /// True if files in the directory contain their own absolute path, so that a copy still leads
    /// to the original.
    pub is_tied_to_its_place: bool,
}

/// The parts of a source file that only tests compile.
#[derive(Default)]
pub struct TestParts {
    /// The scope of the parts that are in no module of the file.
    pub root: u64,
    /// The parts, in their order. None is inside another one.
    pub parts: Vec<TestPart>,
    /// The imports that only tests compile.
    pub imports: Vec<TestImport>,
    /// The modules in files of their own that the product compiles, each with its scope and a hash of
    /// its attributes.
    pub modules: BTreeMap<(u64, String), u64>,
}

/// An import that only tests compile.
pub struct TestImport {
    /// The place in the text, with attributes.
    pub range: Range<usize>,
    /// The number of the scope, as for [`TestPart`].
    pub scope: u64,
    /// The imported items, each with its path and its new name: `a::b`, `a::c as d`.
    pub items: Vec<String>,
}

/// A part of a source file that only tests compile.
pub struct TestPart {
    /// The place in the text, with attributes.
    pub range: Range<usize>,
    /// A number for the code around the part: modules with their conditions, macros, other code.
    /// Parts of two texts are in the same scope if they have the same number.
    pub scope: u64,
    /// A name that only one part of the scope has; parts that are not separable may have any name.
    pub name: String,
    /// True for a test, or a module of tests; false for other code that tests use.
    pub is_test: bool,
    /// True if the part can be put back and taken out by itself.
    pub is_separable: bool,
}

impl Ecosystem {
    /// An ecosystem without any property: the value of every field that is left out.
    pub const NOTHING: Ecosystem = Ecosystem {
        detectors: &[],
        extensions: &[],
        other_extensions: &[],
        declarations: &[],
        is_source_if_new: |file| file.is_inside_known_code() && !file.has_name_of_a_test(),
        project_files: &[],
        package_file: "",
        lock_files: &[],
        is_plain_lock: |_| true,
        finds: PackagesFound::Installed,
        found_instead: |_, _| Vec::new(),
        comment: "",
        block_comment: ("", ""),
        quotes: &["\"", "'"],
        raw_text: |_, _| None,
        joins_lines: false,
        code: None,
        test_marks: "",
        may_run: |_, _| true,
        skip_marks: "",
        beside_skip_marks: "",
        assertions: ("", ""),
        inner_tests: None,
        test_extensions: &[],
        test_words: (&[], &["test"]),
        test_directories: &[],
        decisive_files: "",
        manifests: &[],
        entry_points: &[],
        shadows_tool: |_| false,
        shadows_library: |_, _| false,
        installed: &[],
        download: None,
        recipe_files: &[],
        recipe_runners: &[],
        recipes: |_| Vec::new(),
    };

    /// True if a file at this path is a source file of this ecosystem.
    pub fn has_source(&self, path: &str) -> bool {
        path.rsplit_once('.').is_some_and(|(_, extension)| self.extensions.contains(&extension))
    }

    /// The texts of the parts for tests that a source file has beside the code; `None` if they
    /// cannot be told from the code.
    pub fn inner_tests_of<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let read = self.inner_tests?(text)?;
        Some(read.parts.into_iter().map(|part| &text[part.range]).collect())
    }

    /// The lines of a source file that only tests compile, without blanks around them; none if they
    /// cannot be told from the code.
    pub fn lines_for_tests<'t>(&self, text: &'t str) -> BTreeSet<&'t str> {
        let Some(read) = self.inner_tests.and_then(|read| read(text)) else {
            return BTreeSet::new();
        };
        let ranges = read.parts.into_iter().map(|part| part.range);
        let ranges = ranges.chain(read.imports.into_iter().map(|import| import.range));
        ranges.flat_map(|range| text[range].lines()).map(str::trim).collect()
    }

    /// True if a path belongs to a test or to a test's data, by its name. The last part counts as a
    /// directory, too, because a submodule or a symlink may have a test directory's name. `name` is
    /// the file's name before and after its last dot. The caller splits it once for all ecosystems,
    /// because a base has many paths.
    pub fn is_test_path(&self, path: &str, name: Option<(&str, &str)>) -> bool {
        let mut patterns = self.test_directories.iter();
        patterns.any(|pattern| path.split('/').any(|part| matches(pattern, part)))
            || name.is_some_and(|(stem, extension)| {
                let mut sources = self.extensions.iter().chain(self.other_extensions);
                self.test_extensions.contains(&extension)
                    || sources.any(|own| *own == extension)
                        && is_name_of_test(stem, self.test_words)
            })
    }

    /// The function that restores the deciding part of a manifest; `None` if a file of this name is
    /// not a manifest.
    pub fn manifest(&self, name: &str) -> Option<PutBackPart> {
        let has_name = |patterns: &[&str]| patterns.iter().any(|pattern| matches(pattern, name));
        self.manifests.iter().find(|(names, _)| has_name(names)).map(|(_, part)| *part)
    }

    /// The function that finds the parts of the product in a manifest of this name.
    pub fn entry_points_of(&self, name: &str) -> Option<EntryPoints> {
        self.entry_points.iter().find(|(own, _)| *own == name).map(|(_, find)| *find)
    }

    /// True if any change of a file at this path may change what is run.
    pub fn is_decisive(&self, path: &str) -> bool {
        let name = file_name(path);
        (self.shadows_tool)(path)
            || self.decisive_files.split_ascii_whitespace().any(|pattern| {
                match pattern.strip_suffix('/') {
                    Some(_) => path.starts_with(pattern) || path.contains(&format!("/{pattern}")),
                    None => matches(pattern, name),
                }
            })
    }
}
