//! The parts of paths, and the words of lines.

/// The names of files that stand for their directory.
pub const FOR_DIRECTORIES: [&str; 5] = ["__init__", "__main__", "index", "init", "mod"];

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of a file up to its first dot.
pub fn bare_name(path: &str) -> &str {
    let name = file_name(path);
    name.split_once('.').map_or(name, |(bare, _)| bare)
}

/// A path without its extension, and the extension, which is empty if the file's name has no dot.
pub fn stem_and_extension(path: &str) -> (&str, &str) {
    match file_name(path).rsplit_once('.') {
        Some((_, extension)) => (&path[..path.len() - extension.len() - 1], extension),
        None => (path, ""),
    }
}

/// The directory of a path; empty for a path in the root.
pub fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The directories above a path, outermost first, without the root.
pub fn directories_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash])
}

/// The path of a name in a directory, which may be the root.
pub fn inside(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The rest of a path that is below a directory, which may be the root.
pub fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    if directory.is_empty() { Some(path) } else { path.strip_prefix(directory)?.strip_prefix('/') }
}

/// Joins a path to a directory, and resolves `.` and `..`. The root is the empty path. Returns
/// `None` if the path is empty or absolute, or if the result leads out of the tree.
pub fn resolved(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// If [`names_kind`] is true for a line, the line contains one of these texts.
pub fn words_of_kind(path: &str) -> Vec<String> {
    let Some((_, extension)) = file_name(path).rsplit_once('.') else { return Vec::new() };
    let quoted = ['"', '\''].map(|quote| format!("{quote}{extension}{quote}"));
    quoted.into_iter().chain([format!(".{extension}")]).collect()
}

/// True if a line names files by the extension of `path` alone, as in `*.yml`, `"yml"` or
/// `"{name}.yml"`.
pub fn names_kind(line: &str, path: &str) -> bool {
    words_of_kind(path).iter().any(|word| {
        line.match_indices(word.as_str()).any(|(at, _)| {
            let start = line[..at].rsplit(|c: char| c.is_whitespace() || "\"'`(,[=".contains(c));
            let stem = start.map(file_name).next().unwrap_or_default();
            !word.starts_with('.')
                || !line[at + word.len()..].starts_with(is_in_name)
                    && (stem.is_empty()
                        || !stem.chars().all(|c| is_in_name(c) || ".-@".contains(c)))
        })
    })
}

/// A word as a path in a tree: without `./` before it and slashes after it.
pub fn plain(word: &str) -> &str {
    word.trim_start_matches("./").trim_end_matches('/')
}

/// True if both paths have the same extension.
pub fn have_same_extension(one: &str, other: &str) -> bool {
    one.rsplit('.').next() == other.rsplit('.').next()
}

/// True if a path leads through a directory of this name.
pub fn is_in(path: &str, directory: &str) -> bool {
    directory_of(path).split('/').any(|part| part == directory)
}

/// True for a character of the name of a variable, a function or a module.
pub fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True for a character of a path with usual names.
pub fn is_in_path(c: char) -> bool {
    c.is_alphanumeric() || "._-/".contains(c)
}

/// The position of this word in a line, not as a part of a longer word.
pub fn place_of_word(line: &str, word: &str) -> Option<usize> {
    let places = line.match_indices(word).map(|(at, _)| at);
    places.into_iter().find(|at| {
        !line[..*at].ends_with(is_of_word) && !line[at + word.len()..].starts_with(is_of_word)
    })
}

/// True for a character of a word, which may have hyphens.
pub fn is_of_word(c: char) -> bool {
    is_in_name(c) || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_files_by_their_kind() {
        let cases = [
            ("if path.suffix == '.md':", "a.md", true),
            ("path.extension() == Some(\"md\")", "docs/a.md", true),
            ("Path('.').glob('*.md')", "a.md", true),
            ("open(f'{name}.md')", "a.md", true),
            ("find . -name *.md -exec sh {} +", "a.md", true),
            ("for f in $(ls *.md); do sh $f; done", "a.md", true),
            ("open('b.md')", "a.md", false),
            ("docs/*.mdx", "a.md", false),
            ("# md files", "a.md", false),
            ("cat *", "README", false),
        ];
        for (line, path, expected) in cases {
            assert_eq!(names_kind(line, path), expected, "{line}: {path}");
        }
    }
}
