//! Source files of JavaScript that settings of tools load: `config/base.js` for `jest.config.js`,
//! `setup.js` for the key `jest` of a package.json.
use std::collections::BTreeSet;

use crate::ecosystems::javascript;
use crate::ecosystems::languages::is_hidden_or_installed;
use crate::ecosystems::loaded::joined_texts;
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{directory_of, resolved};

/// The maximum number of files that are followed.
const MOST_FILES: usize = 100;

/// The extensions that Node tries for the path of a module, and jest's name for a preset.
const EXTENSIONS: [&str; 8] =
    ["", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.ts", "/jest-preset.js"];

/// The files that code in settings loads, directly or through other files. `text` reads a file.
pub fn loaded_by_settings(
    files: &BTreeSet<String>,
    text: impl Fn(&str) -> String,
) -> BTreeSet<String> {
    let is_code = |path: &str| javascript::ECOSYSTEM.has_source(path);
    let settings = files.iter().filter(|path| {
        is_code(path) && javascript::ECOSYSTEM.is_decisive(path) && !is_hidden_or_installed(path)
    });
    let mut next: Vec<String> = settings.take(MOST_FILES).cloned().collect();
    next.extend(files.get(javascript::MANIFEST).cloned());
    let mut found = BTreeSet::new();
    while let Some(loader) = next.pop() {
        let directory = directory_of(&loader);
        let text = match loader == javascript::MANIFEST {
            true => javascript::texts_for_tools(&text(&loader)),
            false => text(&loader),
        };
        for line in text.lines() {
            let joined = joined_texts(line);
            for word in quoted_words(line).chain(quoted_words(&joined)) {
                let Some(path) = path_in(directory, word) else { continue };
                let names = EXTENSIONS.map(|extension| format!("{path}{extension}"));
                let Some(file) = names.into_iter().find(|name| files.contains(name)) else {
                    continue;
                };
                if !is_code(&file) || javascript::ECOSYSTEM.is_decisive(&file) {
                    continue;
                }
                if found.insert(file.clone()) {
                    next.push(file);
                }
            }
            if found.len() > MOST_FILES {
                return found;
            }
        }
    }
    found
}

/// The path that a text in a file of `directory` may mean; `None` if it has no slash.
fn path_in(directory: &str, text: &str) -> Option<String> {
    match text.strip_prefix("<rootDir>/") {
        Some(path) => resolved("", path),
        None if text.contains('/') => resolved(directory, text),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn settings_load_files_through_other_files() {
        let texts = BTreeMap::from([
            ("jest.config.js", "const base = require('./config/jest');\n"),
            ("config/jest.js", "const unit = require(path.join(__dirname, 'more', 'unit'));\n"),
            ("config/more/unit.js", "exports.setupFiles = ['<rootDir>/src/setup', 'other'];\n"),
            ("src/setup/index.js", ""),
            ("src/calc.js", "require('./other')"),
            ("src/other.js", ""),
            ("setup.js", ""),
            ("main.js", ""),
            ("package.json", r#"{"jest": {"a": ["./setup.js"]}, "main": "./main.js"}"#),
        ]);
        let files: BTreeSet<String> = texts.keys().map(|path| (*path).to_owned()).collect();
        let found = loaded_by_settings(&files, |path| texts[path].to_owned());
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            ["config/jest.js", "config/more/unit.js", "setup.js", "src/setup/index.js"]
        );
    }
}
