//! The parts that lines of code have in many languages: comments, words that load modules, and names
//! that code builds.
use crate::ecosystems::paths::is_in_name;

/// The option with which an interpreter runs a module: `python -m calc`, `["-m", "calc"]`.
pub const MODULE_OPTIONS: [&str; 3] = ["-m ", "\"-m\"", "'-m'"];

/// In C, a line that begins with `#` and one of these words is no comment.
const DIRECTIVES: [&str; 5] = ["define", "el", "if", "include", "pragma"];

/// With these words, code names its own directory.
pub const OWN_DIRECTORY: [&str; 8] = [
    "BASH_SOURCE",
    "FindBin",
    "__DIR__",
    "__FILE__",
    "__dir__",
    "__dirname",
    "__file__",
    "__path__",
];

/// The Rust keyword that adds a file to a crate; `use` only names what is already in the crate.
pub const DECLARING: &str = "mod ";

/// If a line of the product loads a module by its name, the line contains one of these words.
pub const LOADS: &str = "
    alias autoload from import import_module include load mod require require_relative use";

/// True if a line of Python runs a module: by an option of the interpreter, or by `runpy`.
pub fn runs_module(line: &str) -> bool {
    line.contains("run_module") || MODULE_OPTIONS.iter().any(|option| line.contains(option))
}

/// True if a line of code names the directory of its own file.
pub fn names_own_directory(line: &str) -> bool {
    OWN_DIRECTORY.iter().any(|word| line.contains(word))
}

/// True if a line has a word with which code loads a module.
pub fn has_loading_word(line: &str) -> bool {
    const BEGINNINGS: [&str; 6] = ["autoload", "import", "include", "load", "require", "run_path"];
    const WORDS: [&str; 6] = ["__import__", "alias", "from", "mod", "use", "using"];
    runs_module(line)
        || line.split(|c| !is_in_name(c)).any(|word| {
            WORDS.contains(&word) || BEGINNINGS.iter().any(|begin| is_word_or_longer(word, begin))
        })
}

/// True for `load`, `load_file` and `loadFile` if `begin` is `load`, but not for `loading`.
fn is_word_or_longer(word: &str, begin: &str) -> bool {
    word.strip_prefix(begin).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|c: char| c == '_' || c.is_uppercase())
    })
}

/// A line without the comment at its end. A mark in an open quote begins none.
pub fn without_comment(line: &str) -> &str {
    let mut is_quoted = false;
    let mut has_code = false;
    for (at, c) in line.char_indices() {
        let rest = &line[at + c.len_utf8()..];
        let is_mark = rest.starts_with('#') || rest.starts_with("//");
        if c.is_whitespace() && has_code && !is_quoted && is_mark {
            return &line[..at];
        }
        is_quoted ^= "\"'`".contains(c);
        has_code |= !c.is_whitespace();
    }
    line
}

/// True for a comment, but not for an attribute of Rust or an include of C.
pub fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.strip_prefix('#');
    ["//", "/*", "*", "-- "].iter().any(|start| line.starts_with(start))
        || rest.is_some_and(|rest| {
            let is_directive = rest.starts_with(['[', '!'])
                || DIRECTIVES.iter().any(|word| rest.starts_with(word));
            !is_directive
        })
}

/// The extension at the end of a name that code builds: `json` for `" + name + ".json"`.
pub fn extension_after(text: &str) -> Option<&str> {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    // After a comma follows the next argument.
    let (before, rest) = text.split(',').next()?.split_once('.')?;
    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    let is_name =
        before.ends_with(|c: char| QUOTES.contains(&c) || is_in_name(c) || "}])".contains(c));
    let is_end = is_name && rest[end..].starts_with(QUOTES) || before.ends_with('*');
    (is_end && end > 0).then_some(&rest[..end])
}

/// Writes `json_parser` and `JSONParser` as `jsonparser`.
pub fn as_constant(name: &str) -> String {
    name.replace(['_', '-'], "").to_lowercase()
}
