//! The state of a search for the files that commands run.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::ecosystems::languages::language_of;
use crate::ecosystems::paths::{directories_above, file_name};
use crate::error::Result;
use crate::model::shell::{Word, WordRole, script_lines};

/// The maximum number of words to which one word is expanded, and of directories at which a path
/// may begin.
pub(super) const MOST_WORDS: usize = 100;

/// The maximum number of variables that are followed from one to another.
pub(super) const MOST_LEVELS: usize = 4;

/// The files of a tree, by the names with which commands may name them.
pub struct TreeFiles<'a> {
    pub(super) paths: Vec<&'a str>,
    pub(super) directories: BTreeSet<&'a str>,
    pub(super) by_name: HashMap<&'a str, Vec<&'a str>>,
    /// The source files, by their name without extension.
    pub(super) by_stem: HashMap<&'a str, Vec<&'a str>>,
    pub(super) links: BTreeSet<&'a str>,
    pub(super) text: &'a dyn Fn(&str) -> Result<Option<String>>,
}

impl<'a> TreeFiles<'a> {
    /// The files at these paths; the flag is true for a symbolic link. `text` reads the file at a
    /// path, even if the path leads through links; it returns `None` if there is no file.
    pub fn of(
        files: impl Iterator<Item = (&'a str, bool)>,
        text: &'a dyn Fn(&str) -> Result<Option<String>>,
    ) -> TreeFiles<'a> {
        let files: Vec<(&str, bool)> = files.collect();
        let links = files.iter().filter(|(_, is_link)| *is_link).map(|(path, _)| *path).collect();
        let paths: Vec<&str> = files.into_iter().map(|(path, _)| path).collect();
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut by_stem: HashMap<&str, Vec<&str>> = HashMap::new();
        for path in &paths {
            by_name.entry(file_name(path)).or_default().push(path);
            if let Some((stem, _)) = file_name(path).rsplit_once('.')
                && language_of(path).is_some()
            {
                by_stem.entry(stem).or_default().push(path);
            }
        }
        let directories = paths.iter().flat_map(|path| directories_above(path)).collect();
        TreeFiles { paths, directories, by_name, by_stem, links, text }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.by_name.get(file_name(path)).is_some_and(|paths| paths.contains(&path))
    }

    /// True if a path leads to a file through a link to a directory.
    pub(super) fn has_by_link(&self, path: &str) -> Result<bool> {
        let is_below_link = directories_above(path).any(|above| self.links.contains(above));
        Ok(is_below_link && (self.text)(path)?.is_some())
    }
}

/// The files that commands name, as paths and as patterns with `*`.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The files that the commands run.
    pub run: BTreeSet<String>,
    /// The files that the commands compare with other files, and directories of such files.
    pub compared: BTreeSet<String>,
}

/// A text with commands.
#[derive(Default)]
pub(super) struct Text {
    /// The directory of the file.
    pub(super) directory: String,
    pub(super) lines: Vec<Line>,
    /// True for the oracle's commands themselves, not for the files that they run.
    pub(super) is_command: bool,
    pub(super) is_test: bool,
}

pub(super) struct Line {
    /// The runner and the name of the recipe; `None` if the line counts no matter which recipes
    /// run.
    pub(super) recipe: Option<(&'static str, String)>,
    pub(super) text: String,
}

pub(super) fn lines_of(script: &str, recipe: &Option<(&'static str, String)>) -> Vec<Line> {
    let lines = script_lines(script).into_iter();
    lines.map(|text| Line { recipe: recipe.clone(), text }).collect()
}

/// The context of a command.
#[derive(Clone, Default)]
pub(super) struct TextContext {
    /// The index of the text.
    pub(super) at: usize,
    /// The directory of the text's file.
    pub(super) directory: String,
    pub(super) is_command: bool,
    /// The words of the conditions (`[ -f x ]`) in a test file. They name the files that the test
    /// checks for before it runs them. `None` outside of test files.
    pub(super) optional: Option<BTreeSet<String>>,
    /// True if the line continues after one of its commands fails.
    pub(super) may_fail: bool,
    /// The words of the commands whose output another command of the same text reads. A formatter
    /// check compares a file with output that was made from the same file. Such a file is not
    /// expected output.
    pub(super) inputs: Vec<Word>,
}

/// The meaning of a word of a command.
#[derive(Clone, Copy, Default)]
pub(super) struct WordMeaning {
    /// True if the word can only be a file that is run: then the file counts whatever its name is.
    pub(super) is_program: bool,
    /// True if the word as a whole may be a path. If it is the path of a directory, it means the
    /// directory's main file.
    pub(super) is_whole: bool,
    /// True if the program runs the tests in a directory that it is given, not its main file.
    pub(super) collects: bool,
    /// True if the file counts even if it is missing.
    pub(super) takes_missing: bool,
    /// True if a shell runs the file.
    pub(super) by_shell: bool,
}

pub(super) struct Search<'a> {
    pub(super) files: &'a TreeFiles<'a>,
    pub(super) texts: Vec<Rc<Text>>,
    /// The files whose text was added already.
    pub(super) read: BTreeSet<String>,
    /// The values of variables, by the name and the index of the text that gives them.
    pub(super) values: BTreeMap<String, BTreeMap<usize, Vec<Word>>>,
    /// The variables that texts use.
    pub(super) used: BTreeSet<String>,
    /// The recipes that run, with their runner.
    pub(super) recipes: BTreeSet<(&'static str, String)>,
    /// The recipes in the texts, and those that are the first of their file, with their runner.
    pub(super) known_recipes: BTreeSet<(&'static str, String)>,
    pub(super) first_recipes: BTreeSet<(&'static str, String)>,
    /// The names of the scripts in the root's package.json; `None` before they are needed.
    pub(super) scripts: Option<BTreeSet<String>>,
    /// The directories at which paths in a text may begin, by the index of the text.
    pub(super) directories: BTreeMap<usize, BTreeSet<String>>,
    /// The directories to which commands of a text change, by the index of the text: `.` may mean
    /// each of them.
    pub(super) entered: BTreeMap<usize, BTreeSet<String>>,
    /// The texts, by their index, with a command that changes to an unknown directory: the value of
    /// a variable. A path in such a text may begin anywhere.
    pub(super) changes_anywhere: BTreeSet<usize>,
    /// Paths or patterns to which files are copied or written, each with the path or pattern of the
    /// originals. The role is `Name` for an exact copy, and `Content` if a text tool wrote it.
    pub(super) copies: BTreeSet<(String, String, WordRole)>,
    /// The number of substitutions around the text that is searched.
    pub(super) depth: usize,
    pub(super) found: NamedFiles,
}
