//! A verdict as text (the comparison table, the decision, progress lines and remarks) and as JSON.
use console::measure_text_width;
use serde_json::{Value, json};

use crate::error::exit;
use crate::model::candidate::{Candidate, ENOUGH_PASSED, State};
use crate::model::count::some_of;
use crate::model::cross_score;
use crate::model::flag::Flag;
use crate::model::name::Name;
use crate::model::outcome::{Outcome, StageResult};
use crate::model::rank::Rank;
use crate::model::ranking::Rules;
use crate::model::rationale::{is_not_compared, why_judged_twice};
use crate::model::terms::JudgeSettings;
use crate::model::test_comparison::{Comparison, FewerTests, MoreSkipped, left_out};
use crate::model::usage::UsageSum;
use crate::model::verdict::{Baseline, DecisionKind, Entry, Verdict, doubt_about_attempts};
use crate::ui::style::{Styles, Tone};
use crate::ui::table::{self, Grid};
use crate::ui::{effort_words, json, test_words};

/// The comparison table, and the decision under it.
pub fn text(styles: Styles, verdict: &Verdict) -> String {
    let decision = &verdict.decision;
    // Without a usable candidate, there is nothing to compare.
    let table = if decision.decision == DecisionKind::None {
        String::new()
    } else {
        grid(styles, &verdict.run, &of_verdict(verdict)) + "\n"
    };
    let world = world(styles, &verdict.terms.settings, verdict.candidates.iter());
    let style = styles.of(if verdict.verified() { Tone::Good } else { Tone::Caution });
    format!(
        "{table}{world}{}: {}\n",
        style.style(decision.decision.into_str()),
        table::printable(&decision.rationale)
    )
}

/// The decision in one line.
pub fn sentence(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.decision.decision, verdict.decision.rationale)
}

/// The table of the candidates that `judge --candidate` has judged, all with the same settings.
pub fn table<'a>(
    styles: Styles,
    run: &Name,
    settings: &JudgeSettings,
    entries: impl Iterator<Item = &'a Entry> + Clone,
) -> String {
    let world = world(styles, settings, entries.clone());
    let figures = figures(settings.rank, entries.clone());
    let headings = figures.iter().map(|(heading, _)| *heading).collect();
    let rows = entries.map(|e| row(e, None, &figures)).collect();
    grid(styles, run, &ComparisonTable { headings, rows }) + &world
}

/// The line about the world in which commands ran; empty if none ran.
fn world<'a>(
    styles: Styles,
    settings: &JudgeSettings,
    mut entries: impl Iterator<Item = &'a Entry> + Clone,
) -> String {
    let doubt = doubt_about_attempts(entries.clone());
    if entries.all(|entry| entry.results.is_empty()) {
        return String::new();
    }
    let line = format!("the commands ran {}", places(settings, doubt));
    format!("{}\n", styles.of(Tone::Dim).style(line))
}

/// The world in which commands ran, and the doubt about what attempts could write, if there is one.
pub fn places(settings: &JudgeSettings, doubt: Option<&str>) -> String {
    let world = settings.commands.world.in_words();
    doubt.map_or_else(|| world.to_owned(), |doubt| format!("{world}; {doubt}"))
}

/// The exit code of `judge` for a verdict (git-frites(1)).
pub fn exit_code(verdict: &Verdict) -> u8 {
    match verdict.decision.decision {
        DecisionKind::NearMiss => exit::NO,
        DecisionKind::None => exit::UNUSABLE,
        _ if !verdict.verified() => exit::UNVERIFIED,
        _ => exit::OK,
    }
}

/// A verdict as JSON: its record, and the values that follow from it.
pub fn as_json(verdict: &Verdict) -> Value {
    let mut value = json::record(verdict);
    value["verified"] = json!(verdict.verified());
    value["exit_code"] = json!(exit_code(verdict));
    let base = verdict.baseline.as_ref();
    for (at, entry) in verdict.candidates.iter().enumerate() {
        let more = json::record(&json!({
            "usable": entry.usable(), "passed": entry.passed(), "verified": entry.verified(),
            "failing_tests": base.and_then(|base| Comparison::of(base, entry)),
            "more_skipped": base.and_then(|base| MoreSkipped::of(base, entry)),
            "fewer_tests": base.and_then(|base| FewerTests::of(base, entry)),
        }));
        json::extend(&mut value["candidates"][at], more);
    }
    value
}

/// A progress line: the outcome of one command on the tree that `name` stands for.
pub fn stage_line(name: &str, result: &StageResult) -> String {
    let StageResult {
        stage,
        seconds,
        outcome,
        leaky,
        cached,
        changed,
        tests,
        earlier,
        warm,
        obstacle,
        error: _,
    } = result;
    let time = if *cached { "cached".to_owned() } else { table::duration(*seconds) };
    let time = if *warm { format!("{time}, with the base's build outputs") } else { time };
    // A report with a failed test contradicts the word `passed`, even if the exit code decides.
    let has_failed = tests.as_ref().is_some_and(|report| !report.failing.is_empty());
    let end = if has_failed && *outcome == Outcome::Passed {
        "exit 0".to_owned()
    } else {
        outcome.to_string()
    };
    let mut line = format!("{name}: {stage} {end} ({time})");
    if !earlier.is_empty() {
        let ends: Vec<String> = earlier.iter().map(|a| a.outcome.to_string()).collect();
        line.push_str(&format!(", before that {}", ends.join(", ")));
    }
    if let Some(obstacle) = obstacle {
        line.push_str(&format!("; {obstacle}"));
    }
    if let Some(summary) = test_words::summary(result) {
        line.push_str(&format!("; {summary}"));
    }
    if !changed.is_empty() {
        line.push_str(&format!(
            "; it changed tracked files ({}), which will not land",
            some_of(changed)
        ));
    }
    if *leaky {
        line.push_str("; it left processes behind, which were ended");
    }
    line
}

/// Remarks on the verdict: the numbers of commands that ran and that did not have to run, the usage
/// of the agents, and the doubts.
pub fn remarks(verdict: &Verdict) -> Vec<String> {
    let used = verdict.candidates.iter().filter_map(|entry| entry.usage.as_ref());
    remarks_with_usage(verdict, total_usage(used))
}

/// The [`remarks`], with `usage` as the line about the usage of agents. If it is `None`, there is
/// no such line.
pub fn remarks_with_usage(verdict: &Verdict, usage: Option<String>) -> Vec<String> {
    let effort = effort_words::line(verdict.effort).into_iter();
    effort.chain(stopped(verdict)).chain(usage).chain(doubts(verdict)).collect()
}

/// The line about the candidates that were stopped because enough had passed, and about their
/// usage; `None` if there are none.
fn stopped(verdict: &Verdict) -> Option<String> {
    let stopped = || verdict.candidates.iter().filter(|entry| entry.stopped);
    let names: Vec<&str> = stopped().map(|entry| entry.candidate.as_str()).collect();
    let used = stopped().filter_map(|entry| entry.usage).reduce(UsageSum::and);
    let used = used.and_then(|used| used.in_words());
    let used = used.map(|words| format!("; they had used {words}")).unwrap_or_default();
    (!names.is_empty())
        .then(|| format!("stopped, because enough passed: {}{used}", names.join(", ")))
}

/// The doubts that make the verdict weaker.
fn doubts(verdict: &Verdict) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for entry in &verdict.candidates {
        if let Some(stale) = &entry.stale {
            lines.push(format!("{}: {stale}", entry.candidate));
        }
    }
    let doubts = verdict.terms.settings.doubts_in_words().into_iter();
    lines.extend(doubts.map(|doubt| format!("{doubt}, so the result is not verified")));
    lines
}

/// The width of the table in columns if stdout is not a terminal.
const WIDTH: usize = 80;

/// The maximum width of a candidate's name in the table, in columns.
const NAME: usize = 24;

/// The comparison of the candidates, and of the base if it was judged.
pub struct ComparisonTable {
    /// The headings of the columns with figures.
    pub headings: Vec<&'static str>,
    pub rows: Vec<ComparisonRow>,
}

/// A row of the comparison, for the base or for a candidate.
pub struct ComparisonRow {
    /// The sign of the recommended or the closest candidate (see [`mark`]); empty for others.
    pub mark: &'static str,
    /// True if the verdict is verified, so that the recommended candidate is shown in green.
    pub verified: bool,
    /// The candidate's name, or `@base`.
    pub name: String,
    /// How the commands ended, in words.
    pub outcome: (String, Tone),
    /// The text of each column with figures.
    pub figures: Vec<String>,
    pub remarks: Vec<String>,
    /// The tone of the remarks. It is caution if a person should look at them.
    pub remarks_tone: Tone,
}

/// The sign that a candidate has in tables: `*` for the recommended candidate, `~` for the closest
/// one if none passed; empty for others.
pub fn mark(verdict: &Verdict, name: &Name) -> &'static str {
    match verdict.decision.decision {
        _ if verdict.decision.recommended.as_ref() != Some(name) => "",
        DecisionKind::BrokenBase
        | DecisionKind::NearMiss
        | DecisionKind::ReportedFailures
        | DecisionKind::MissingTests => "~",
        _ => "*",
    }
}

/// The comparison of a verdict: the base if it was judged, then the candidates in the order of the
/// ranking. Candidates without a rank come last, in spawn order.
pub fn of_verdict(verdict: &Verdict) -> ComparisonTable {
    let base = verdict.baseline.as_ref();
    let rules = Rules::of(&verdict.terms).settled(&verdict.candidates);
    let figures = figures(rules.rank, verdict.candidates.iter());
    let mut entries: Vec<&Entry> = verdict.candidates.iter().collect();
    entries.sort_by_key(|e| {
        let place = verdict.decision.ranking.iter().position(|name| *name == e.candidate);
        place.unwrap_or(usize::MAX)
    });
    let mut rows: Vec<ComparisonRow> =
        base.map(|base| base_row(base, &figures)).into_iter().collect();
    for entry in entries {
        let mut row = row(entry, base, &figures);
        row.mark = mark(verdict, &entry.candidate);
        row.verified = verdict.verified();
        row.remarks.extend(cross_score::remarks(entry, &verdict.candidates));
        rows.push(row);
    }
    ComparisonTable { headings: figures.iter().map(|(heading, _)| *heading).collect(), rows }
}

fn base_row(base: &Baseline, figures: &[Figure]) -> ComparisonRow {
    let mut remarks = remarks_on(&base.results);
    remarks.extend(test_words::of_base(base));
    // The base has only the first figure, the time.
    let mut texts = vec!["-".to_owned(); figures.len()];
    texts[0] = time(&base.results);
    ComparisonRow {
        mark: "",
        verified: false,
        name: "@base".into(),
        outcome: base.results.stopped_at().map_or(("passed".into(), Tone::Plain), stop),
        figures: texts,
        remarks,
        remarks_tone: Tone::Dim,
    }
}

fn row(entry: &Entry, base: Option<&Baseline>, figures: &[Figure]) -> ComparisonRow {
    let beware = entry.passed_own_tests_only()
        || (!entry.flags.is_empty() && entry.base_tests.is_none())
        || !entry.dropped.is_empty()
        || base.is_some_and(|base| !left_out(base, entry).is_empty());
    ComparisonRow {
        mark: "",
        verified: false,
        name: entry.candidate.to_string(),
        outcome: outcome(entry),
        figures: figures.iter().map(|(_, of)| of(entry)).collect(),
        remarks: flags(entry, base),
        remarks_tone: if beware { Tone::Caution } else { Tone::Dim },
    }
}

/// A column with figures: its heading, and the function that returns a candidate's text.
type Figure = (&'static str, fn(&Entry) -> String);

/// The columns with figures. `agree` is among them only if the ranking uses it. `cross`, `tokens`
/// and `cost` are among them only if some candidate has a value.
fn figures<'a>(rank: Rank, entries: impl Iterator<Item = &'a Entry> + Clone) -> Vec<Figure> {
    let mut all: Vec<Figure> = vec![
        ("time", |e| time(&e.results)),
        ("lines", |e| e.blast.lines.to_string()),
        ("files", |e| e.blast.files.to_string()),
    ];
    if rank == Rank::Agreement {
        all.push(("agree", |e| score(e.agreement)));
    }
    if entries.clone().any(|e| cross_of(e).is_some()) {
        all.push(("cross", |e| score(cross_of(e))));
    }
    let (tokens, cost) = usage_columns(entries.filter_map(|entry| entry.usage.as_ref()));
    if tokens {
        all.push(("tokens", |e| e.usage.map_or("-".into(), |usage| usage.tokens())));
    }
    if cost {
        all.push(("cost", |e| e.usage.map_or("-".into(), |usage| usage.cost())));
    }
    all
}

fn cross_of(entry: &Entry) -> Option<f64> {
    entry.cross.as_ref().and_then(|cross| cross.score)
}

/// Whether the columns of tokens and of cost are shown: true if at least one agent has reported
/// such a number.
pub fn usage_columns<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> (bool, bool) {
    sums.fold((false, false), |(tokens, cost), sum| {
        (tokens || sum.has_tokens(), cost || sum.known.cost.is_some())
    })
}

/// The total usage of agents, in words; `None` if no agent reported any.
pub fn total_usage<'a>(sums: impl Iterator<Item = &'a UsageSum>) -> Option<String> {
    let all = sums.copied().reduce(UsageSum::and)?;
    Some(format!("the agents used {}", all.in_words()?))
}

/// The comparison as text. The recommended candidate has a sign, and is green if it is verified.
/// The remarks on a candidate are at the end of its row if they fit there, and otherwise below the
/// row.
fn grid(styles: Styles, run: &Name, table: &ComparisonTable) -> String {
    let mut headings = vec!["", "candidate", "outcome"];
    headings.extend(&table.headings);
    let mut grid = Grid::new(&headings, &[3, 4, 5, 6, 7, 8, 9], styles);
    let mut remarks = vec![(vec!["flags".to_owned()], styles.of(Tone::Strong))];
    for row in &table.rows {
        let tone = if !row.mark.is_empty() && row.verified { Tone::Good } else { Tone::Plain };
        let mut cells = vec![
            (row.mark.to_owned(), tone),
            (format!("{run}/{}", shortened(&row.name)), tone),
            row.outcome.clone(),
        ];
        for (heading, text) in table.headings.iter().zip(&row.figures) {
            let tone = if *heading == "time" { Tone::Dim } else { Tone::Plain };
            cells.push((text.clone(), tone));
        }
        grid.row(cells);
        remarks.push((row.remarks.clone(), styles.of(row.remarks_tone)));
    }
    let table = grid.render();
    let lines: Vec<&str> = table.lines().collect();
    let used = lines.iter().map(|line| measure_text_width(line)).max().unwrap_or_default();
    let width = styles.width.unwrap_or(WIDTH);
    let mut text = String::new();
    for (line, (flags, style)) in lines.into_iter().zip(remarks) {
        text.push_str(line);
        let joined = flags.join(", ");
        if used + 2 + measure_text_width(&joined) <= width && !joined.is_empty() {
            text.push_str(&" ".repeat(used + 2 - measure_text_width(line)));
            text.push_str(&style.style(joined).to_string());
        } else {
            for line in table::filled(&flags, width.saturating_sub(5)) {
                text.push_str(&format!("\n     {}", style.style(line)));
            }
        }
        text.push('\n');
    }
    text
}

/// A name; if it is too long, its middle is left out.
fn shortened(name: &str) -> String {
    match (name.get(..NAME - 9), name.get(name.len().saturating_sub(8)..)) {
        (Some(head), Some(tail)) if name.len() > NAME => format!("{head}…{tail}"),
        _ => name.to_owned(),
    }
}

fn score(score: Option<f64>) -> String {
    score.map_or("-".into(), |score| format!("{score:.2}"))
}

fn time(results: &[StageResult]) -> String {
    let seconds: f64 = results.iter().map(|r| r.seconds).sum();
    if results.is_empty() { "-".into() } else { table::duration(seconds) }
}

/// The outcome of an entry's commands in a few words, and its tone.
pub fn outcome(entry: &Entry) -> (String, Tone) {
    match entry.results.stopped_at() {
        Some(result) => stop(result),
        None if let Some(result) = entry.skipped_with_base_tests() => stop(result),
        None if entry.passed() && entry.flaky() => ("flaky".into(), Tone::Caution),
        None if entry.passed_own_tests_only() => ("passed".into(), Tone::Caution),
        None if entry.passed() => ("passed".into(), Tone::Good),
        None if entry.usable() => ("not run".into(), Tone::Dim),
        None => ("-".into(), Tone::Dim),
    }
}

/// The outcome of a candidate and its tone; `None` if its attempt did not end well, or if the
/// verdict has no outcome for this iteration.
pub fn judged(
    candidate: &Candidate,
    iteration: Option<u32>,
    verdict: Option<&Verdict>,
) -> Option<(String, Tone)> {
    if !matches!(candidate.state, State::Open | State::Succeeded) {
        return None;
    }
    let entry = verdict?.entry(&candidate.candidate)?;
    if !entry.usable() || entry.not_run() || entry.iteration != iteration {
        return None;
    }
    Some(if entry.passed_own_tests_only() && is_not_compared(entry) {
        ("passed, not compared".into(), Tone::Caution)
    } else if entry.passed_own_tests_only() {
        ("passed own tests only".into(), Tone::Caution)
    } else {
        outcome(entry)
    })
}

/// The outcome of a command that did not pass, and its tone.
pub fn stop(result: &StageResult) -> (String, Tone) {
    let StageResult { stage, outcome, .. } = result;
    let end = match outcome {
        Outcome::CannotTell => return (format!("{stage} cannot tell"), Tone::Caution),
        Outcome::ReportedFailures { failed } => {
            return (format!("{stage} reports {failed} failed"), Tone::Caution);
        }
        Outcome::MissingTests { reported, expected } => {
            return (format!("{stage} reports {reported} of {expected}"), Tone::Caution);
        }
        Outcome::CouldNotStart { .. } => "no start".into(),
        Outcome::Failed { code } => format!("exit {code}"),
        Outcome::Flaky { .. } => "flaky".into(),
        other => other.to_string(),
    };
    (format!("{stage} {end}"), Tone::Bad)
}

/// Remarks on a candidate besides its outcome.
fn flags(entry: &Entry, base: Option<&Baseline>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if entry.is_gone() {
        words.push("gone".into());
    } else if entry.problem.is_some() {
        words.push("not captured".into());
    } else if !entry.usable() {
        words.push(match entry.state {
            State::Open | State::Succeeded if !entry.dropped.is_empty() => {
                "changed only protected paths".into()
            }
            State::Open => "changed nothing".into(),
            State::Cancelled if entry.stopped => format!("stopped: {ENOUGH_PASSED}"),
            state => table::printable(&entry.with_cause(state.into_str())),
        });
    }
    if let Some(second) = &entry.base_tests
        && entry.passed()
        && !entry.is_pending()
    {
        words.push(match second.needs() {
            Some(files) => format!("needs {files}"),
            None if second.is_not_compared() => "not compared".to_owned(),
            None if entry.passed_own_tests_only() => "only its own tests".to_owned(),
            None => "base's tests pass too".to_owned(),
        });
        words.extend(why_judged_twice(second));
    }
    words.extend(entry.skipped_with_base_tests().map(|_| "base's tests cannot tell".to_owned()));
    words.extend(entry.proof.as_ref().map(|proof| proof.label().to_owned()));
    words.extend(entry.same_as.as_ref().map(|twin| format!("same tree as {twin}")));
    let mut labels: Vec<&str> = entry.flags.iter().map(Flag::label).collect();
    labels.dedup();
    words.extend(labels.into_iter().map(str::to_owned));
    if !entry.dropped.is_empty() {
        words.push(format!("dropped {}", entry.dropped.len()));
    }
    // The part before the colon is the cause, e.g. `stale build output`.
    words.extend(entry.stale.iter().filter_map(|s| s.split(':').next()).map(str::to_owned));
    words.extend(remarks_on(&entry.results));
    words.extend(test_words::of_entry(entry, base));
    words
}

fn remarks_on(results: &[StageResult]) -> Vec<String> {
    let any = |is: fn(&StageResult) -> bool| results.iter().any(is);
    // A report without tests is suspicious: the code under test may have ended the test process
    // before any test ran.
    let silent =
        |r: &StageResult| r.outcome.passed() && r.tests.as_ref().is_some_and(|t| t.total == 0);
    let more = [
        (any(silent), "no test report"),
        (any(|r| !r.changed.is_empty()), "oracle wrote"),
        (any(|r| r.leaky), "leaky"),
        (any(|r| r.cached), "cached"),
        (any(|r| r.warm), "warm"),
    ];
    more.into_iter().filter(|(is, _)| *is).map(|(_, word)| word.to_owned()).collect()
}
