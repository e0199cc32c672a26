//! Finds seeds that lead back: a copy in a judge checkout still makes commands use the files of
//! another checkout. The usual case is an editable install of Python. The copied virtual
//! environment then imports the user's own sources, whatever tree is judged.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode;

use crate::error::Result;
use crate::fs::{regular, tree};
use crate::git::repo::Repo;
use crate::git::seed::find::{Seeds, is_tracked};
use crate::git::worktree;
use crate::model::count::and_more;
use crate::model::oid::Oid;
use crate::model::path::{TreePath, file_name, quoted};

/// The largest file that is read, in bytes. Files that lead back are short.
const LARGEST: u64 = 64 << 10;

/// The largest number of seeds for which [`BackLeads::warnings`] has a line each.
const MOST_NAMED: usize = 5;

/// The largest number of seeds that [`BackLeads::paths`] returns.
const MOST_RECORDED: usize = 100;

/// The longest path that is recognised in a text, in bytes.
const LONGEST: usize = 4096;

/// The seeds that lead back, each with the path to which it leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BackLeads {
    /// Seeds that lead to files in a checkout. These files are not seeds, and commands would use
    /// them in place of the judged files.
    pub to_files: BTreeMap<TreePath, PathBuf>,
    /// Seeds that lead to a seed in the user's checkout, such as scripts that name the interpreter
    /// of a virtual environment.
    pub to_seeds: BTreeMap<TreePath, PathBuf>,
}

/// Finds the seeds that lead back to a checkout of the repository. `base` is the commit for which
/// the seeds were found.
pub fn find(repo: &Repo, seeds: &Seeds, base: &Oid) -> Result<BackLeads> {
    let mut leads = BackLeads::default();
    if seeds.files().next().is_none() {
        return Ok(leads);
    }
    let roots: Vec<PathBuf> =
        worktree::checkouts(repo)?.iter().map(|root| tree::nearest_real(root)).collect();
    let base = repo.index_of(base)?;
    let own = tree::nearest_real(&seeds.root);
    let is_seed = |below: &TreePath| {
        below
            .parents()
            .chain([below.clone()])
            .any(|part| !is_tracked(&base, &part) && seeds.hold(&part))
    };
    for (path, original) in seeds.files() {
        for target in targets(path, original) {
            // A link into the user's checkout does not lead back: its copy leads to the same path
            // in the new checkout.
            let is_link = original.is_symlink();
            let found = places(&target).into_iter().find_map(|real| {
                // The innermost checkout counts. A linked worktree may lie in the user's checkout.
                let around = roots.iter().filter(|root| real.starts_with(root));
                let root = around.max_by_key(|root| root.as_os_str().len())?;
                (!is_link || !real.starts_with(&own)).then_some((root, real))
            });
            let Some((root, real)) = found else { continue };
            let below = real.strip_prefix(root).unwrap_or(&real);
            if below.starts_with(".git") {
                continue;
            }
            let below = TreePath::new(tree::path_bytes(below));
            let list = if *root == own && !below.is_empty() && is_seed(&below) {
                &mut leads.to_seeds
            } else {
                &mut leads.to_files
            };
            list.entry(path.clone()).or_insert(target);
        }
    }
    Ok(leads)
}

impl BackLeads {
    /// Warnings for the user. `own` names the files that commands should use, e.g.
    /// `the judged ones`.
    pub fn warnings(&self, own: &str) -> Vec<String> {
        let effect = format!("commands may use that checkout's files in place of {own}");
        let named = self.to_files.iter().take(MOST_NAMED);
        let named = named.map(|(path, target)| format!("{}: {effect}", in_words(path, target)));
        let mut lines: Vec<String> = named.collect();
        if let Some(more) = self.to_files.len().checked_sub(MOST_NAMED).filter(|n| *n > 0) {
            lines.push(format!("{more} more seeds lead to a checkout of this repository"));
        }
        if let Some((first, _)) = self.to_seeds.first_key_value() {
            let more = self.to_seeds.len() - 1;
            let lead = if more == 0 { "leads" } else { "lead" };
            lines.push(format!(
                "the seed '{}'{} {lead} to your own copy: a command that installs something this way \
                 writes to your checkout",
                first.quoted(),
                and_more(more)
            ));
        }
        lines
    }

    /// The first seeds that lead to files, for the record of a judging.
    pub fn paths(&self) -> Vec<String> {
        self.to_files.keys().take(MOST_RECORDED).map(TreePath::quoted).collect()
    }

    /// A sentence about the first seed that leads to files; `None` if there is none.
    pub fn first_in_words(&self) -> Option<String> {
        self.to_files.first_key_value().map(|(path, target)| in_words(path, target))
    }
}

fn in_words(path: &TreePath, target: &Path) -> String {
    format!("the seed '{}' leads to '{}'", path.quoted(), quoted(tree::path_bytes(target)))
}

/// The absolute paths that a seed leads to.
fn targets(path: &TreePath, original: &Path) -> BTreeSet<PathBuf> {
    let Ok(meta) = fs::symlink_metadata(original) else { return BTreeSet::new() };
    if meta.is_symlink() {
        return fs::canonicalize(original).into_iter().collect();
    }
    if !meta.is_file() || meta.len() > LARGEST || !may_lead(path) {
        return BTreeSet::new();
    }
    let text = regular::read(original).unwrap_or_default();
    if text.contains(&0) { BTreeSet::new() } else { paths_in(file_name(path), &text) }
}

/// Two real paths for a path: one with all links resolved, and one whose last part is not resolved.
/// Both are needed. The last part may be a link that lies in a checkout but leads out of it, like
/// the interpreter of a virtual environment.
fn places(path: &Path) -> [PathBuf; 2] {
    let last = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => tree::nearest_real(parent).join(name),
        _ => path.to_owned(),
    };
    [tree::nearest_real(path), last]
}

/// True for the kinds of files that tell programs the paths of other files: Python's path files,
/// records of editable installs, and modules and scripts of an environment.
fn may_lead(path: &TreePath) -> bool {
    let name = file_name(path);
    let parent = path.parents().last();
    let parent = parent.as_deref().map(file_name).unwrap_or_default();
    name.ends_with(b".pth")
        || name.ends_with(b".egg-link")
        || name.starts_with(b"__editable__")
        || name == b"direct_url.json"
        || name == b"pyvenv.cfg"
        || [&b"bin"[..], b".bin", b"Scripts", b"site-packages", b"dist-packages"].contains(&parent)
}

/// The absolute paths in the text of the file `name`. In a path file (`.pth`, `.egg-link`), a whole
/// line is a path. In other files, a path ends at the closing quote, or at a character that is rare
/// in paths.
fn paths_in(name: &[u8], text: &[u8]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let whole_lines = name.ends_with(b".pth") || name.ends_with(b".egg-link");
    for line in text.split(|b| matches!(b, b'\n' | b'\r')) {
        // This line has the command that made the virtual environment, with the environment's path.
        // No program runs that command again.
        if name == b"pyvenv.cfg" && line.starts_with(b"command") {
            continue;
        }
        if whole_lines && line.starts_with(b"/") {
            found.insert(PathBuf::from(OsStr::from_bytes(line.trim_ascii_end())));
            continue;
        }
        let mut at = 0;
        while let Some(start) = line[at..].iter().position(|b| *b == b'/').map(|n| at + n) {
            let before = start.checked_sub(1).map(|n| line[n]);
            let end = start + length(&line[start..], before);
            at = end.max(start + 1);
            // A path begins at this slash, unless the byte before belongs to the same word, as in
            // `a/b`.
            let begins =
                before.is_none_or(|b| !(b.is_ascii_alphanumeric() || b"/.-_~*\\".contains(&b)));
            let scheme = line[..start].ends_with(b"file:") && line[start..].starts_with(b"///");
            if scheme {
                let path: Vec<u8> = percent_decode(&line[start + 2..end]).collect();
                found.insert(PathBuf::from(OsString::from_vec(path)));
            } else if begins && !line[start..].starts_with(b"//") && end - start <= LONGEST {
                found.insert(PathBuf::from(OsStr::from_bytes(&line[start..end])));
            }
        }
    }
    found
}

/// The length of the path at the beginning of `rest`. If `before`, the byte before `rest`, is a
/// quote, the path ends at the same quote.
fn length(rest: &[u8], before: Option<u8>) -> usize {
    let quote = before.filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    let ends = |b: u8| match quote {
        Some(quote) => b == quote,
        None => b.is_ascii_whitespace() || b"\"'`:;,<>|&()[]{}$".contains(&b),
    };
    rest.iter().position(|b| ends(*b)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_in_each_kind_of_file() {
        let cases: [(&str, &str, &[&str]); 8] = [
            ("a.pth", "/home/me/my repo/src\nimport x\n../other\n", &["/home/me/my repo/src"]),
            ("b.pth", "import sys; sys.path.insert(0, '/home/me/src')\n", &["/home/me/src"]),
            (
                "direct_url.json",
                r#"{"dir_info": {"editable": true}, "url": "file:///home/me/my%20repo"}"#,
                &["/home/me/my repo"],
            ),
            ("direct_url.json", r#"{"url": "https://host/home/me"}"#, &[]),
            ("pip", "#!/home/me/.venv/bin/python3 -I\nx = a/b\n", &["/home/me/.venv/bin/python3"]),
            (
                "__editable___x_finder.py",
                "MAPPING: dict[str, str] = {'x': '/home/me/my repo/x', \"y\": \"/y\"}\n",
                &["/home/me/my repo/x", "/y"],
            ),
            (
                "activate",
                "VIRTUAL_ENV=/home/me/.venv\nPATH=\"$V/bin:$PATH\"\n",
                &["/home/me/.venv"],
            ),
            (
                "pyvenv.cfg",
                "home = /usr/bin\ncommand = python -m venv /home/me/.venv\n",
                &["/usr/bin"],
            ),
        ];
        for (name, text, expected) in cases {
            let expected: BTreeSet<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(paths_in(name.as_bytes(), text.as_bytes()), expected, "{name}: {text}");
        }
    }
}
