//! How the files and commands of a base use a file that is not code: as a document or as data.
use crate::ecosystems::base_lines::LineSearch;
use crate::ecosystems::base_project::{BaseProject, is_code, only_checks};
use crate::ecosystems::languages::language_of;
use crate::ecosystems::loading::listing::lists_files;
use crate::ecosystems::loading::{LoadedName, is_imported_in};
use crate::ecosystems::paths::{below, directory_of, file_name, names_kind};
use crate::ecosystems::touched::is_test_path;
use crate::ecosystems::{dependencies, documents, test_data};
use crate::error::Result;

impl BaseProject<'_> {
    /// True if tests read a source file as data, and nothing else in the base uses it. `lines` are
    /// the lines that contain the file's name.
    pub(super) fn is_test_data(&self, path: &str, lines: &[(String, String)]) -> Result<bool> {
        let is_read = |other: &str, line: &str| {
            line.contains(file_name(path))
                && test_data::is_read_in(other, line, path, self.runs(other))
        };
        let mut tests = lines.iter().filter(|(test, line)| is_read(test, line)).peekable();
        let is_used = |lines: &[(String, String)]| {
            lines.iter().any(|(other, line)| {
                test_data::is_used_in(other, line, path) && !is_read(other, line)
            })
        };
        if tests.peek().is_none() || self.begins_crate(path)? || is_used(lines) {
            return Ok(false);
        }
        let more = self.lines.find(LineSearch::of(test_data::words_of_use(path)))?;
        // A data file of the tests may contain the name although no test reads the file.
        let is_code = tests.all(|(test, _)| test_data::is_data(test))
            && more.iter().any(|(test, line)| is_imported_in(test, line, path));
        Ok(!is_code && !is_used(&more))
    }

    /// True if Cargo compiles a file as the root of a crate, by its place in a package.
    fn begins_crate(&self, path: &str) -> Result<bool> {
        let is_rust = language_of(path).is_some_and(|language| language.declares_modules());
        if !is_rust || LoadedName::of(path).is_some() {
            return Ok(false);
        }
        let directory = directory_of(path);
        let sources = directory.strip_suffix("/bin").unwrap_or(directory);
        let package = sources.strip_suffix("src").filter(|p| p.is_empty() || p.ends_with('/'));
        let code = self.code()?;
        Ok(package.is_some_and(|package| code.files.contains(&format!("{package}Cargo.toml"))))
    }

    /// True if a file is a document that neither a file of the base nor a command uses. A new
    /// document may have an effect by its name alone, because a test may look for it, or because it
    /// may be a target of make. So a new document does not count if commands or tests look for it,
    /// or if its directory is new and the base names the directory.
    pub fn is_document(&self, path: &str) -> Result<bool> {
        let code = self.code()?;
        if !documents::is_document_by_name(path)
            || code.programs.contains(path)
            || !code.files.contains(path) && self.is_marker(path)?
            || !code.has_directory(directory_of(path)) && self.names_new_directory(path)?
        {
            return Ok(false);
        }
        Ok(!self.is_used(path, false)?)
    }

    /// True if `is` is true for one of these lines:
    /// * the lines of the base that contain one of these words, except the lines of documents;
    /// * the lines of the commands and of the files that they run. For these, `is` gets no file.
    pub(super) fn any_line(
        &self,
        words: Vec<String>,
        is: impl Fn(Option<&str>, &str) -> bool,
    ) -> Result<bool> {
        let found = self.lines.find(LineSearch::of(words))?;
        let of_commands = self.markers()?.lines.iter().any(|(_, line)| is(None, line));
        Ok(of_commands
            || found
                .iter()
                .any(|(file, line)| !documents::is_only_read(file) && is(Some(file), line)))
    }

    /// True if a manifest or lock file is only data of tests. Its directory has no source of the
    /// file's ecosystem. Tests, their settings or the commands name the file, or list its
    /// directory.
    pub fn is_manifest_as_data(&self, path: &str) -> Result<bool> {
        let Some(ecosystem) = dependencies::ecosystem_of(file_name(path)) else { return Ok(false) };
        let code = self.code()?;
        let directory = code.nearest_directory(path);
        let is_source =
            |file: &String| below(file, directory).is_some() && ecosystem.has_source(file);
        let has_source = code.files.iter().chain(&code.submodules).any(is_source);
        Ok(!directory.is_empty() && !has_source && self.is_used(path, true)?)
    }

    /// True if a line of the base or of the commands uses the document at `path`. With
    /// `is_manifest`, true if such a line uses the manifest at `path` as data.
    fn is_used(&self, path: &str, is_manifest: bool) -> Result<bool> {
        let words = documents::words_for(path);
        self.any_line(words.clone(), |file, line| {
            // A line of a settings file counts as a line of a test if it contains `test`, e.g. in
            // the name of the tests' directory.
            let tests = file
                .is_none_or(|file| is_test_path(file) || !is_code(file) && line.contains("test"));
            let runs = if is_manifest { tests } else { file.is_none_or(is_code) };
            let checks = file.is_none() && only_checks(line);
            let names_directory = documents::lists(line, path);
            let lists = if tests {
                names_directory || !checks && names_kind(line, path)
            } else {
                // The directory may be in a constant, so any line of the code counts.
                !is_manifest
                    && names_directory
                    && file.is_some_and(|file| is_code(file) && lists_files(&self.text(file)))
            };
            words.iter().any(|word| line.contains(word.as_str()))
                && !(is_manifest && dependencies::are_installed_in(line))
                && (documents::is_use(line, &words, runs) || lists)
        })
    }
}
