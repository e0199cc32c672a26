//! Pushes runs to other repositories, and fetches runs from them. Fetched refs get other names than
//! our own refs. A ref of another repository is moved only if it still has the expected value.
use std::path::Path;
use std::sync::Arc;

use crate::error::{Cause, Error, Result};
use crate::git::cli::{Git, PAUSES, repeat};
use crate::git::refs::FETCHED;
use crate::git::repo::{Repo, is_partial_clone};
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// The problems of git-fsck(1) that fetched objects may have. A mirror fetches the whole history of
/// the base, and old commits and trees may have such problems. None of them changes how git reads a
/// tree.
const HARMLESS_PROBLEMS: &str = "
    badDate badDateOverflow badEmail badName badTimezone extraHeaderEntry missingEmail
    missingNameBeforeEmail missingSpaceBeforeDate missingSpaceBeforeEmail missingTaggerEntry
    multipleAuthors nulInCommit zeroPaddedDate zeroPaddedFilemode";

/// Another repository, or a bundle.
pub struct Remote<'r> {
    repo: &'r Repo,
    /// The name, URL or path of the repository.
    pub place: String,
    /// The prefix of the refs that were fetched from the repository.
    fetched: String,
}

/// A ref to move in another repository.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMove<'a> {
    /// The ref's name, which is the same in both repositories.
    pub name: &'a RefName,
    /// The object that the ref will point to.
    pub new: &'a Oid,
    /// The condition under which the ref may move.
    pub from: From<'a>,
}

/// The condition under which a ref of another repository moves.
#[derive(Clone, Copy, Debug)]
pub enum From<'a> {
    /// The ref has this value; for `None`, the ref does not exist.
    Value(Option<&'a Oid>),
    /// The new value contains the old one.
    Ancestor,
}

impl<'r> Remote<'r> {
    /// The repository that `place` names: a remote of `repo`, a URL, or a path.
    pub fn new(repo: &'r Repo, place: &str) -> Remote<'r> {
        let is_name = place.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let key = if is_name && !place.starts_with('-') { place } else { "@url" };
        Remote { repo, place: place.to_owned(), fetched: format!("{FETCHED}{key}/") }
    }

    /// The local name of a fetched ref whose name in the other repository is `name`.
    pub fn fetched(&self, name: &RefName) -> RefName {
        RefName::new(format!("{}{}", self.fetched, &name["refs/frites/".len()..]))
    }

    /// The fetched refs under a prefix that ends in `/`. Each has its name in the other repository,
    /// and its object.
    pub fn fetched_under(&self, prefix: &str) -> Result<Vec<(RefName, Oid)>> {
        let local = self.fetched(&RefName::new(prefix));
        let found = self.repo.refs_under(local.as_str())?;
        let own =
            |name: &RefName| RefName::new(format!("refs/frites/{}", &name[self.fetched.len()..]));
        Ok(found.into_iter().map(|(name, oid)| (own(&name), oid)).collect())
    }

    /// Fetches the refs with these names. A name may have one `*` in it; a name without `*` must
    /// exist in the other repository. Fetched refs that no longer exist there are deleted in this
    /// repository.
    pub fn fetch(&self, names: &[String]) -> Result<()> {
        let options = "--quiet --no-filter --no-tags --no-write-fetch-head --prune";
        let specs = names.iter().map(|name| {
            let to = self.fetched(&RefName::new(name.as_str()));
            format!("+{name}:{to}")
        });
        // git cannot check objects in a partial clone, because objects that they name may be
        // missing.
        let checks = !is_partial_clone(&self.repo.gix());
        let mut call = self.git().call("-c").arg(format!("fetch.fsckObjects={checks}"));
        for problem in HARMLESS_PROBLEMS.split_whitespace() {
            call = call.arg("-c").arg(format!("fetch.fsck.{problem}=ignore"));
        }
        let call = call.arg("fetch").words(options).arg("--no-recurse-submodules");
        let call = call.args(["--end-of-options", &self.place]).args(specs);
        // If another process in this repository fetches the same refs, this waits and tries again.
        let pauses = PAUSES.map(|pause| pause * 4);
        let done =
            repeat(pauses, |done| done.as_ref().is_err_and(is_contention), || call.clone().run());
        done.map_err(|error| self.unreachable(error))
    }

    /// Moves refs in the other repository: all of them, or none. Returns the reason if the other
    /// repository refused.
    ///
    /// Fails if the other repository cannot be reached.
    pub fn push(&self, moves: &[RemoteMove<'_>]) -> Result<Option<String>> {
        let leases = moves.iter().filter_map(|RemoteMove { name, from, .. }| match from {
            From::Value(old) => {
                let old = old.map(Oid::as_str).unwrap_or_default();
                Some(format!("--force-with-lease={name}:{old}"))
            }
            From::Ancestor => None,
        });
        let mut options = vec!["--quiet", "--porcelain", "--no-verify", "--no-recurse-submodules"];
        if moves.len() > 1 {
            options.push("--atomic");
        }
        let call = self.git().call("push").args(options).args(leases);
        let call = call.args(["--end-of-options", &self.place]);
        let specs = moves.iter().map(|RemoteMove { name, new, .. }| format!("{new}:{name}"));
        let output = call.args(specs).output()?;
        if output.code == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let refused = text.lines().filter_map(|line| line.strip_prefix("!\t"));
        let why = |line: &str| {
            let (spec, summary) = line.split_once('\t')?;
            let name = spec.split_once(':').map_or(spec, |(_, name)| name);
            Some(format!("{name}: {summary}"))
        };
        // If one move is refused, `--atomic` makes git refuse all others, too, with the reason
        // "atomic…". So reasons without that word come first.
        let mut reasons: Vec<String> = refused.filter_map(why).collect();
        reasons.sort_by_key(|reason| reason.contains("atomic"));
        match reasons.into_iter().next() {
            Some(reason) => Ok(Some(reason)),
            None => Err(self.unreachable(output.error("push"))),
        }
    }

    fn git(&self) -> Git {
        self.repo.git().for_transfer()
    }

    fn unreachable(&self, error: Error) -> Error {
        error.context(format!("'{}'", self.place))
    }
}

impl Repo {
    /// Makes a bare repository at `dir` that ignores the user's settings and templates, and opens
    /// it.
    pub fn make_bare(dir: &Path) -> Result<Repo> {
        let formats = ["init.defaultRefFormat=files", "-c", "init.defaultObjectFormat=sha1"];
        let call = Git::at(dir, Arc::default()).call("-c").args(formats);
        call.args(["init", "--quiet", "--bare", "--template="]).run()?;
        Repo::open(dir)
    }

    /// Writes a bundle with these refs, and with all objects that are reachable from them and not
    /// from `known`.
    pub fn write_bundle(&self, file: &Path, names: &[RefName], known: &[Oid]) -> Result<()> {
        let call = self.git().call("bundle").args(["create", "--quiet"]).arg(file);
        let names = names.iter().map(ToString::to_string);
        call.args(names.chain(known.iter().map(|oid| format!("^{oid}")))).run()
    }

    /// True if the repository has a remote of that name.
    pub fn has_remote(&self, name: &str) -> Result<bool> {
        let keys = [format!("remote.{name}.url"), format!("remote.{name}.pushurl")];
        for key in keys {
            if self.git().for_user().call("config").args(["--get", &key]).output()?.code == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// True if a call failed because another process has locked a ref, or moved it first.
fn is_contention(error: &Error) -> bool {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    matches!(error.cause, Cause::Locked | Cause::RefMoved) || source.contains("cannot lock ref")
}

/// True if a push that was refused for this reason may succeed after another fetch.
pub fn may_succeed_later(reason: &str) -> bool {
    let passing = "\
        stale info|fetch first|non-fast-forward|lock|failed to update ref|incorrect old value|\
        remote ref updated|failed to transfer|atomic";
    passing.split('|').any(|words| reason.contains(words))
}
