//! Shell completion: the runs, candidates, branches, agents and keys that an argument can name.
//!
//! A TAB must be quick and must never print: completers read the repository in process, and skip
//! what they cannot read. Each argument names its completer.
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;

use crate::agents;
use crate::config::{self, Config};
use crate::git::repo::Repo;
use crate::model::address::{Address, TASK};
use crate::model::count::count;
use crate::model::name::{Name, matching_names};
use crate::model::run::Run;
use crate::store::Store;
use crate::store::select::Matching;
use crate::ui::table;

/// The variable that the scripts in completions/ set to the name of the shell.
const VARIABLE: &str = "FRITES_COMPLETE";

/// Answers a completion request of a shell; `None` if this is an ordinary call. `command` builds the
/// command line.
pub fn answer(command: fn() -> Command) -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    let completion = CompleteEnv::with_factory(|| {
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

/// The command line with hidden options: the engine offers hidden arguments only if there is
/// nothing else, for instance after a `-`. git does the same.
fn with_hidden_options(command: Command) -> Command {
    let hide = |arg: Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    command.mut_args(hide).mut_subcommands(with_hidden_options)
}

type Offers = Vec<CompletionCandidate>;

fn offer(value: impl Into<OsString>, about: Option<String>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(about.map(StyledStr::from))
}

/// The largest number of offers with a description. Reading a record takes long, so old runs are
/// offered by name alone.
const DESCRIBED: usize = 16;

/// The runs of the repository of the current directory.
struct Runs {
    store: Store,
    /// Numbered runs, newest first; then named runs.
    names: Vec<Name>,
}

impl Runs {
    fn here() -> Option<Runs> {
        let repo = Arc::new(Repo::discover(&std::env::current_dir().ok()?).ok()?);
        let store = Store::of(&repo);
        repo.remember_refs(repo.refs_of_runs().ok()?);
        let mut names = store.run_names().ok()?;
        names.sort_by_key(|name| std::cmp::Reverse(name.number()));
        Some(Runs { store, names })
    }

    fn read(&self, name: &Name) -> Option<Run> {
        self.store.run(name).ok()?
    }

    /// The run with that name, or the only run whose name begins with it.
    fn called(&self, word: &Name) -> Option<Run> {
        match matching_names(&self.names, word).as_slice() {
            [one] => self.read(one),
            _ => None,
        }
    }

    /// The newest run: the one with the highest number, or a named one.
    fn newest(&self) -> Option<Run> {
        let (numbers, named): (Vec<&Name>, Vec<&Name>) =
            self.names.iter().partition(|name| name.number().is_some());
        let one_of = numbers.into_iter().take(1).chain(named);
        one_of.filter_map(|name| self.read(name)).max_by_key(|run| run.created)
    }

    fn offer(&self, current: &str) -> Offers {
        let begun = self.names.iter().filter(|name| name.as_str().starts_with(current)).enumerate();
        let about = |name: &Name| {
            let run = self.read(name)?;
            let candidates = count(run.candidates.len(), "candidate");
            Some(format!("run of {candidates}, {} ago", table::age(run.created)))
        };
        begun
            .map(|(at, name)| offer(name.as_str(), (at < DESCRIBED).then(|| about(name)).flatten()))
            .collect()
    }

    /// The tasks that runs and candidates are bound to, as addresses.
    fn offer_tasks(&self, current: &str) -> Offers {
        let runs: Vec<Run> = self.names.iter().filter_map(|name| self.read(name)).collect();
        let all = runs.iter().flat_map(|run| run.task.iter().chain(run.tasks.values()));
        let all: BTreeSet<String> = all.map(|task| format!("{TASK}{task}")).collect();
        let begun = all.iter().filter(|address| address.starts_with(current));
        begun.map(CompletionCandidate::new).collect()
    }

    /// The candidates of `run`, each with `before` in front of its name.
    fn offer_candidates(&self, run: &Run, before: &str, current: &str) -> Offers {
        let begun =
            run.candidates.iter().filter(|name| name.as_str().starts_with(current)).enumerate();
        let about = |name: &Name| {
            let candidate = self.store.candidate(run, name).record().ok()?;
            Some(format!("candidate of run {}, {}", run.run, candidate.state))
        };
        let offer = |(at, name)| {
            offer(format!("{before}{name}"), (at < DESCRIBED).then(|| about(name)).flatten())
        };
        begun.map(offer).collect()
    }
}

/// All runs.
pub fn runs(current: &OsStr) -> Offers {
    let (Some(current), Some(runs)) = (current.to_str(), Runs::here()) else {
        return Offers::new();
    };
    runs.offer(current)
}

/// The ids of the tasks that runs and candidates are bound to.
pub fn tasks(current: &OsStr) -> Offers {
    let (Some(current), Some(runs)) = (current.to_str(), Runs::here()) else {
        return Offers::new();
    };
    runs.offer_tasks("")
        .into_iter()
        .filter_map(|offer| {
            let address = offer.get_value().to_str()?.strip_prefix(TASK)?.to_owned();
            address.starts_with(current).then(|| CompletionCandidate::new(address))
        })
        .collect()
}

/// All runs, and the tasks that they are bound to.
pub fn runs_and_tasks(current: &OsStr) -> Offers {
    match (current.to_str(), Runs::here()) {
        (Some(current), Some(all)) if current.starts_with(TASK) => all.offer_tasks(current),
        _ => runs(current),
    }
}

/// Addresses: `RUN`, `RUN/CAND` or `RUN/CAND@N`; candidates of the newest run also without their
/// run.
pub fn addresses(current: &OsStr) -> Offers {
    let (Some(current), Some(runs)) = (current.to_str(), Runs::here()) else {
        return Offers::new();
    };
    if current.starts_with(TASK) {
        return runs.offer_tasks(current);
    }
    let Some((typed, rest)) = current.split_once('/') else {
        let mut offers = runs.offer(current);
        offers.extend(
            runs.newest()
                .into_iter()
                .flat_map(|newest| runs.offer_candidates(&newest, "", current)),
        );
        return offers;
    };
    let Some(run) = typed.parse().ok().and_then(|word| runs.called(&word)) else {
        return Offers::new();
    };
    if let Some((name, _)) = rest.split_once('@') {
        let newest =
            name.parse().ok().and_then(|name| runs.store.candidate(&run, &name).latest().ok()?);
        let all = (1..=newest.map_or(0, |capture| capture.iteration))
            .map(|n| format!("{}/{name}@{n}", run.run));
        return all
            .filter(|text| text.starts_with(current))
            .map(CompletionCandidate::new)
            .collect();
    }
    runs.offer_candidates(&run, &format!("{}/", run.run), rest)
}

/// Addresses, and the base of each run.
pub fn outputs(current: &OsStr) -> Offers {
    let mut offers = addresses(current);
    if let (Some(text), Some(runs)) = (current.to_str(), Runs::here()) {
        let typed = text.split_once('/').map(|(run, _)| run);
        let run = typed.and_then(|run| runs.called(&run.parse().ok()?)).or_else(|| runs.newest());
        let base = run.map(|run| format!("{}/@base", run.run));
        let base = base.filter(|base| base.starts_with(text));
        offers.extend(base.map(|base| offer(base, Some("what the run starts from".to_owned()))));
    }
    offers
}

/// The candidates of the run that the command line names before, or of the newest run.
pub fn candidates(current: &OsStr) -> Offers {
    let (Some(current), Some(runs)) = (current.to_str(), Runs::here()) else {
        return Offers::new();
    };
    let typed = std::env::args().skip_while(|arg| arg != "--").skip(2);
    let named = typed.filter_map(|word| match word.parse().ok()? {
        Address::Pair { run, .. } => runs.called(&run),
        Address::Word { word, .. } => runs.names.contains(&word).then(|| runs.read(&word))?,
        task @ Address::Task(_) => Some(runs.store.select(Some(&task), Matching::Prefix).ok()?.run),
    });
    let Some(run) = named.last().or_else(|| runs.newest()) else { return Offers::new() };
    runs.offer_candidates(&run, "", current)
}

/// Branches, tags and remote branches, without those of git-frites.
pub fn revisions(current: &OsStr) -> Offers {
    let mut offers = refs(
        current,
        &[("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch")],
    );
    if current.to_str().is_some_and(|current| "HEAD".starts_with(current)) {
        offers.push(offer("HEAD", Some("current commit".to_owned())));
    }
    offers
}

/// The targets of a merge: branches, candidates and the word `parent`.
pub fn targets(current: &OsStr) -> Offers {
    let mut offers = refs(current, &[("refs/heads/", "branch")]);
    offers.extend(addresses(current));
    if current.to_str().is_some_and(|word| "parent".starts_with(word)) {
        offers.push(offer("parent", Some("the candidate that the run was spawned from".into())));
    }
    offers
}

fn refs(current: &OsStr, prefixes: &[(&str, &str)]) -> Offers {
    let here = std::env::current_dir().ok();
    let repo = here.and_then(|here| Repo::discover(&here).ok());
    let (Some(current), Some(repo)) = (current.to_str(), repo) else { return Offers::new() };
    let mut offers = Offers::new();
    for (prefix, kind) in prefixes {
        for name in repo.ref_names(prefix).unwrap_or_default() {
            let short = &name[prefix.len()..];
            if short.starts_with(current) && !short.starts_with("frites/") {
                offers.push(offer(short, Some((*kind).to_owned())));
            }
        }
    }
    offers
}

/// The agents, built in or configured.
pub fn agents(current: &OsStr) -> Offers {
    let begun = agent_names()
        .into_iter()
        .filter(|name| current.to_str().is_some_and(|current| name.starts_with(current)));
    begun.map(CompletionCandidate::new).collect()
}

/// The names of the agents. Only their completers start git, to read the configuration.
fn agent_names() -> Vec<String> {
    let here = std::env::current_dir().ok();
    let config = here.and_then(|here| {
        let repo = Arc::new(Repo::discover(&here).ok()?);
        let root = Store::of(&repo).users_checkout().ok()?;
        Config::load(root.as_deref(), &repo.settings_of("frites").ok()?).ok()
    });
    agents::names(&config.unwrap_or_default())
}

/// The keys of the configuration; those of agents once one of them may be meant.
pub fn keys(current: &OsStr) -> Offers {
    let Some(current) = current.to_str() else { return Offers::new() };
    let agents = LazyCell::new(agent_names);
    let mut offers = Offers::new();
    for spec in config::keys::ALL {
        let about = || Some(spec.about.to_owned());
        match spec.name.split_once('*') {
            None if spec.name.starts_with(current) => offers.push(offer(spec.name, about())),
            Some((before, after))
                if !current.is_empty()
                    && (before.starts_with(current) || current.starts_with(before)) =>
            {
                let keys = agents.iter().map(|name| format!("{before}{name}{after}"));
                let begun = keys.filter(|key| key.starts_with(current));
                offers.extend(begun.map(|key| offer(key, about())));
            }
            _ => {}
        }
    }
    offers
}
