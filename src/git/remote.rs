//! Other repositories to which runs are pushed and from which they are fetched. Fetched refs get names
//! beside our own refs, and a ref there is moved only from the value that was seen.
use std::path::Path;
use std::sync::Arc;

use crate::error::{Cause, Error, Result};
use crate::git::cli::{Git, PAUSES, repeat};
use crate::git::refs::FETCHED;
use crate::git::repo::Repo;
use crate::model::oid::Oid;
use crate::model::refname::RefName;

/// Another repository, or a bundle.
pub struct Remote<'r> {
    repo: &'r Repo,
    /// The name, URL or path.
    pub place: String,
    /// The beginning of the names of refs that were fetched from it.
    fetched: String,
}

/// A ref to move in another repository.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMove<'a> {
    /// The ref's name, here and there.
    pub name: &'a RefName,
    /// The object to point it to.
    pub new: &'a Oid,
    /// The condition under which it may move.
    pub from: From<'a>,
}

/// The condition under which a ref of another repository moves.
#[derive(Clone, Copy, Debug)]
pub enum From<'a> {
    /// The ref has this value, or does not exist if this is `None`.
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

    /// The local name of one of its refs, after it was fetched.
    pub fn fetched(&self, name: &RefName) -> RefName {
        RefName::new(format!("{}{}", self.fetched, &name["refs/frites/".len()..]))
    }

    /// Its refs under a prefix that ends in `/`, as they were fetched: their names there, and their
    /// objects.
    pub fn fetched_under(&self, prefix: &str) -> Result<Vec<(RefName, Oid)>> {
        let local = self.fetched(&RefName::new(prefix));
        let found = self.repo.refs_under(local.as_str())?;
        let own =
            |name: &RefName| RefName::new(format!("refs/frites/{}", &name[self.fetched.len()..]));
        Ok(found.into_iter().map(|(name, oid)| (own(&name), oid)).collect())
    }

    /// Fetches its refs of these names; a name may hold one `*`. Fetched refs that no longer exist there
    /// are deleted here. A name without `*` must exist there.
    pub fn fetch(&self, names: &[String]) -> Result<()> {
        let options = [
            "--quiet",
            "--no-filter",
            "--no-tags",
            "--no-write-fetch-head",
            "--prune",
            "--no-recurse-submodules",
        ];
        let specs = names
            .iter()
            .map(|name| format!("+{name}:{}", self.fetched(&RefName::new(name.as_str()))));
        let call = self.git().call("fetch").args(options).args(["--end-of-options", &self.place]);
        let call = call.args(specs);
        // Another process in this repository may fetch the same.
        let pauses = PAUSES.map(|pause| pause * 4);
        let done =
            repeat(pauses, |done| done.as_ref().is_err_and(is_contention), || call.clone().run());
        done.map_err(|error| self.unreachable(error))
    }

    /// Moves refs there: all of them, or none. Gives the reason if the other repository refused.
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
        // With `--atomic`, one refusal makes git refuse all other moves: the reason of that one comes
        // first.
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
    /// Makes a bare repository at `dir` with no settings of the user's, and opens it.
    pub fn make_bare(dir: &Path) -> Result<Repo> {
        let formats = ["init.defaultRefFormat=files", "-c", "init.defaultObjectFormat=sha1"];
        let call = Git::at(dir, Arc::default()).call("-c").args(formats);
        call.args(["init", "--quiet", "--bare", "--template="]).run()?;
        Repo::open(dir)
    }

    /// Writes what these refs reach to a bundle, without what `known` reach.
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

/// True if another process holds a lock of a ref, or has moved it first.
fn is_contention(error: &Error) -> bool {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    matches!(error.cause, Cause::Locked | Cause::RefMoved) || source.contains("cannot lock ref")
}

/// True if a push that was refused for this reason can succeed after another fetch.
pub fn may_succeed_later(reason: &str) -> bool {
    let passing = [
        "stale info",
        "fetch first",
        "non-fast-forward",
        "lock",
        "failed to update ref",
        "incorrect old value",
        "remote ref updated",
        "failed to transfer",
        "atomic",
    ];
    passing.iter().any(|words| reason.contains(words))
}
