//! `git frites log`: shows the event log, oldest first.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::complete;
use crate::error::{Cause, Error, Result, exit};
use crate::model::address::Address;
use crate::model::count::some_of;
use crate::model::name::{Name, matching_names};
use crate::model::oid::Oid;
use crate::model::run::Run;
use crate::model::test_report::shortened;
use crate::ops::session::ReadSession;
use crate::store::events;
use crate::store::select::{Scope, several_runs, unknown_run};
use crate::ui::{local_time, table};

#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Run or task whose events are shown  [default: all]
    #[arg(value_name = "RUN|task:ID", add = complete::address(Scope::Run))]
    pub address: Option<Address>,
    /// Print one JSON object per event, each on its own line
    #[arg(long)]
    pub json: bool,
}

pub fn run(session: &ReadSession, args: &LogArgs) -> Result<u8> {
    let mut events = events::read(&session.store.dir().events())?;
    let has_none = events.is_empty();
    match &args.address {
        None => {}
        Some(Address::Task(id)) => {
            let bound = session.store.bound_to(id)?;
            events.retain(|event| is_of_task(event, id, &bound));
        }
        Some(Address::Word { word, iteration: None }) => {
            let run = run_named(&events, word)?;
            events.retain(|event| run_of(event).as_ref() == Some(&run));
        }
        Some(other) => {
            return Err(Error::usage(format!("'{other}' is not a run"))
                .hint("name a run, or leave it out to see all"));
        }
    }
    if has_none {
        session.ui.note("nothing has happened yet");
        session.ui.hint("start a run with `git frites spawn`");
    }
    let mut text = String::new();
    for event in &events {
        if args.json {
            text.push_str(&format!("{}\n", Value::Object(event.clone())));
        } else {
            text.push_str(&line(event));
        }
    }
    session.ui.answer(text);
    Ok(exit::OK)
}

fn run_of(event: &Map<String, Value>) -> Option<Name> {
    event.get("run")?.as_str()?.parse().ok()
}

/// The name of the run that is called `word`, or whose name begins with it. The run may be
/// forgotten, so that it has events but no refs.
fn run_named(events: &[Map<String, Value>], word: &Name) -> Result<Name> {
    let names: BTreeSet<Name> = events.iter().filter_map(run_of).collect();
    match matching_names(&names, word).as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(match unknown_run(&names, word) {
            error if error.cause == Cause::UnknownRun => {
                error.because(Cause::Other).hint("`git frites log` shows the events of all runs")
            }
            error => error,
        }),
        several => Err(several_runs(word, several)),
    }
}

/// True for an event that names the task `id`, and for any event of a run or candidate in `bound`:
/// the runs and candidates that are bound to the task now.
fn is_of_task(event: &Map<String, Value>, id: &str, bound: &[(Run, Option<Name>)]) -> bool {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    text("task") == Some(id)
        || bound.iter().any(|(run, name)| {
            let of_all = name.is_none() || text("candidate").is_none();
            text("run") == Some(run.run.as_str())
                && (of_all || text("candidate") == name.as_ref().map(Name::as_str))
        })
}

/// The first failing tests of each candidate, and how many more there are:
/// `c1: a, b and 3 more; c2: a`.
fn failing_tests(of_candidates: &Map<String, Value>) -> String {
    let mut words = Vec::new();
    for (candidate, tests) in of_candidates {
        let names = tests.as_array().into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<String> = names.map(|name| shortened(name, &[])).collect();
        words.push(format!("{candidate}: {}", some_of(&names)));
    }
    words.join("; ")
}

/// An event as one line, e.g. `2026-11-20 14:30:00 judged 3 decision=tests …`.
fn line(event: &Map<String, Value>) -> String {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
    let time: Option<jiff::Timestamp> = text("time").parse().ok();
    let place = match event.get("candidate").and_then(Value::as_str) {
        Some(candidate) => format!("{}/{candidate}", text("run")),
        None => text("run").to_owned(),
    };
    let details: Vec<String> = event
        .iter()
        .filter(|(key, value)| {
            !matches!(key.as_str(), "version" | "time" | "event" | "run" | "candidate")
                && !value.is_null()
        })
        .map(|(key, value)| match (key.as_str(), value) {
            // Object ids are abbreviated for people, as in git.
            (_, Value::String(s)) => match Oid::parse(s) {
                Some(oid) => format!("{key}={}", oid.short()),
                None if s.contains(' ') => format!("{key}='{s}'"),
                None => format!("{key}={s}"),
            },
            ("failing_tests", Value::Object(tests)) => format!("{key}='{}'", failing_tests(tests)),
            ("seconds", value) => format!("{key}={:.1}", value.as_f64().unwrap_or_default()),
            (_, other) => format!("{key}={other}"),
        })
        .collect();
    let line = format!(
        "{}  {:<9}  {place:<8}  {}",
        time.map(local_time::text).unwrap_or_default(),
        text("event"),
        details.join(" ")
    );
    // Escape the line, because attempts can write anything into the log.
    table::printable(line.trim_end()) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn failing_tests_are_few_and_their_names_short() {
        let names: Vec<String> = (0..200).map(|n| format!("{}{n}", "x".repeat(300))).collect();
        let event = serde_json::json!({
            "event": "judged", "run": "1", "failing_tests": { "c1": names, "c2": ["one"] },
        });
        let Value::Object(event) = event else { panic!("an object") };
        let shown = line(&event);
        assert!(shown.chars().count() < 500, "{shown}");
        assert!(shown.contains(" more; c2: one'"), "{shown}");
    }

    proptest! {
        #[test]
        fn an_event_is_one_line_whatever_it_holds(
            keys in prop::collection::btree_map(
                prop_oneof![prop::sample::select(vec!["version", "time", "event", "run", "candidate", "seconds"]).prop_map(str::to_owned), any::<String>()],
                prop_oneof![any::<String>().prop_map(Value::from), any::<f64>().prop_map(Value::from), Just(serde_json::json!({ "\u{9b}\n": ["\u{7f}"] }))],
                0..6,
            ),
        ) {
            let line = line(&keys.into_iter().collect());
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert!(!line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        }
    }
}
