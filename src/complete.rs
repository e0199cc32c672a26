//! Shell completion: the runs, candidates, branches, agents and keys that an argument can name.
//!
//! A TAB must be quick, and must never print. So completers read the repository without git, and
//! skip everything that they cannot read. There is one exception: git reads the configuration for
//! [`agents()`] and [`keys()`]. Each argument names its completer.
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::agents;
use crate::config::{self, Config};
use crate::git::repo::Repo;
use crate::git::worktree;
use crate::model::address::{Address, TASK_PREFIX};
use crate::model::count::count;
use crate::model::name::{Name, matching_names};
use crate::model::refname::RefName;
use crate::model::run::Run;
use crate::process::interrupt;
use crate::store::Store;
use crate::store::select::{Matching, Scope};
use crate::ui::table;

/// The variable that the scripts in completions/ set to the name of the shell.
const VARIABLE: &str = "FRITES_COMPLETE";

/// Answers a completion request of a shell; `None` if this is an ordinary call. `command` builds
/// the command line.
pub fn answer(command: fn() -> Command) -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    let completion = CompleteEnv::with_factory(|| {
        interrupt::keep_exit_codes_of_children();
        let mut command = command();
        command.build();
        with_hidden_options(command)
    })
    .var(VARIABLE)
    .bin("git-frites")
    .completer("git-frites");
    match completion.try_complete(std::env::args_os(), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The completion script of a shell that has none in completions/.
pub fn registration(shell: &str) -> Option<Vec<u8>> {
    let shells = clap_complete::env::Shells::builtins();
    let mut script = Vec::new();
    shells
        .completer(shell)?
        .write_registration(VARIABLE, "git-frites", "git-frites", "git-frites", &mut script)
        .ok()?;
    Some(script)
}

/// Hides all options of the command line. The engine offers hidden arguments only if there is
/// nothing else to offer, for instance after a `-`. git's own completion does the same.
fn with_hidden_options(command: Command) -> Command {
    let hide = |arg: Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    command.mut_args(hide).mut_subcommands(with_hidden_options)
}

/// The offers for a word.
pub type Offers = Vec<CompletionCandidate>;

/// Completes an argument by one of the functions below. The function gets the text that was typed
/// so far, and returns `None` if it cannot read what it needs.
pub fn by(offers: fn(&str) -> Option<Offers>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| typed.to_str().and_then(offers).unwrap_or_default())
}

fn offer(value: impl Into<OsString>, about: Option<String>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(about.map(StyledStr::from))
}

/// The words that begin with what was typed.
pub fn begun(words: impl IntoIterator<Item = String>, typed: &str) -> Offers {
    let begun = words.into_iter().filter(|word| word.starts_with(typed));
    begun.map(CompletionCandidate::new).collect()
}

/// The largest number of offers with a description. Reading a record takes long, so old runs are
/// offered by name alone.
const DESCRIBED: usize = 16;

/// The names that begin with what was typed, each with `before` in front of it. The first ones have
/// a description.
fn begun_names(
    names: &[Name],
    before: &str,
    typed: &str,
    about: impl Fn(&Name) -> Option<String>,
) -> Offers {
    let begun = names.iter().filter(|name| name.as_str().starts_with(typed)).enumerate();
    let offers = begun.map(|(at, name)| {
        let about = if at < DESCRIBED { about(name) } else { None };
        offer(format!("{before}{name}"), about)
    });
    offers.collect()
}

/// The runs of the repository of the current directory.
struct Runs {
    store: Store,
    /// Numbered runs, newest first; then named runs.
    names: Vec<Name>,
}

impl Runs {
    fn here() -> Option<Runs> {
        let repo = Arc::new(repository()?);
        let store = Store::of(&repo);
        repo.remember_refs(repo.refs_of_runs().ok()?);
        let mut names = store.run_names().ok()?;
        names.sort_by_key(|name| std::cmp::Reverse(name.number()));
        Some(Runs { store, names })
    }

    fn read(&self, name: &Name) -> Option<Run> {
        self.store.run(name).ok()?
    }

    /// The run called `word`, or else the only run whose name begins with it.
    fn called(&self, word: &str) -> Option<Run> {
        match matching_names(&self.names, &word.parse().ok()?).as_slice() {
            [one] => self.read(one),
            _ => None,
        }
    }

    /// The newest run. Only the run with the highest number and the named runs are read, because no
    /// other run can be the newest.
    fn newest(&self) -> Option<Run> {
        let (numbers, named): (Vec<&Name>, Vec<&Name>) =
            self.names.iter().partition(|name| name.number().is_some());
        let one_of = numbers.into_iter().take(1).chain(named);
        one_of.filter_map(|name| self.read(name)).max_by_key(|run| run.created)
    }

    fn offer(&self, typed: &str) -> Offers {
        begun_names(&self.names, "", typed, |name| {
            let run = self.read(name)?;
            let candidates = count(run.candidates.len(), "candidate");
            Some(format!("run of {candidates}, {} ago", table::age(run.created)))
        })
    }

    /// The tasks that runs and candidates are bound to, each with `before` in front of it.
    fn tasks(&self, before: &str) -> BTreeSet<String> {
        let runs: Vec<Run> = self.names.iter().filter_map(|name| self.read(name)).collect();
        let all = runs.iter().flat_map(|run| run.task.iter().chain(run.tasks.values()));
        all.map(|task| format!("{before}{task}")).collect()
    }

    /// Offers candidates as `RUN/CAND`. If a run was typed, offers its candidates. Otherwise,
    /// offers the candidates of the first runs whose names begin with the typed text.
    fn pairs(&self, typed: &str) -> Option<Offers> {
        let offer = |run: Run, rest: &str| self.offer_candidates(&run, &format!("{run}/"), rest);
        if let Some((run, rest)) = typed.split_once('/') {
            return Some(offer(self.called(run)?, rest));
        }
        let begun = self.names.iter().filter(|name| name.as_str().starts_with(typed));
        let runs = begun.take(DESCRIBED).filter_map(|name| self.read(name));
        Some(runs.flat_map(|run| offer(run, "")).collect())
    }

    /// The candidates of `run`, each with `before` in front of its name.
    fn offer_candidates(&self, run: &Run, before: &str, typed: &str) -> Offers {
        begun_names(&run.candidates, before, typed, |name| {
            let candidate = self.store.candidate(run, name).record().ok()?;
            Some(format!("candidate of run {run}, {}", candidate.state))
        })
    }
}

fn repository() -> Option<Repo> {
    Repo::discover(&std::env::current_dir().ok()?).ok()
}

pub fn runs(typed: &str) -> Option<Offers> {
    Some(Runs::here()?.offer(typed))
}

/// The ids of the tasks that runs and candidates are bound to.
pub fn tasks(typed: &str) -> Option<Offers> {
    Some(begun(Runs::here()?.tasks(""), typed))
}

/// Completes an address. `scope` says what the address may name: the command resolves the address
/// with the same scope.
pub fn address(scope: Scope) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        typed.to_str().and_then(|typed| addresses(scope, typed)).unwrap_or_default()
    })
}

/// Addresses: `RUN`, `RUN/CAND` or `RUN/CAND@N`. A candidate of the newest run is offered without
/// its run, too.
fn addresses(scope: Scope, typed: &str) -> Option<Offers> {
    let runs = Runs::here()?;
    if typed.starts_with(TASK_PREFIX) {
        return Some(begun(runs.tasks(TASK_PREFIX), typed));
    }
    if scope == Scope::Run {
        return Some(runs.offer(typed));
    }
    if !typed.contains('/') {
        let mut offers = runs.offer(typed);
        if let Some(newest) = runs.newest() {
            offers.extend(runs.offer_candidates(&newest, "", typed));
        }
        return Some(offers);
    }
    match typed.split_once('@') {
        None => runs.pairs(typed),
        Some(_) if scope != Scope::Iteration => None,
        Some((pair, _)) => {
            let (run, name) = pair.split_once('/')?;
            let run = runs.called(run)?;
            let newest = runs.store.candidate(&run, &name.parse().ok()?).latest().ok()??;
            let all = (1..=newest.iteration).map(|n| format!("{run}/{name}@{n}"));
            Some(begun(all, typed))
        }
    }
}

/// Candidates as `RUN/CAND`, for arguments that do not accept a run alone.
pub fn pairs(typed: &str) -> Option<Offers> {
    Runs::here()?.pairs(typed)
}

/// Candidates as `RUN/CAND`, and tasks.
pub fn pairs_and_tasks(typed: &str) -> Option<Offers> {
    if typed.starts_with(TASK_PREFIX) { addresses(Scope::Candidate, typed) } else { pairs(typed) }
}

/// Runs and their parts: candidates and `RUN/@base`.
pub fn parts(typed: &str) -> Option<Offers> {
    if typed.contains('/') { with_base(pairs(typed), typed) } else { runs(typed) }
}

/// Addresses, and `RUN/@base` for the run that was typed, or else for the newest run.
pub fn outputs(typed: &str) -> Option<Offers> {
    with_base(addresses(Scope::Iteration, typed), typed)
}

fn with_base(offers: Option<Offers>, typed: &str) -> Option<Offers> {
    let mut offers = offers.unwrap_or_default();
    let runs = Runs::here()?;
    let named = typed.split_once('/').and_then(|(run, _)| runs.called(run));
    if let Some(run) = named.or_else(|| runs.newest()) {
        let base = format!("{run}/@base");
        if base.starts_with(typed) {
            offers.push(offer(base, Some("what the run starts from".to_owned())));
        }
    }
    Some(offers)
}

/// The candidates of one run: of the last run that an earlier word of the command line names, or
/// else of the newest run.
pub fn candidates(typed: &str) -> Option<Offers> {
    let runs = Runs::here()?;
    let words = std::env::args().skip_while(|arg| arg != "--").skip(2);
    let named = words.filter_map(|word| match word.parse().ok()? {
        Address::Pair { run, .. } => runs.called(run.as_str()),
        Address::Word { word, .. } => runs.names.contains(&word).then(|| runs.read(&word))?,
        task @ Address::Task(_) => {
            Some(runs.store.select(Some(&task), Scope::Run, Matching::Prefix).ok()?.run)
        }
    });
    let run = named.last().or_else(|| runs.newest())?;
    Some(runs.offer_candidates(&run, "", typed))
}

/// HEAD, branches, tags and remote branches, except the branches of git-frites.
pub fn revisions(typed: &str) -> Option<Offers> {
    let kinds =
        [("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch")];
    let mut offers = refs(&kinds, typed).unwrap_or_default();
    if "HEAD".starts_with(typed) {
        offers.push(offer("HEAD", Some("current commit".to_owned())));
    }
    Some(offers)
}

/// The targets of a merge: branches, candidates, tasks and the word `parent`.
pub fn targets(typed: &str) -> Option<Offers> {
    let repo = repository()?;
    let current = repo.head_branch();
    let is_target = |name: &OsStr| {
        let branch = RefName::of_branch(name.to_string_lossy());
        current.as_ref() == Some(&branch)
            || worktree::holder_of(&repo, &branch, None).is_ok_and(|holder| holder.is_none())
    };
    let mut offers = refs(&[("refs/heads/", "branch")], typed).unwrap_or_default();
    offers.retain(|offer| is_target(offer.get_value()));
    offers.extend(pairs_and_tasks(typed).unwrap_or_default());
    if "parent".starts_with(typed) {
        offers.push(offer("parent", Some("the candidate that the run was spawned from".into())));
    }
    Some(offers)
}

fn refs(kinds: &[(&str, &str)], typed: &str) -> Option<Offers> {
    let repo = repository()?;
    let mut offers = Offers::new();
    for (prefix, kind) in kinds {
        let names = repo.ref_names(prefix).unwrap_or_default();
        let short = names.iter().filter_map(|name| name.strip_prefix(prefix));
        let begun = short.filter(|name| name.starts_with(typed) && !name.starts_with("frites/"));
        offers.extend(begun.map(|name| offer(name, Some((*kind).to_owned()))));
    }
    Some(offers)
}

/// The agents, built in or configured.
pub fn agents(typed: &str) -> Option<Offers> {
    Some(begun(agent_names(), typed))
}

/// The names of the agents. Starts git to read the configuration, which can name further agents.
fn agent_names() -> Vec<String> {
    agents::names(&configuration().unwrap_or_default())
}

fn configuration() -> Option<Config> {
    let repo = Arc::new(repository()?);
    let root = Store::of(&repo).users_checkout().ok()?;
    Config::load(root.as_deref(), &repo.settings_of("frites").ok()?).ok()
}

/// The keys of the configuration. Keys of agents are offered only if the typed text begins like
/// one.
pub fn keys(typed: &str) -> Option<Offers> {
    let agents = LazyCell::new(agent_names);
    let mut offers = Offers::new();
    for spec in config::keys::ALL {
        let names = match spec.name.split_once('*') {
            None => vec![spec.name.to_owned()],
            Some((before, after))
                if !typed.is_empty()
                    && (before.starts_with(typed) || typed.starts_with(before)) =>
            {
                agents.iter().map(|name| format!("{before}{name}{after}")).collect()
            }
            Some(_) => Vec::new(),
        };
        let begun = names.into_iter().filter(|name| name.starts_with(typed));
        offers.extend(begun.map(|name| offer(name, Some(spec.about.to_owned()))));
    }
    Some(offers)
}
