//! `git frites status`: shows runs and candidates, their states, and the disk space that they use.
mod document;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use serde_json::{Value, json};

use crate::commands::status::document::{Member, ShownRun, conflicts};
use crate::commands::values;
use crate::complete;
use crate::config::keys;
use crate::error::{Result, exit};
use crate::integrity::baseline;
use crate::model::address::Address;
use crate::model::board::Standing;
use crate::model::candidate::{Candidate, State};
use crate::model::name::Name;
use crate::model::run::{Parent, Run};
use crate::model::usage::UsageSum;
use crate::model::verdict::Verdict;
use crate::ops::board::{self, Elsewhere};
use crate::ops::corrected;
use crate::ops::history::{self, DiskUse};
use crate::ops::session::ReadSession;
use crate::oracle::cache::UserCache;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Scope};
use crate::ui::comparison;
use crate::ui::live::texts;
use crate::ui::screen::Screen;
use crate::ui::style::Tone;
use crate::ui::table::{self, Grid};

pub use crate::commands::status::document::history_as_json;

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Run or candidate to show  [default: the newest run, and those that have worktrees]
    #[arg(value_name = "RUN[/CAND]", add = complete::address(Scope::Candidate))]
    pub address: Option<Address>,
    /// Show all runs and candidates that are bound to this task
    #[arg(
        long,
        value_name = "ID",
        value_parser = values::task,
        conflicts_with = "address",
        add = complete::by(complete::tasks),
    )]
    pub task: Option<String>,
    /// Show all runs, also older ones without worktrees; --json always does
    #[arg(short, long, conflicts_with = "address")]
    pub all: bool,
    /// Update the display, at most once a second, until no command runs; if the output is not a
    /// terminal, print one line per change
    #[arg(short, long, conflicts_with = "json")]
    pub watch: bool,
    /// Measure how much disk space the runs and the cache use, instead of showing the last
    /// measurement
    #[arg(long, conflicts_with = "watch")]
    pub disk: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The shortest time between two updates.
const PAUSE: Duration = Duration::from_secs(1);

/// Shows only what is recorded: captures nothing, and measures nothing unless `--disk` is given.
pub fn run(session: &ReadSession, args: &StatusArgs) -> Result<u8> {
    if args.watch {
        return watch(session, args);
    }
    let runs = chosen(session, args)?;
    if args.disk {
        for (run, _) in &runs {
            history::measure(&session.store, run)?;
        }
    }
    if args.json {
        return answer_json(session, args, runs);
    }
    if runs.is_empty() {
        say_why_nothing_is_shown(session, args);
    }
    let (runs, left_out) = worth_showing(session, args, runs);
    let runs = read_all(session, runs)?;
    let mut text = show_all(session, &runs)?;
    let judged = match runs.as_slice() {
        [one @ ShownRun { only: None, .. }] if args.address.is_some() => {
            session.store.verdict(&one.run.run)?.map(|verdict| (one, verdict))
        }
        _ => None,
    };
    if let Some((_, verdict)) = &judged {
        text.push_str(&format!("\n{}", comparison::text(session.ui.out, verdict)));
        // The agents' usage is left out here, because it was already shown above, including the
        // usage since the verdict.
        for line in comparison::remarks_with_usage(verdict, None) {
            text.push_str(&format!("{}\n", table::printable(&line)));
        }
    }
    session.ui.answer(text);
    if let Some((one, verdict)) = &judged {
        hint_at_changes(session, one, verdict);
    }
    if args.disk {
        let (cache, limit) = cache(session)?;
        session.ui.answer(format!(
            "\ncache of all your repositories: build outputs {} of at most {}, outcomes {}\n",
            table::size(cache.layers()),
            table::size(limit),
            table::size(cache.outcomes())
        ));
        session.ui.hint("`git frites clean --cache --all` empties it");
    }
    runs.iter().try_for_each(|one| hint_at_corrections(session, one))?;
    if left_out > 0 {
        let plural = if left_out == 1 { "run has" } else { "runs have" };
        session.ui.hint(format!(
            "{left_out} older {plural} no worktree any more: `git frites status --all`"
        ));
    }
    Ok(exit::OK)
}

/// Prints hints about failed attempts that a person has corrected since.
fn hint_at_corrections(session: &ReadSession, one: &ShownRun) -> Result<()> {
    for Member { record, capture, .. } in one.shown() {
        let candidate = session.store.candidate(&one.run, &record.candidate);
        let tree = capture.as_ref().map(|capture| &capture.tree);
        if corrected::is_corrected(candidate, record.state, tree)? {
            session.ui.hint(corrected::hint(candidate));
        }
    }
    Ok(())
}

/// Prints the runs as one JSON document.
fn answer_json(
    session: &ReadSession,
    args: &StatusArgs,
    runs: Vec<(Run, Option<Name>)>,
) -> Result<u8> {
    let runs = read_all(session, runs)?;
    let all: Vec<Value> =
        runs.iter().map(|one| document::run(session, one)).collect::<Result<_>>()?;
    let mut document = json!({ "runs": all });
    if args.disk {
        let (cache, limit) = cache(session)?;
        document["cache"] = json!({
            "layers": cache.layers(), "limit": limit, "outcomes": cache.outcomes(),
        });
    }
    session.ui.answer_json(document);
    Ok(exit::OK)
}

fn say_why_nothing_is_shown(session: &ReadSession, args: &StatusArgs) {
    match &args.task {
        Some(task) => {
            session.ui.note(format!("nothing is bound to the task '{}'", table::printable(task)));
            session.ui.hint("bind a run or a candidate with `git frites task RUN ID`");
        }
        None => {
            session.ui.note("there is no run yet");
            session.ui.hint("start one with `git frites spawn`");
        }
    }
}

/// Prints hints about candidates that have changed since their run was judged.
fn hint_at_changes(session: &ReadSession, shown: &ShownRun, verdict: &Verdict) {
    let is_as_judged = |member: &&Member| {
        let iteration = member.capture.as_ref().map(|capture| capture.iteration);
        let entry = verdict.entry(&member.record.candidate);
        entry.is_some_and(|e| e.iteration == iteration && e.state == member.record.state)
    };
    let changed = shown.members.iter().filter(|member| !is_as_judged(member));
    let changed: Vec<&str> = changed.map(|member| member.record.candidate.as_str()).collect();
    if !changed.is_empty() {
        session.ui.hint(format!(
            "{} changed since this verdict: `{}` judges the run as it is now",
            changed.join(", "),
            verdict.terms.judge_command(&shown.run.run, "")
        ));
    }
}

/// The caches of all the user's repositories, and the limit for their build outputs in bytes.
fn cache(session: &ReadSession) -> Result<(UserCache, u64)> {
    let limit = session.config()?.get(keys::LIMITS_LAYERS).0;
    Ok((UserCache::of_all(&session.repo)?, limit))
}

/// The runs to show, and the number of runs that are left out. Without an address, a task or
/// `--all`, the newest run and the runs with worktrees are shown.
fn worth_showing(
    session: &ReadSession,
    args: &StatusArgs,
    mut runs: Vec<(Run, Option<Name>)>,
) -> (Vec<(Run, Option<Name>)>, usize) {
    if args.all || args.address.is_some() || args.task.is_some() {
        return (runs, 0);
    }
    let all = runs.len();
    let newest = runs.iter().map(|(run, _)| run.created).max();
    runs.retain(|(run, _)| {
        Some(run.created) == newest || session.store.candidates(run).any(|c| c.worktree().exists())
    });
    let left_out = all - runs.len();
    (runs, left_out)
}

fn chosen(session: &ReadSession, args: &StatusArgs) -> Result<Vec<(Run, Option<Name>)>> {
    if let Some(task) = &args.task {
        return session.store.bound_to(task);
    }
    if args.address.is_none() {
        return Ok(session.store.runs()?.into_iter().map(|run| (run, None)).collect());
    }
    let selection =
        session.store.select(args.address.as_ref(), Scope::Candidate, Matching::Prefix)?;
    Ok(vec![(selection.run, selection.candidate)])
}

/// Updates the display until no command runs. If the output is not a terminal, prints each change.
fn watch(session: &ReadSession, args: &StatusArgs) -> Result<u8> {
    let screen = session.ui.can_redraw().then(|| Screen::on(Term::buffered_stdout()));
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    let mut idle = 0;
    loop {
        let began = Instant::now();
        session.repo.remember_refs(session.repo.refs_of_runs()?);
        let (runs, _) = worth_showing(session, args, chosen(session, args)?);
        let mut busy = false;
        let mut news = String::new();
        for (run, only) in &runs {
            let Elsewhere { rows, missing, .. } = at_work(session, run, only.as_ref());
            busy |= rows.iter().any(|row| row.standing == Standing::Running);
            let mut now: Vec<(String, String)> =
                rows.iter().map(|row| (row.address.clone(), row.in_words())).collect();
            if !missing.is_empty() {
                now.push((run.run.to_string(), missing));
            }
            for candidate in session.store.candidates(run) {
                let address = candidate.address();
                let record = candidate.record()?;
                if only.as_ref().is_some_and(|only| only != candidate.name) {
                    continue;
                }
                busy |= record.state == State::Running;
                if now.iter().all(|(known, _)| *known != address) {
                    now.push((address, record.state_in_words()));
                }
            }
            for (address, words) in now {
                if shown.get(&address) != Some(&words) {
                    news.push_str(&format!("{address}\t{words}\n"));
                    shown.insert(address, words);
                }
            }
        }
        if let Some(screen) = &screen {
            let text = show_all(session, &read_all(session, runs)?)?;
            session.ui.redraw(screen, &text);
        } else if !news.is_empty() {
            session.ui.answer(news);
            session.ui.written()?;
        }
        // Stop only after two updates in which nothing runs. Between a candidate's command and its
        // first oracle command, nothing runs for a moment.
        idle = if busy { 0 } else { idle + 1 };
        if idle == 2 {
            screen.iter().for_each(Screen::leave);
            return Ok(exit::OK);
        }
        // Sleep longer than the update took, to leave the processor to the running commands.
        thread::sleep(PAUSE.max(began.elapsed() * 4));
    }
}

fn read_all(session: &ReadSession, runs: Vec<(Run, Option<Name>)>) -> Result<Vec<ShownRun>> {
    let shown = runs.into_iter();
    shown.map(|(run, only)| Ok(ShownRun { members: members(session, &run)?, run, only })).collect()
}

fn show_all(session: &ReadSession, runs: &[ShownRun]) -> Result<String> {
    let at_work = baseline::runs_at_work(&session.store, &session.store.run_activities()?);
    let show = |one: &ShownRun| show(session, one, at_work.contains(&one.run.run));
    let parts: Vec<String> = runs.iter().map(show).collect::<Result<_>>()?;
    Ok(parts.join("\n"))
}

fn members(session: &ReadSession, run: &Run) -> Result<Vec<Member>> {
    let read = |candidate: CandidateRef<'_>| {
        let newest = history::newest(&session.repo, candidate)?;
        let (capture, blast) = newest.unzip();
        let record = candidate.record()?;
        let gone = candidate.has_lost_worktree(&record);
        Ok(Member { record, capture, blast: blast.unwrap_or_default(), gone })
    };
    session.store.candidates(run).map(read).collect()
}

fn show(session: &ReadSession, one: &ShownRun, is_at_work: bool) -> Result<String> {
    let ShownRun { run, only, members } = one;
    let verdict = session.store.verdict(&run.run)?;
    let mut text = heading(session, run, verdict.as_ref());
    let used: Vec<UsageSum> =
        members.iter().filter_map(|member| UsageSum::of(&member.record.usage)).collect();
    text.push_str(&table_of_candidates(session, one, verdict.as_ref(), &used)?);
    let disk = DiskUse::stored(&session.store, run, members.iter().map(|member| &member.record));
    text.push_str(&match disk.rest.measured {
        Some(time) => format!(
            "disk: {} (worktrees {}, records and logs {}, objects of its own {}), measured {} ago\n",
            table::size(disk.total()),
            table::size(disk.worktrees),
            table::size(disk.rest.records),
            table::size(disk.rest.objects),
            table::age(time)
        ),
        None => format!("disk: {} in worktrees; --disk measures all\n", table::size(disk.worktrees)),
    });
    text.extend(comparison::total_usage(used.iter()).map(|words| words + "\n"));
    if let Some(name) = only {
        text.push_str(&iterations(session, session.store.candidate(run, name))?);
    }
    // If another process works on the run, show the rows that it shows on its terminal.
    if is_at_work {
        let Elsewhere { rows, summary, missing } = at_work(session, run, only.as_ref());
        let mut lines = texts(&rows, session.ui.out);
        let last = [summary, missing].map(|words| table::printable(&words));
        let last: Vec<String> = last.into_iter().filter(|words| !words.is_empty()).collect();
        lines.extend(Some(last.join("; ")).filter(|last| !last.is_empty()));
        text.extend(lines.iter().map(|line| format!("{line}\n")));
    }
    Ok(text)
}

/// The line about a run: its age, what it starts from, its task and the decision.
fn heading(session: &ReadSession, run: &Run, verdict: Option<&Verdict>) -> String {
    let name = session.ui.out.of(Tone::Strong).style(format!("run {run}"));
    let task = run.task.as_ref().map(|task| format!(", for {}", table::printable(task)));
    let decision = verdict.map(|verdict| &verdict.decision);
    let decision = match decision.map(|decision| (decision.decision, &decision.recommended)) {
        None => "not judged".to_owned(),
        Some((kind, Some(name))) => format!("{kind}: {name}"),
        Some((kind, None)) => kind.to_string(),
    };
    format!(
        "{name}, {} ago, from {}{}; {decision}\n",
        table::age(run.created),
        origin(run),
        task.unwrap_or_default()
    )
}

/// The table of the shown candidates. `used` is the usage of all agents of the run.
fn table_of_candidates(
    session: &ReadSession,
    one: &ShownRun,
    verdict: Option<&Verdict>,
    used: &[UsageSum],
) -> Result<String> {
    let (tokens, cost) = comparison::usage_columns(used.iter());
    let mut headings =
        vec!["", "candidate", "state", "iteration", "lines", "files", "landing", "disk"];
    headings.extend(tokens.then_some("tokens"));
    headings.extend(cost.then_some("cost"));
    let mut grid = Grid::new(&headings, &[3, 4, 5, 7, 8, 9], session.ui.out);
    for member in one.shown() {
        let candidate = &member.record;
        let mark = verdict.map_or("", |v| comparison::mark(v, &candidate.candidate));
        let has_worktree = !candidate.cleaned && !member.gone;
        let disk = if has_worktree { table::size(candidate.bytes) } else { "-".to_owned() };
        let mut cells = vec![
            (mark.into(), if mark == "*" { Tone::Good } else { Tone::Plain }),
            (candidate.address(), Tone::Plain),
            state_or_gone(member, verdict),
            (member.capture.as_ref().map_or("-".into(), |c| c.iteration.to_string()), Tone::Plain),
            (member.blast.lines.to_string(), Tone::Plain),
            (member.blast.files.to_string(), Tone::Plain),
            (landing(session, &one.run, candidate)?, Tone::Plain),
            (disk, Tone::Dim),
        ];
        let sum = UsageSum::of(&candidate.usage);
        let cell = |words: fn(&UsageSum) -> String| {
            (sum.as_ref().map_or_else(|| "-".to_owned(), words), Tone::Plain)
        };
        cells.extend(tokens.then(|| cell(UsageSum::tokens)));
        cells.extend(cost.then(|| cell(UsageSum::cost)));
        grid.row(cells);
    }
    Ok(grid.render())
}

/// The work of other processes for a run, or only for the candidate `only`.
fn at_work(session: &ReadSession, run: &Run, only: Option<&Name>) -> Elsewhere {
    let mut found = board::elsewhere(&session.store, run);
    if let Some(name) = only {
        let address = session.store.candidate(run, name).address();
        found.rows.retain(|row| row.address == address);
    }
    found
}

/// The state of a candidate, with the word `gone` if its worktree was removed by hand.
fn state_or_gone(member: &Member, verdict: Option<&Verdict>) -> (String, Tone) {
    match (member.gone, &member.capture) {
        (false, _) => state(member, verdict),
        (true, None) => ("gone".into(), Tone::Caution),
        (true, Some(_)) => (format!("{}, gone", state(member, verdict).0), Tone::Caution),
    }
}

/// The state of a candidate in a few words. If the candidate has not changed since it was judged,
/// this is the outcome of the judging. Otherwise, it says how the attempt ended. `--json` has both,
/// with the full reason.
fn state(member: &Member, verdict: Option<&Verdict>) -> (String, Tone) {
    let candidate = &member.record;
    let iteration = member.capture.as_ref().map(|capture| capture.iteration);
    if let Some(judged) = comparison::judged(candidate, iteration, verdict) {
        return judged;
    }
    let tone = match candidate.state {
        State::Open | State::Succeeded | State::Running => Tone::Plain,
        State::Failed | State::TimedOut => Tone::Bad,
        State::Cancelled | State::Limited => Tone::Caution,
        State::Empty => Tone::Dim,
    };
    (table::brief(&candidate.state_in_words()), tone)
}

/// A candidate's captures, oldest first.
fn iterations(session: &ReadSession, candidate: CandidateRef<'_>) -> Result<String> {
    let all = history::iterations(&session.repo, candidate)?;
    if all.is_empty() {
        return Ok(String::new());
    }
    let headings = ["iteration", "captured", "files", "insertions", "deletions", "message"];
    let columns = if all.iter().any(|one| one.message.is_some()) { 6 } else { 5 };
    let mut grid = Grid::new(&headings[..columns], &[2, 3, 4], session.ui.out);
    for one in all {
        let (added, deleted) = one.lines();
        let subject = one.message.as_deref().and_then(|text| text.lines().next()).unwrap_or("");
        let time = jiff::Timestamp::from_second(one.time)
            .map(|t| format!("{} ago", table::age(t)))
            .unwrap_or_default();
        let mut row = vec![
            (format!("{candidate}@{}", one.capture.iteration), Tone::Plain),
            (time, Tone::Dim),
            (one.changes.len().to_string(), Tone::Plain),
            (added.to_string(), Tone::Plain),
            (deleted.to_string(), Tone::Plain),
            (subject.to_owned(), Tone::Plain),
        ];
        row.truncate(columns);
        grid.row(row);
    }
    Ok(format!("\n{}", grid.render()))
}

/// The start of a run, in words: its base, or a candidate of another run.
fn origin(run: &Run) -> String {
    match &run.parent {
        None => run.base.short().to_owned(),
        Some(Parent { run, candidate, iteration, .. }) => {
            let iteration = iteration.map_or_else(String::new, |n| format!("@{n}"));
            format!("{run}/{candidate}{iteration}")
        }
    }
}

/// The landing state of a candidate, with the commit that landed it and the candidate's own task.
fn landing(session: &ReadSession, run: &Run, candidate: &Candidate) -> Result<String> {
    let conflicts = match conflicts(session, candidate)? {
        Some(_) => " (conflicts)",
        None => "",
    };
    let commit = candidate
        .landing_commit
        .as_ref()
        .map_or_else(String::new, |commit| format!(" {}", commit.short()));
    let kept = if candidate.kept { ", kept" } else { "" };
    let task = run.tasks.get(&candidate.candidate);
    let task = task.map_or_else(String::new, |task| format!(", for {}", table::printable(task)));
    Ok(format!("{}{conflicts}{commit}{kept}{task}", candidate.landing.in_words()))
}
