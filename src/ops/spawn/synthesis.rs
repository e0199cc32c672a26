//! Synthesis: one more candidate, which integrates the candidates that passed. It begins with the
//! recommended candidate's files, and its prompt has the patches of the others. It is judged like
//! any other candidate (git-frites-run(1)).
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use crate::agents;
use crate::config::keys;
use crate::config::value::SynthesisMode;
use crate::error::{Error, Result};
use crate::git::diff;
use crate::integrity::trust;
use crate::model::name::{Name, RULE};
use crate::model::oid::Oid;
use crate::model::run::{Assignment, Run, Synthesis};
use crate::model::verdict::{Entry, Verdict};
use crate::ops::session::Session;
use crate::ops::spawn::attempts::AttemptOptions;
use crate::ops::spawn::command::CandidateCommand;
use crate::ops::spawn::cost_limit;
use crate::ops::spawn::limits;
use crate::ops::spawn::prepare::Preparation;
use crate::ops::spawn::stopped_agents;
use crate::ops::spawn::{SpawnedRun, make};
use crate::process::Limits;
use crate::store::candidate::CandidateRef;
use crate::store::events::Event;

/// Finds the maker of a run's synthesis: `synthesis.agent`, else the recommended candidate's agent,
/// else, if the run has a prompt, the run's command. The inner error is the reason why no synthesis
/// is made. Fails if `synthesis.agent` is not the name of an agent.
///
/// `mode` is the user's `--synthesis`, and overrides `synthesis.mode`.
pub fn maker(
    session: &Session,
    run: &Run,
    verdict: &Verdict,
    mode: Option<SynthesisMode>,
) -> Result<std::result::Result<Assignment, String>> {
    let nobody = |reason: &str| Ok(Err(reason.to_owned()));
    if let Some(reason) = why_off(session, mode) {
        return nobody(reason);
    }
    if !run.synthesis.is_empty() {
        return nobody("the run has one already");
    }
    let found = distinct(verdict);
    let best = match found.as_slice() {
        [] => return nobody("no candidate passed: nothing to combine"),
        [_] => return nobody("one distinct tree passed: nothing to combine"),
        _ if !verdict.verified() => return nobody("the verdict is not verified"),
        [best, ..] => &best.candidate,
    };
    if let Some(reached) = cost_limit::reached(session, run)? {
        session.ui.hint(reached.go_on);
        return nobody(&reached.words);
    }
    let of_best = run.agents.get(best).map(|a| Assignment { framing: None, ..a.clone() });
    if let Some(assignment) = configured_agent(session)?.or(of_best) {
        if let Some(agent) = &assignment.agent
            && let Some(why) = stopped_agents::why_stopped(session, run, agent)?
        {
            return nobody(&why);
        }
        return Ok(Ok(assignment));
    }
    if run.prompt.is_none() {
        return nobody(
            "no agent made the best candidate, and the run has no prompt for its command",
        );
    }
    let command: Vec<OsString> = run.command.iter().map(OsString::from).collect();
    Ok(Ok(CandidateCommand::to_assignment(&command)))
}

/// The reason why the user wants no synthesis; `None` if the user wants one.
fn why_off(session: &Session, mode: Option<SynthesisMode>) -> Option<&'static str> {
    match mode {
        Some(SynthesisMode::Off) => Some("--synthesis is off"),
        None if session.config.get(keys::SYNTHESIS_MODE) == SynthesisMode::Off => {
            Some("synthesis.mode is off")
        }
        _ => None,
    }
}

/// The maker that a synthesis of candidates with these commands would probably have, in words;
/// `None` if no synthesis would be made.
pub fn likely_maker(
    session: &Session,
    commands: &[(Name, CandidateCommand)],
    mode: Option<SynthesisMode>,
) -> Result<Option<String>> {
    if why_off(session, mode).is_some() || commands.len() < 2 {
        return Ok(None);
    }
    if let Some(Assignment { agent: Some(agent), .. }) = configured_agent(session)? {
        return Ok(Some(format!("the agent {agent}")));
    }
    let agents: BTreeSet<&Name> = commands.iter().filter_map(|(_, c)| c.agent.as_ref()).collect();
    let has_prompt = commands.iter().any(|(_, command)| command.prompt.is_some());
    Ok(match Vec::from_iter(agents).as_slice() {
        [] => has_prompt.then(|| "the same command".to_owned()),
        [agent] => Some(format!("the agent {agent}")),
        _ => Some("the winner's agent".to_owned()),
    })
}

/// The agent that `synthesis.agent` names; `None` if it is not set. Fails if there is no such
/// agent.
pub fn configured_agent(session: &Session) -> Result<Option<Assignment>> {
    let Some(name) = session.config.get(keys::SYNTHESIS_AGENT) else { return Ok(None) };
    let name: Name =
        name.parse().map_err(|e| Error::fatal(format!("synthesis.agent: {e}")).hint(RULE))?;
    let assigned = agents::assign(&session.config, &name, 1).map_err(|e| {
        // The mistake is in the configuration, not in the user's arguments. So the error is fatal,
        // and not about usage.
        let error = Error::fatal(format!("synthesis.agent: {e}"));
        e.hints.into_iter().fold(error, Error::hint)
    })?;
    Ok(Some(Assignment { framing: None, ..assigned }))
}

/// The options for the command of a synthesis. `options` are those of the run's other commands.
pub fn options(session: &Session, options: &AttemptOptions) -> AttemptOptions {
    let hard = session.config.get(keys::SYNTHESIS_TIMEOUT).or(options.limits.hard);
    AttemptOptions { limits: Limits { hard, ..options.limits }, ..options.clone() }
}

/// Records in a verdict why no synthesis was made. Leaves the stored verdict unchanged if another
/// process works on the run or has judged it meanwhile.
pub fn explain_skip(session: &Session, verdict: &mut Verdict, reason: String) -> Result<()> {
    verdict.no_synthesis = Some(reason);
    let store = &session.store;
    let Some(_lock) = store.try_lock_run(&verdict.run)? else { return Ok(()) };
    let stored = store.verdict(&verdict.run)?;
    if let (Some(run), Some(stored)) = (store.run(&verdict.run)?, stored)
        && stored.judged == verdict.judged
    {
        store.save_record(&run, Some(verdict), &store.judged(&run.run)?)?;
    }
    Ok(())
}

/// The candidates that a synthesis integrates, the best first. They passed, and not only with their
/// own tests. Of candidates with the same tree, only the best is taken. Earlier syntheses are left
/// out.
fn distinct(verdict: &Verdict) -> Vec<&Entry> {
    let mut found: Vec<&Entry> = Vec::new();
    let ranked = verdict.decision.ranking.iter().filter_map(|name| verdict.entry(name));
    let passed = |e: &Entry| e.passed() && !e.passed_own_tests_only();
    for entry in ranked.filter(|e| passed(e) && e.drew_on.is_empty()) {
        if found.iter().all(|other| other.judged() != entry.judged()) {
            found.push(entry);
        }
    }
    found
}

/// Adds a candidate for the synthesis to a run. `assignment` is its command.
///
/// Fails if the run was not judged, or if fewer than two candidates with different trees passed.
pub fn add(session: &Session, run: &Run, assignment: Assignment) -> Result<SpawnedRun> {
    let Session { repo, store, .. } = session;
    trust::require_trust(session.integrity(), Some(run))?;
    trust::require_own_record(session.integrity(), run)?;
    limits::require_depth(session)?;
    if let Some(reached) = cost_limit::reached(session, run)? {
        return Err(reached.into_error(run));
    }
    // While this lock is held, no other process judges the run, adds candidates to it, or removes
    // it.
    let (lock, mut run) = store.lock_and_read(&run.run)?;
    limits::require_room(session, run.candidates.len(), 1)?;
    let verdict = store.verdict(&run.run)?.ok_or_else(|| {
        Error::no(format!("run {run} was not judged, so nothing in it has passed yet"))
            .hint(format!("judge it first: `git frites judge {run}`"))
    })?;
    let material = distinct(&verdict);
    if material.len() < 2 {
        let Verdict { run, decision, .. } = &verdict;
        let why = format!("there is nothing to integrate in run {run}: {}", decision.rationale);
        return Err(Error::no(why)
            .hint("a synthesis needs two candidates that passed with different results"));
    }
    let text: Arc<[u8]> = prompt(session, &run, &verdict, &material)?.into();
    let command = CandidateCommand::assigned(&assignment, Some(text.clone()));
    command.require_prompt()?;
    command.require_program()?;
    let preparation = Preparation::new(session, &run.base, 1)?;
    let seed = *tree(&run, material[0]);

    let name = next_name(&run)?;
    let commands = vec![(name.clone(), command)];
    preparation.warn_of_missing_files(session, &seed, &commands)?;
    let drew_on = material.iter().map(|e| e.candidate.clone()).collect();
    let synthesis = Synthesis { drew_on, seed, prompt: repo.store_blob(text.as_ref())? };
    let event = Event::Synthesis { candidate: name.clone(), drew_on: synthesis.drew_on.clone() };
    run.candidates.push(name.clone());
    run.agents.insert(name.clone(), assignment);
    run.synthesis.insert(name.clone(), synthesis);
    let names = vec![name];
    let prepared = make(session, &run, &names, store.lock_repository()?, &preparation)?;
    session.record_or_warn(&run.run, &event);
    preparation.report(session, &run, &names, &prepared);
    Ok(SpawnedRun { run, names, commands, prepared, lock })
}

/// The first free name for a synthesis. The number of names that are tried is one more than the run
/// has candidates, so one is free.
fn next_name(run: &Run) -> Result<Name> {
    let mut names = (1..=run.candidates.len() + 1)
        .map(|n| format!("synthesis-{n}").parse::<Name>().expect("the name is valid"));
    let free = names.find(|name| !run.candidates.iter().any(|other| other.collides(name)));
    free.ok_or_else(|| Error::internal("no name is left for a synthesis"))
}

fn tree<'a>(run: &'a Run, entry: &'a Entry) -> &'a Oid {
    entry.judged().unwrap_or(&run.base)
}

/// The prompt of a synthesis: the base, the task, the files that its worktree changes, and the
/// other attempts' patches, the smallest first. It also says where the files of these attempts are.
/// Once the patches exceed `synthesis.prompt-limit`, only the names of the changed files are
/// listed.
fn prompt(session: &Session, run: &Run, verdict: &Verdict, material: &[&Entry]) -> Result<Vec<u8>> {
    let Session { repo, store, .. } = session;
    let best = material[0];
    let others = &material[1..];
    let checks: Vec<String> =
        verdict.terms.oracle.iter().map(|c| format!("{}: `{}`", c.stage, c.command)).collect();
    let mut text = format!(
        "Several attempts were made at one task, each on its own, and these passed the project's own checks. This \
         worktree holds the best of them, {best}, as changes that are not committed. Bring into it what the others do \
         better: a case that it forgets, a simpler way, a test.\n\n\
         Integrate, do not concatenate: the result must read as if one person had written it, and be about as small as \
         the attempts themselves. Where they differ in taste alone, leave {best} as it is; change nothing if nothing is \
         worth taking. Do not commit. The same checks run afterwards: {checks}.\n\n\
         All attempts began at the commit {base}; `git diff {base}` shows what this worktree changes. The paths of the \
         other attempts below are for reading only: change nothing there.\n\n# The task\n\n",
        best = best.candidate,
        base = run.base,
        checks = checks.join(", "),
    )
    .into_bytes();
    match &run.prompt {
        Some(blob) => text.extend(repo.blob(blob)?.trim_ascii()),
        None => text.extend(format!("What the command `{}` does.", run.command.join(" ")).bytes()),
    }
    let Entry { candidate, blast, .. } = best;
    text.extend(format!("\n\n# {candidate}, which stands in this worktree: {blast}\n\n").bytes());
    text.extend(list(&diff::since(repo, &run.base, tree(run, best)).changes()?));
    let mut by_size = others.to_vec();
    by_size.sort_by_key(|e| (e.blast, e.index));
    let limit = session.config.get(keys::SYNTHESIS_PROMPT_LIMIT).0;
    let mut room = usize::try_from(limit).unwrap_or(usize::MAX);
    for entry in by_size {
        let patch = diff::since(repo, &run.base, tree(run, entry)).patch()?;
        text.extend(format!("\n# {}: {}\n\n", entry.candidate, entry.blast).bytes());
        if patch.bytes.len() <= room {
            room -= patch.bytes.len();
            let fence = fence(&patch.bytes);
            text.extend(
                [fence.as_bytes(), b"diff\n", &patch.bytes, fence.as_bytes(), b"\n\n"].concat(),
            );
        } else {
            room = 0;
            text.extend(list(&patch.changes));
            text.extend(b"\nIt is too long to be shown. ");
        }
        text.extend(places_to_read(store.candidate(run, &entry.candidate)).bytes());
    }
    Ok(text)
}

/// A sentence for the prompt that says where a candidate's change can be read.
fn places_to_read(candidate: CandidateRef<'_>) -> String {
    let patch = candidate.directory().patch();
    let worktree = candidate.worktree();
    if worktree.is_dir() {
        format!("Its patch is in {}, its files are in {}.\n", patch.display(), worktree.display())
    } else {
        // The candidate was cleaned, but its captures stay.
        let capture = candidate.capture_ref();
        format!("Its files are in git: `git show {capture}:PATH`.\n")
    }
}

/// The paths that a change touches, one per line.
fn list(changes: &[diff::Change]) -> Vec<u8> {
    changes.iter().flat_map(|change| [b"- ", change.path.as_bytes(), b"\n"].concat()).collect()
}

/// A Markdown fence that is longer than every sequence of backquotes in the text.
fn fence(text: &[u8]) -> String {
    let longest = text.split(|b| *b != b'`').map(<[u8]>::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}
