//! Names of files that code builds from the name of a directory.
use crate::ecosystems::loading::LoadedName;
use crate::ecosystems::loading::code_lines::{
    extension_after, has_loading_word, names_own_directory,
};
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{
    bare_name, directory_of, file_name, is_in_name, is_in_path, is_of_word, place_of_word,
    resolved, stem_and_extension,
};
use crate::ecosystems::touched::is_test_path;

/// Characters after a part of a name to which code adds another part.
const BUILDING: [char; 8] = ['"', '\'', '`', '$', '{', '#', '*', '%'];

impl LoadedName<'_> {
    /// True if a line of a test may load each file of the directory, because it builds the file's
    /// name: `import_module('scenarios.' + name)`.
    pub fn is_one_of_all_in(&self, test: &str, line: &str) -> bool {
        is_test_path(test)
            && self.is_directory_in(test, line)
            && !self.words().any(|word| place_of_word(line, word).is_some())
            && place_of_word(line, self.module).is_none()
    }

    /// True if a line of `other` builds file names from the directory's name, and perhaps from the
    /// beginning of the file's: `"./rules/" + name`, `f"app.commands.cmd_{name}"`.
    pub(super) fn is_directory_in(&self, other: &str, line: &str) -> bool {
        let path = directory_of(self.path);
        let directory = file_name(path);
        !directory.is_empty()
            && line.match_indices(directory).any(|(at, _)| {
                let rest = &line[at + directory.len()..];
                let rest = rest.strip_prefix("::").or(rest.strip_prefix(['/', '.']));
                let above = line[..at].rsplit(|c| !is_in_path(c)).next().unwrap_or_default();
                let is_here = !above.starts_with('.')
                    || resolved(directory_of(other), &format!("{above}{directory}"))
                        .is_none_or(|from| from == path);
                let begins_word = !line[..at].ends_with(is_in_name);
                begins_word && is_here && rest.is_some_and(|rest| self.is_built_by(rest))
            })
    }

    /// True if a name is built by code, and may be that of the file: `cmd_{name}`, `" + name`. If the
    /// name ends in an extension, it is the file's (`" + name + ".js"`).
    fn is_built_by(&self, text: &str) -> bool {
        let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
        let (begin, rest) = text.split_at(end);
        bare_name(self.path).starts_with(begin)
            && rest.starts_with(BUILDING)
            && extension_after(rest)
                .is_none_or(|extension| extension == stem_and_extension(self.path).1)
    }

    /// True if a line of `other` loads the file from its own directory, by a name that the line builds,
    /// or by the file's: `__dirname + "/app-" + name`.
    pub(super) fn is_beside_in(&self, other: &str, line: &str) -> bool {
        let is_beside = directory_of(self.path) == directory_of(other);
        // `import_module("." + name, "app.rules")` names the package beside the name.
        let package = file_name(directory_of(self.path));
        let mut packages = quoted_words(line).filter_map(|text| text.rsplit('.').next());
        self.builds_relative_names()
            && (is_beside || line.contains(package) && packages.any(|name| name == package))
            && self.is_relative_in(line)
            || is_beside
                && names_own_directory(line)
                && (quoted_words(line)
                    .any(|text| text.trim_start_matches(['.', '/']) == self.module)
                    || line.match_indices('/').any(|(at, _)| self.is_built_by(&line[at + 1..])))
    }

    /// True if a line loads a module by a name that it builds from its own package:
    /// `import_module("." + name, __package__)`, `require("./" + name)`.
    fn is_relative_in(&self, line: &str) -> bool {
        has_loading_word(line)
            && line.match_indices(['"', '\'', '`']).any(|(at, _)| {
                let text = line[at + 1..].strip_prefix('.');
                text.is_some_and(|text| self.is_built_by(text.trim_start_matches('/')))
            })
    }

    /// True if a line of a shell script loads or runs each file of a directory, or files whose names
    /// it builds: `. "$here/commands/$name.sh"`, `for f in "$LIB"/*.sh`.
    pub(super) fn is_built_in_shell(&self, other: &str, line: &str) -> bool {
        self.language.is_shell()
            && (self.is_directory_in(other, line)
                || line.match_indices('/').any(|(at, _)| {
                    let before = line[..at].trim_end_matches('"');
                    let of_variable = before.trim_end_matches(is_in_name);
                    let name = &line[at + 1..];
                    of_variable.ends_with(['$', '{'])
                        && self.is_built_by(name)
                        && name.contains(&format!(".{}", stem_and_extension(self.path).1))
                }))
    }
}
