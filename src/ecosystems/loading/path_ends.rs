//! The ends of paths that lines of tests name.
use crate::ecosystems::loading::code_lines::as_constant;
use crate::ecosystems::markers::quoted_words;
use crate::ecosystems::paths::{below, directory_of, file_name, is_in_path};

/// Words of lines that ask for a file which is looked for in several directories, with `|` between
/// them.
const SEARCHING: &str =
    "$(which |LookPath|command -|has_include|if hash |if type |if which |which(";

/// True if a line of a test has the end of a path as a word. The word may begin with `../`, and may
/// lack the extension. It may also be a module: `calc.local`, `Calc::Local` and `Calc\Local` for
/// `lib/calc/local.ex`, or `from calc import local`.
pub fn names_end_of(test: &str, line: &str, path: &str) -> bool {
    let directory = path.len() - file_name(path).len();
    let stem = path[directory..].rfind('.').map_or(path, |dot| &path[..directory + dot]);
    let ends = [format!("/{}", as_constant(path)), format!("/{}", as_constant(stem))];
    let line = with_slashes(line);
    let imported = imported_names(&line);
    let words = line.split(|c| !is_in_path(c));
    // A word without dot and slash may be an identifier, so it counts only in quotes.
    let words = words.filter(|word| word.contains(['.', '/'])).chain(quoted_words(&line));
    let mut words = words.chain(imported.iter().map(String::as_str));
    words.any(|word| {
        let is_relative = word.starts_with('.') && below(test, directory_of(path)).is_some();
        let word = word.trim_start_matches(['.', '/']);
        // A file name without a directory may mean a file in another directory. With one of
        // `SEARCHING` it counts, because the file is looked for in several directories.
        let is_name = !word.contains('/') && (word == file_name(path) || !word.contains('.'));
        if is_name && path.contains('/') && !is_relative && !asks_in_directories(&line) {
            return false;
        }
        let word = as_constant(word);
        let own = [format!("/{word}"), format!("/{}", word.replace('.', "/"))];
        !word.is_empty() && own.iter().any(|own| ends.iter().any(|end| end.ends_with(own)))
    })
}

/// A line with slashes in the names of modules: `Calc/Local` for `Calc::Local` and `Calc\Local`. A
/// backslash before another character than a capital may be that of `\n` or `\"`.
fn with_slashes(line: &str) -> String {
    let line = line.replace("::", "/").replace("\\\\", "/");
    let mut parts = line.split('\\');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.push(if part.starts_with(char::is_uppercase) { '/' } else { '\\' });
        found.push_str(part);
    }
    found
}

/// True if a line asks whether a compiler finds a header, or the system finds a program.
fn asks_in_directories(line: &str) -> bool {
    SEARCHING.split('|').any(|word| line.contains(word))
}

/// `calc.local` for `from calc import local`, and `..local` for `from .. import local`.
fn imported_names(line: &str) -> Vec<String> {
    let rest = line.split_once("from ").and_then(|(_, rest)| rest.split_once(" import "));
    let Some((module, names)) = rest else { return Vec::new() };
    let names = names.split(|c: char| c.is_whitespace() || ",()".contains(c));
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| format!("{}.{name}", module.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_the_end_of_a_path() {
        let cases = [
            ("os.path.exists('src/quick.py')", "src/quick.py", true),
            ("exists('../src/quick')", "src/quick", true),
            ("find_spec(\"calc.local\")", "lib/calc/local.py", true),
            ("try { require('../src/local') } catch {}", "src/local.js", true),
            ("#if __has_include(\"local.h\")", "src/local.h", true),
            ("Code.ensure_loaded?(Calc.LocalPart)", "lib/calc/local_part.ex", true),
            ("command -v quick.sh && exit", "bin/quick.sh", true),
            ("class_exists(Core\\Hooks::class)", "src/Core/Hooks.php", false),
            ("class_exists('\\Core\\Hooks')", "src/Core/Hooks.php", true),
            ("sh(\"[ -e \\\"src/quick.py\\\" ]\")", "src/quick.py", true),
            ("class_exists(\"Core\\\\Hooks\")", "src/Core/Hooks.php", true),
            ("exists('quicker')", "src/quick.py", false),
            ("exists(tmp / 'quick.py')", "src/quick.py", false),
            ("exists('quick')", "quick", true),
            ("exists('other/quick.py')", "src/quick.py", false),
            ("from calc import add, local as l", "calc/local.py", true),
            ("from lib.calc import (local)", "lib/calc/local.py", true),
            ("from calc.core import local", "calc/local.py", false),
            ("eval { require Calc::Local; 1 }", "lib/Calc/Local.pm", true),
            ("from .. import quick", "src/quick.py", true),
            ("import('./quick.js').catch(f)", "src/quick.js", true),
            ("from .. import quick", "other/quick.py", false),
        ];
        for (line, path, expected) in cases {
            assert_eq!(names_end_of("src/tests/t", line, path), expected, "{path}: {line}");
        }
    }
}
