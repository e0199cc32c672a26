//! `git frites diff`: compares candidates with the base, or with each other.
use serde_json::{Value, json};

use crate::commands::{answer_paged, values};
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::git::diff::{self, Change, Format};
use crate::model::address::{Address, split_iteration};
use crate::model::blast::Blast;
use crate::model::cross_score;
use crate::model::name::Name;
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::ops::capture::Captured;
use crate::ops::session::Session;
use crate::store::candidate::CandidateRef;
use crate::store::select::{Matching, Scope, Selection, check_candidate};
use crate::ui::{comparison, json, table};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "RUN/CAND prints the patch. RUN prints one line per candidate; with a format option, it \
prints each candidate in that format, under a line `# RUN/CAND`. Two candidates are compared \
with each other. Candidates are captured first.\n\n\
Exit status: 0; with --exit-code, 1 if there are differences."
)]
pub struct DiffArgs {
    /// RUN, RUN/CAND, RUN/CAND@N, RUN/CAND@N..@M, or a candidate of the newest run  [default: the
    /// newest run]
    #[arg(
        value_name = "RUN[/CAND[@N]]",
        value_parser = parse_sides,
        add = complete::address(Scope::Iteration),
    )]
    pub address: Option<DiffSides>,
    /// Candidate to compare with the first one
    #[arg(value_name = "CAND2", add = complete::by(complete::candidates))]
    pub other: Option<Address>,
    /// Show a histogram of changed lines
    #[arg(long, group = "format")]
    pub stat: bool,
    /// Show the counts of changed lines, for scripts
    #[arg(long, group = "format")]
    pub numstat: bool,
    /// Show the kind of change and the path of each file
    #[arg(long, group = "format")]
    pub name_status: bool,
    /// Show nothing but the paths
    #[arg(long, group = "format")]
    pub name_only: bool,
    /// Show the patch
    #[arg(short, long, group = "format")]
    pub patch: bool,
    /// End lines with NUL, and do not quote paths
    #[arg(short = 'z')]
    pub nul: bool,
    /// Show the tests that one of two candidates passes and the other fails, whoever wrote them
    #[arg(long, group = "format", conflicts_with_all = ["nul", "no_capture"])]
    pub tests: bool,
    /// Show the last capture, without looking at the worktree
    #[arg(long)]
    pub no_capture: bool,
    /// Exit with 1 if there are differences
    #[arg(long)]
    pub exit_code: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with_all = ["stat", "numstat", "name_status", "name_only", "patch"])]
    pub json: bool,
}

/// The first argument: one address, or a range between two addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffSides {
    first: Address,
    second: Option<Address>,
}

/// Parses an address or a range, e.g. `RUN/CAND@1..@3` or `RUN/CAND@1..RUN/CAND2`. The range
/// `RUN/CAND@1..` ends at the candidate's present state.
fn parse_sides(text: &str) -> Result<DiffSides> {
    let Some((first, end)) = text.split_once("..") else {
        return Ok(DiffSides { first: values::address(text)?, second: None });
    };
    let first = values::address(first)?;
    let second = if end.is_empty() || end.starts_with('@') {
        let text = first.to_string();
        let place = split_iteration(&text).map_or(text.as_str(), |(place, _)| place);
        values::address(&format!("{place}{end}"))?
    } else {
        values::address(end)?
    };
    Ok(DiffSides { first, second: Some(second) })
}

/// The output about one candidate or one range.
struct View {
    address: String,
    from: Oid,
    to: Oid,
    iteration: Option<u32>,
    changes: Vec<Change>,
    blast: Blast,
    state: String,
}

pub fn run(session: &Session, args: &DiffArgs) -> Result<u8> {
    let first = args.address.as_ref().map(|sides| &sides.first);
    let other = match (args.address.as_ref().and_then(|sides| sides.second.as_ref()), &args.other) {
        (Some(_), Some(other)) => {
            return Err(Error::usage("the first argument is a range already")
                .hint(format!("name two sides in all: leave '{other}' out")));
        }
        (second, other) => second.or(other.as_ref()),
    };
    let selection = session.store.select(first, Scope::Iteration, Matching::Prefix)?;
    let run = &selection.run;
    if args.tests {
        return tests(session, run, selection.candidate.as_ref(), other, args);
    }
    let views: Vec<View> = match (&selection.candidate, other) {
        (None, Some(_)) => {
            return Err(Error::usage(format!(
                "'{run}' is a run, and only two candidates can be compared"
            ))
            .hint(format!("give {run}/CANDIDATE as the first argument")));
        }
        (None, None) if args.no_capture => {
            let candidates = session.store.candidates(run);
            candidates.map(|one| view(session, one, None, args)).collect::<Result<_>>()?
        }
        (None, None) => {
            let captured = session.capture_all(run)?.into_iter();
            captured.map(|one| view_of(session, run, one)).collect::<Result<_>>()?
        }
        (Some(name), None) => {
            vec![view(session, session.store.candidate(run, name), selection.iteration, args)?]
        }
        (Some(name), Some(other)) => {
            let first =
                view(session, session.store.candidate(run, name), selection.iteration, args)?;
            let (other_run, other_name, iteration) = second_candidate(session, run, other)?;
            let second =
                view(session, session.store.candidate(&other_run, &other_name), iteration, args)?;
            let address = format!("{}..{}", first.address, second.address);
            vec![difference(session, run, address, [first.to, second.to])?]
        }
    };
    let differs = views.iter().any(|v| !v.changes.is_empty());
    if args.json {
        let all: Vec<Value> = views.iter().map(as_json).collect();
        session.ui.answer_json(json!({ "run": run.run, "base": run.base, "diffs": all }));
    } else {
        show(session, run, args, &views, selection.candidate.is_some())?;
    }
    Ok(if args.exit_code && differs { exit::NO } else { exit::OK })
}

/// Shows the tests that one of two candidates passes and the other fails, according to the run's
/// verdict.
fn tests(
    session: &Session,
    run: &Run,
    one: Option<&Name>,
    other: Option<&Address>,
    args: &DiffArgs,
) -> Result<u8> {
    let pair = one.zip(other.map(|other| second_candidate(session, run, other)).transpose()?);
    let Some((one, (_, other, _))) = pair.filter(|(_, (of, ..))| of.run == run.run) else {
        return Err(Error::usage("--tests compares two candidates of one run")
            .hint("name both: `git frites diff --tests RUN/CAND CAND2`"));
    };
    let stored = session.store.verdict(&run.run)?;
    let verdict =
        stored.as_ref().filter(|verdict| verdict.candidates.iter().any(|e| e.cross.is_some()));
    let Some(verdict) = verdict else {
        let text = format!("the candidates of run {run} were not judged by each other's tests");
        let terms = stored.map(|verdict| verdict.terms).unwrap_or_default();
        let judge = terms.judge_command(&run.run, " --cross");
        return Err(Error::no(text).hint(format!("judge them: `{judge}`")));
    };
    let found = cross_score::differing_tests(verdict, one, &other);
    let code = if args.exit_code && !found.is_empty() { exit::NO } else { exit::OK };
    if args.json {
        let mut all = Vec::new();
        for (test, author, passes) in found {
            let (passing, failing) = if passes { (one, &other) } else { (&other, one) };
            all.push(
                json!({ "name": test, "author": author, "passes": passing, "fails": failing }),
            );
        }
        let document = json!({ "run": run.run, "base": run.base, "diffs": [], "tests": all });
        session.ui.answer_json(document);
        return Ok(code);
    }
    if found.is_empty() {
        session.ui.note(format!("no test tells {one} and {other} apart"));
    }
    let mut lines = String::new();
    for (test, author, passes) in found {
        let (first, then) = if passes { ("passes", "fails") } else { ("fails", "passes") };
        let whose = author.map_or("the base".to_owned(), Name::to_string);
        let test = table::printable(test);
        lines.push_str(&format!("{one} {first}, {other} {then}: {whose}'s test {test}\n"));
    }
    answer_paged(&session.ui, &session.repo, lines.as_bytes())?;
    Ok(code)
}

fn view(
    session: &Session,
    candidate: CandidateRef<'_>,
    iteration: Option<u32>,
    args: &DiffArgs,
) -> Result<View> {
    let captured = if args.no_capture || iteration.is_some() {
        session.stored(candidate)?
    } else {
        session.capture(candidate)?
    };
    let view = view_of(session, candidate.run, captured)?;
    let Some(wanted) = iteration else { return Ok(view) };
    let tree = candidate.iteration(wanted)?.tree;
    let address = format!("{}@{wanted}", view.address);
    let of_iteration = difference(session, candidate.run, address, [view.from, tree])?;
    Ok(View { iteration, ..of_iteration })
}

/// The difference of two trees of a run.
fn difference(session: &Session, run: &Run, address: String, [from, to]: [Oid; 2]) -> Result<View> {
    let comparison = diff::between(&session.repo, &run.base, &from, &to);
    let (changes, blast) = comparison.changes_and_blast()?;
    Ok(View { address, from, to, iteration: None, changes, blast, state: String::new() })
}

fn view_of(session: &Session, run: &Run, captured: Captured) -> Result<View> {
    session.print_omissions(&captured);
    if let Some(capture) = &captured.capture
        && captured.fresh
    {
        session.ui.note(format!("captured {}@{}", captured.candidate.address(), capture.iteration));
    }
    let iteration = captured.capture.as_ref().map(|c| c.iteration);
    let verdict = session.store.verdict(&run.run)?;
    let judged = comparison::judged(&captured.candidate, iteration, verdict.as_ref());
    Ok(View {
        address: captured.candidate.address(),
        from: run.base,
        to: *captured.tree(&run.base),
        iteration,
        state: judged.map_or_else(|| captured.candidate.state_in_words(), |(words, _)| words),
        changes: captured.changes,
        blast: captured.blast,
    })
}

/// The second of two candidates. A name without a run is a candidate in the run of the first one.
fn second_candidate(
    session: &Session,
    run: &Run,
    address: &Address,
) -> Result<(Run, Name, Option<u32>)> {
    match address {
        Address::Word { word, iteration } => {
            check_candidate(run, word)?;
            Ok((run.clone(), word.clone(), *iteration))
        }
        pair @ (Address::Pair { .. } | Address::Task(_)) => {
            let Selection { run, candidate, iteration } =
                session.store.select(Some(pair), Scope::Iteration, Matching::Prefix)?;
            let candidate = candidate.ok_or_else(|| {
                Error::usage(format!("'{pair}' names no candidate")).hint("write RUN/CANDIDATE")
            })?;
            Ok((run, candidate, iteration))
        }
    }
}

fn show(session: &Session, run: &Run, args: &DiffArgs, views: &[View], one: bool) -> Result<()> {
    let flags = [
        (args.stat, Format::Stat),
        (args.numstat, Format::Numstat),
        (args.name_status, Format::NameStatus),
        (args.name_only, Format::NameOnly),
        (args.patch, Format::Patch),
    ];
    let format = flags
        .into_iter()
        .find_map(|(on, format)| on.then_some(format))
        .or(one.then_some(Format::Patch));
    let mut text: Vec<u8> = Vec::new();
    for view in views {
        let Some(format) = format else {
            text.extend(
                format!("{}\t{}\t{}\n", view.address, view.blast, table::printable(&view.state))
                    .bytes(),
            );
            continue;
        };
        if !one {
            let end = if args.nul { '\0' } else { '\n' };
            text.extend(format!("# {}{end}", view.address).bytes());
        }
        let color = session.ui.out.colored && !args.nul;
        text.extend(
            diff::between(&session.repo, &run.base, &view.from, &view.to)
                .render(format, args.nul, color)?,
        );
    }
    answer_paged(&session.ui, &session.repo, &text)
}

fn as_json(view: &View) -> Value {
    let files: Vec<Value> = view
        .changes
        .iter()
        .map(|change| {
            let mut object = json!({
                "status": change.status.to_string(),
                "added": change.lines.map(|l| l.0), "deleted": change.lines.map(|l| l.1),
                "old": change.old, "new": change.new,
            });
            json::put_path(&mut object, "path", &change.path);
            object
        })
        .collect();
    json!({
        "address": view.address, "iteration": view.iteration, "from": view.from, "to": view.to,
        "lines": view.blast.lines, "files_touched": view.blast.files, "files": files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_ends_in_the_same_candidate_unless_it_names_another() {
        let cases = [
            ("1/c1", "1/c1", None),
            ("1/c1@1..@3", "1/c1@1", Some("1/c1@3")),
            ("c1@1..", "c1@1", Some("c1")),
            ("1/c1..2/c2@4", "1/c1", Some("2/c2@4")),
        ];
        for (text, first, second) in cases {
            let read = parse_sides(text).expect("it is valid");
            assert_eq!(read.first.to_string(), first);
            assert_eq!(read.second.map(|s| s.to_string()).as_deref(), second, "{text}");
        }
        for bad in ["", "..", "..@1", "1/c1..@0", "1/c1..@x", "1/c1@1..@2..@3"] {
            assert!(parse_sides(bad).is_err(), "{bad}");
        }
    }
}
