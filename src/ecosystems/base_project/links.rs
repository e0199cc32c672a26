//! The further names that symbolic links of a base give to a path.
use std::collections::BTreeSet;
use std::fs;

use crate::ecosystems::base_project::{BaseProject, MOST_NAMES, once};
use crate::error::Result;
use crate::git::repo::follow_links;

impl BaseProject<'_> {
    /// Returns the other paths that lead to `path` through symbolic links of the base.
    pub fn names_by_links(&self, path: &str) -> Result<Vec<String>> {
        let mut names = vec![path.to_owned()];
        // A link may be in a directory to which another link leads, so each path found is searched
        // for, too. If links form a circle, `MOST_NAMES` ends the search.
        let mut at = 0;
        while at < names.len().min(MOST_NAMES) {
            for (link, target) in self.links()? {
                let Some(rest) = names[at].strip_prefix(target.as_str()) else { continue };
                let name = format!("{link}{rest}");
                if (rest.is_empty() || rest.starts_with('/')) && !names.contains(&name) {
                    names.push(name);
                }
            }
            at += 1;
        }
        names.remove(0);
        Ok(names)
    }

    /// The symbolic links of the base, each with its target in the base.
    fn links(&self) -> Result<&[(String, String)]> {
        let links = &self.code()?.links;
        let found = once(&self.links, || {
            let roots = [self.repo.work_tree(), self.repo.main_worktree()];
            let roots = roots.into_iter().flatten().filter_map(|root| fs::canonicalize(root).ok());
            let mut roots: BTreeSet<String> =
                roots.filter_map(|root| root.into_os_string().into_string().ok()).collect();
            if roots.is_empty() {
                // A bare repository has no work tree.
                roots.insert(String::new());
            }
            let pairs = roots.iter().flat_map(|root| links.iter().map(move |link| (root, link)));
            let found = pairs.filter_map(|(root, link)| {
                let target = self.target_of(link, links, root).transpose()?;
                Some(target.map(|target| (link.clone(), target)))
            });
            found.collect()
        });
        Ok(found?)
    }

    /// Returns the path to which a symbolic link of the base leads, directly or through other
    /// links. `root` is the absolute path of the base. In a sealed world, this is the path of the
    /// checkout.
    fn target_of(
        &self,
        link: &str,
        links: &BTreeSet<String>,
        root: &str,
    ) -> Result<Option<String>> {
        let below = format!("{root}/");
        follow_links(root, link, |at| match at.strip_prefix(&below) {
            Some(inside) if links.contains(inside) => self.repo.link_at(&self.commit, inside),
            Some(_) => Ok(None),
            None => {
                Ok(fs::read_link(at).ok().and_then(|to| to.into_os_string().into_string().ok()))
            }
        })
    }
}
