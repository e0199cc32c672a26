//! Searches for seeds in the user's checkout.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{IfExists, IoContext, Result};
use crate::fs::tree;
use crate::git::cli::nul_separated;
use crate::git::repo::Repo;
use crate::git::seed::patterns::Patterns;
use crate::model::path::TreePath;

/// The entries that git ignores in the checkout at `root`, sorted. They are files, and directories
/// with a slash at the end. Entries below an ignored directory are left out.
pub fn ignored_entries(repo: &Repo, root: &Path) -> Result<Vec<Vec<u8>>> {
    let ignored = list_untracked(repo, root, &["-i", "--directory"])?;
    let ignored: BTreeSet<&[u8]> =
        nul_separated(&ignored).filter(|p| !p.starts_with(b".frites/")).collect();
    let mut found = Vec::new();
    let mut entries = ignored.iter().peekable();
    while let Some(entry) = entries.next() {
        // If entries below a directory follow, git does not ignore the directory itself. The
        // directory only contains ignored entries.
        let only_holds = entries.peek().is_some_and(|next| next.starts_with(entry));
        if !(entry.ends_with(b"/") && only_holds) {
            found.push(entry.to_vec());
        }
    }
    Ok(found)
}

fn list_untracked(repo: &Repo, root: &Path, options: &[&str]) -> Result<Vec<u8>> {
    let git = if repo.work_tree() == Some(root) {
        repo.checkout()
    } else {
        repo.git_at(repo.common_dir()).in_checkout().work_tree(root)
    };
    git.call("ls-files").args(["-z", "-o", "--exclude-standard"]).args(options).bytes()
}

/// A search for untracked files in the user's own checkout.
///
/// A directory that git ignores as a whole is opened only if a pattern matches it or leads into it.
/// For example, the pattern `.env*` must not cause a walk through node_modules.
pub struct SeedSearch<'a> {
    pub root: &'a Path,
    /// The patterns of the configuration, and those of `.worktreeinclude`.
    pub patterns: [&'a Patterns; 2],
    /// The real path of every checkout of the repository. The search does not enter these
    /// directories.
    pub checkouts: Vec<PathBuf>,
    /// The files, links and empty directories that were found.
    pub found: BTreeSet<TreePath>,
    /// Messages for the user.
    pub notes: Vec<String>,
}

impl SeedSearch<'_> {
    /// Adds the untracked files that the patterns match.
    pub fn read(&mut self, repo: &Repo) -> Result<()> {
        for entry in &ignored_entries(repo, self.root)? {
            match entry.strip_suffix(b"/") {
                Some(directory) => {
                    let whole = self.matches(directory, true);
                    self.add(&TreePath::new(directory), whole)?;
                }
                None if self.matches(entry, false) => {
                    self.found.insert(TreePath::new(entry));
                }
                None => {}
            }
        }
        let [own, _] = self.patterns;
        if !own.is_empty() {
            let untracked = list_untracked(repo, self.root, &[])?;
            // A path that ends in a slash is a nested repository, which is no seed.
            self.found.extend(
                nul_separated(&untracked)
                    .filter(|p| !p.ends_with(b"/") && own.matches(p, false))
                    .map(TreePath::new),
            );
        }
        Ok(())
    }

    /// True if a directory is a checkout of this repository, or a link to one.
    pub fn is_checkout(&self, directory: &TreePath) -> bool {
        self.checkouts.contains(&tree::nearest_real(&directory.on_disk(self.root)))
    }

    /// Adds the matching files of an ignored directory. If `whole` is true, adds every file.
    pub fn add(&mut self, directory: &TreePath, whole: bool) -> Result<()> {
        let real = tree::nearest_real(&directory.on_disk(self.root));
        self.add_directory(directory, &real, whole)
    }

    fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        self.patterns.iter().any(|p| p.matches(path, is_dir))
    }

    /// Does the same as [`SeedSearch::add`]. `real` is the real path of the directory. Links in the
    /// directory are not followed.
    fn add_directory(&mut self, directory: &TreePath, real: &Path, whole: bool) -> Result<()> {
        if self.checkouts.iter().any(|root| root == real)
            || !(whole || self.patterns.iter().any(|p| p.lead_into(directory)))
        {
            return Ok(());
        }
        let listing = fs::read_dir(real).if_exists();
        let Some(listing) = listing.could_not("list", real)? else {
            return Ok(());
        };
        let mut is_empty = true;
        for entry in listing.flatten() {
            is_empty = false;
            let Ok(kind) = entry.file_type() else { continue };
            let path = directory.join(entry.file_name().as_bytes());
            let taken = whole || self.matches(&path, kind.is_dir());
            if kind.is_dir() {
                self.add_directory(&path, &entry.path(), taken)?;
            } else if taken && (kind.is_file() || kind.is_symlink()) {
                self.found.insert(path);
            } else if taken {
                let why = "it is neither a file nor a directory nor a link";
                self.notes.push(format!("the seed '{}' is left out: {why}", path.quoted()));
            }
        }
        if is_empty && whole {
            self.found.insert(directory.clone());
        }
        Ok(())
    }
}
