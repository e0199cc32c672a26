//! The open repository that every command works in, with its state, its configuration and the
//! output streams.
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::config::value::EnvMode;
use crate::config::{Config, keys};
use crate::ecosystems::base_project::BaseProject;
use crate::error::{Error, IoContext, Result};
use crate::fs::lock::Lock;
use crate::fs::scratch;
use crate::git::capture::excludes::Excludes;
use crate::git::repo::Repo;
use crate::git::seed::find::{SeedPatterns, Seeds};
use crate::git::{diff, version, worktree};
use crate::integrity::config_snapshot::IncludeGuard;
use crate::integrity::{IntegrityContext, watch};
use crate::model::env;
use crate::model::layout::StateDir;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::path::TreePath;
use crate::model::terms::Terms;
use crate::ops::confined_git;
use crate::ops::recover::{Recovery, recover};
use crate::ops::trash;
use crate::oracle::pool;
use crate::process::environment::Policy;
use crate::store::Store;
use crate::store::events::Event;
use crate::ui::Ui;

/// The open repository for a command that only reads records. Work of killed commands has been
/// recovered. Opening it starts no process, and does not read the configuration.
pub struct ReadSession {
    /// The repository.
    pub repo: Arc<Repo>,
    /// The repository's state.
    pub store: Store,
    /// Prints answers and messages to the terminal.
    pub ui: Ui,
    /// The user's own checkout, never a candidate's worktree; `None` if there is none.
    home: Option<PathBuf>,
    /// Keeps our git calls from planted includes.
    includes: IncludeGuard,
}

/// The open repository with its configuration. Work of killed commands has been recovered.
pub struct Session {
    /// The repository.
    pub repo: Arc<Repo>,
    /// The repository's state.
    pub store: Store,
    /// The repository's configuration.
    pub config: Config,
    /// Prints answers and messages to the terminal.
    pub ui: Ui,
    /// The user's own checkout, never a candidate's worktree; `None` if there is none.
    pub home: Option<PathBuf>,
    /// `diff.exclude`.
    pub excludes: Excludes,
    /// `[env]`.
    pub policy: Policy,
    /// The judge checkouts of earlier judgings that cannot be deleted, each with the reason, until
    /// the user is warned of them.
    undeleted: Mutex<Vec<String>>,
    /// The landing in the user's checkout that this process made: the commits or trees before and
    /// after it.
    landed: OnceLock<(Oid, Oid)>,
    /// The lock that keeps other processes out of a mirror; `None` if the repository is not a
    /// mirror.
    mirror: Option<Lock>,
    /// Keeps our git calls from planted includes.
    includes: IncludeGuard,
}

impl ReadSession {
    /// Opens the repository of the current directory and repairs what killed commands left.
    pub fn open(ui: Ui) -> Result<ReadSession> {
        let session = ReadSession::discover(ui)?;
        // A command that only reads does not warn of judge checkouts that cannot be deleted.
        let (Recovery { refs, .. }, _) = session.heal()?;
        watch::recover(session.integrity())?;
        if let Some(refs) = refs {
            session.repo.remember_refs(refs);
        }
        Ok(session)
    }

    /// Reads the configuration, which starts git.
    pub fn config(&self) -> Result<Config> {
        Config::load(self.home.as_deref(), &self.repo.settings_of("frites")?)
    }

    fn discover(ui: Ui) -> Result<ReadSession> {
        let here =
            std::env::current_dir().context(|| "the current directory cannot be read".into())?;
        let repo = Arc::new(Repo::discover(&here)?);
        // Under Landlock, an attempt's worktree leads to a git directory of the attempt's own.
        if std::env::var_os(env::DEPTH).is_none() {
            worktree::require_own_git(&repo, &here, |common, checkout| {
                let owner = Repo::open(common).map(Arc::new);
                owner.is_ok_and(|owner| Store::of(&owner).is_candidates(checkout).unwrap_or(true))
            })?;
        }
        // The repository is used until the process ends, and freeing its memory then would only
        // take time.
        std::mem::forget(repo.clone());
        let store = Store::of(&repo);
        require_state_directory(store.dir())?;
        scratch::keep_in(&store.dir().scratch());
        let home = store.users_checkout()?;
        Ok(ReadSession { repo, store, ui, home, includes: IncludeGuard::default() })
    }

    /// Recovers the work of killed commands. Also returns a message for each judge checkout that
    /// cannot be deleted.
    fn heal(&self) -> Result<(Recovery, Vec<String>)> {
        // This comes first, because the calls of git below use the repository's configuration.
        watch::update_overrides(self.integrity())?;
        confined_git::confine_filters(&self.repo);
        let recovered = recover(&self.store)?;
        recovered.messages.iter().for_each(|line| self.ui.warn(line));
        let undeleted = pool::sweep(&self.repo, &self.store)?;
        Ok((recovered, undeleted))
    }

    fn integrity(&self) -> IntegrityContext<'_> {
        let Self { store, home, ui, includes, .. } = self;
        IntegrityContext { store, home: home.as_deref(), ui, includes }
    }
}

impl Session {
    /// Opens the repository of the current directory and repairs what killed commands left.
    pub fn open(ui: Ui) -> Result<Session> {
        Session::of(ReadSession::discover(ui)?, None)
    }

    /// Opens a session in a mirror; `lock` keeps other processes out of it.
    pub fn in_mirror(ui: Ui, repo: Repo, lock: Lock) -> Result<Session> {
        let repo = Arc::new(repo);
        let store = Store::of(&repo);
        scratch::keep_in(&store.dir().scratch());
        let includes = IncludeGuard::default();
        Session::of(ReadSession { repo, store, ui, home: None, includes }, Some(lock))
    }

    /// True if the repository is a mirror in the user's cache.
    pub fn is_mirror(&self) -> bool {
        self.mirror.is_some()
    }

    fn of(opened: ReadSession, mirror: Option<Lock>) -> Result<Session> {
        // This call is safe before `heal`: `git version` starts no program that a setting names.
        version::require_new_enough(&opened.repo.git(), opened.store.dir())?;
        let (_, undeleted) = opened.heal()?;
        let undeleted = Mutex::new(undeleted);
        let config = opened.config()?;
        let ReadSession { repo, store, ui, home, includes } = opened;
        let excludes = Excludes::new(&config.get(keys::DIFF_EXCLUDE))?;
        let policy = policy(&config)?;
        let session = Session {
            repo,
            store,
            config,
            ui,
            home,
            excludes,
            policy,
            undeleted,
            landed: OnceLock::new(),
            mirror,
            includes,
        };
        watch::recover(session.integrity())?;
        if let Some(root) = session.config.get(keys::SPAWN_WORKTREE_ROOT) {
            // An error is ignored, as in `recover`, which does not empty this trash because it does
            // not know the configuration.
            let _ = trash::empty(&session.store, &session.store.worktrees(Some(&root)));
        }
        Ok(session)
    }

    /// Warns of the judge checkouts that cannot be deleted, but only once of each. Commands that
    /// create checkouts or remove leftovers call this.
    pub fn warn_of_undeleted(&self) {
        let mut undeleted = self.undeleted.lock();
        undeleted.drain(..).for_each(|line| self.ui.warn(line));
    }

    /// Notes that this process has moved the user's checkout from one commit or tree to another.
    pub fn note_landing(&self, from: &Oid, to: &Oid) {
        self.landed.get_or_init(|| (*from, *to));
    }

    /// The files that this process has changed in the user's checkout by a landing.
    pub fn changed_by_landing(&self) -> Result<Vec<TreePath>> {
        let Some((from, to)) = self.landed.get() else { return Ok(Vec::new()) };
        let changes = diff::since(&self.repo, from, to).changes()?;
        Ok(changes.into_iter().map(|change| change.path).collect())
    }

    /// The parts of the session that `integrity/` needs.
    pub fn integrity(&self) -> IntegrityContext<'_> {
        let Self { store, home, ui, includes, .. } = self;
        IntegrityContext { store, home: home.as_deref(), ui, includes }
    }

    /// Records an event of a run. Only warns if that fails, because the subject of the event exists
    /// by now.
    pub fn record_or_warn(&self, run: &Name, event: &Event) {
        if let Err(error) = self.store.record_event(run, event) {
            self.ui.warn(&error.message);
        }
    }

    /// The seeds that the configuration selects for worktrees that start from `base`.
    pub fn seeds(&self, base: &Oid) -> Result<Seeds> {
        match self.seed_patterns() {
            Some(patterns) => Seeds::find(&self.repo, &patterns, base),
            None => Ok(Seeds::default()),
        }
    }

    /// As [`Session::seeds`], but with these patterns instead of those of the configuration.
    pub fn seeds_by(&self, copy: &[String], link: &[String], base: &Oid) -> Result<Seeds> {
        let Some(root) = self.home.clone() else { return Ok(Seeds::default()) };
        let patterns = SeedPatterns { root, copy: copy.to_vec(), link: link.to_vec() };
        Seeds::find(&self.repo, &patterns, base)
    }

    /// The project at `base`, the base of a run, with the commands and settings of `terms`.
    pub fn project(&self, base: &Oid, terms: &Terms) -> Result<BaseProject<'_>> {
        let Terms { oracle, settings, .. } = terms;
        Ok(BaseProject::of(&self.repo, base, oracle, &settings.source)?
            .with_seeds(self.seed_patterns()))
    }

    fn seed_patterns(&self) -> Option<SeedPatterns> {
        let copy = self.config.get(keys::SEED_COPY);
        let link = self.config.get(keys::SEED_LINK);
        self.home.clone().map(|root| SeedPatterns { root, copy, link })
    }
}

/// Fails if the state directory, or the directory of worktrees in it, is not a directory. Behind a
/// symbolic link, git-frites could not tell its worktrees from other files at the link's target.
fn require_state_directory(dir: &StateDir) -> Result<()> {
    let is_odd = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir());
    let Some(odd) = [dir.path().to_owned(), dir.worktrees()].into_iter().find(is_odd) else {
        return Ok(());
    };
    if !odd.is_symlink() {
        return Err(Error::fatal(format!("'{}' is not a directory", odd.display()))
            .hint("move it away: git-frites makes a directory with this name"));
    }
    Err(Error::fatal(format!("'{}' is a symbolic link", odd.display()))
        .hint("remove the link, or put the directory itself there")
        .hint("to have worktrees elsewhere: `git config frites.spawn.worktree-root DIR`"))
}

fn policy(config: &Config) -> Result<Policy> {
    let pass = config.get(keys::ENV_PASS);
    let deny = config.get(keys::ENV_DENY);
    Policy::new(config.get(keys::ENV_MODE) == EnvMode::Clean, &pass, &deny).map_err(
        |(pattern, e)| {
            Error::fatal(format!("[env]: '{pattern}' is not a pattern: {}", e.kind()))
                .hint("a pattern is a variable's name, in which * stands for anything")
        },
    )
}
