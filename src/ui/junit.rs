//! A verdict as a JUnit file, which every CI can show. There is one suite for the verdict and one
//! for each candidate. The cases of a candidate's suite are the oracle's commands and the tests
//! that failed.
use std::io;

use quick_xml::events::BytesText;
use quick_xml::{ElementWriter, Writer};

use crate::model::outcome::{Outcome, Stage, StageResult};
use crate::model::plain;
use crate::model::rationale::{why_unusable, without_own_tests};
use crate::model::test_comparison::Comparison;
use crate::model::verdict::{Baseline, Entry, Verdict};

/// Returns the last lines of a command's log. The last argument chooses the log: if it is false,
/// the log for the candidate's own tree; if it is true, the log for the tree with the base's tests.
pub type LogTail<'a> = &'a dyn Fn(&Entry, Stage, bool) -> Vec<String>;

/// The data of a `<testcase>`.
struct Case {
    name: String,
    seconds: f64,
    /// The element in a case that did not pass: `skipped`, `failure`, or, if it never ran, `error`.
    end: Option<&'static str>,
    /// The reason in one line, and the details.
    about: Vec<String>,
}

/// The JUnit document of a verdict.
pub fn document(verdict: &Verdict, log_end: LogTail<'_>) -> io::Result<Vec<u8>> {
    let mut suites = vec![(verdict.run.to_string(), vec![of_verdict(verdict)])];
    for entry in &verdict.candidates {
        let name = format!("{}/{}", verdict.run, entry.candidate);
        suites.push((name, cases(entry, verdict.baseline.as_ref(), log_end)));
    }
    let mut writer =
        Writer::new_with_indent(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec(), b' ', 2);
    let all: Vec<&Case> = suites.iter().flat_map(|(_, cases)| cases).collect();
    let root = with_counts(&mut writer, "testsuites", "git-frites", &all);
    root.write_inner_content(|writer| {
        suites.iter().try_for_each(|(name, cases)| write_suite(writer, name, cases))
    })?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

/// The case for the verdict itself. It passes if the verdict is verified.
fn of_verdict(verdict: &Verdict) -> Case {
    let kind = verdict.decision.decision.into_str();
    let about = vec![format!("{kind}: {}", verdict.decision.rationale)];
    let seconds = verdict.candidates.iter().flat_map(|e| &e.results.0).map(|r| r.seconds).sum();
    let end = (!verdict.verified()).then_some("failure");
    Case { name: "verdict".into(), seconds, end, about }
}

/// A case for which no time was measured.
fn untimed(name: impl Into<String>, end: &'static str, why: impl Into<String>) -> Case {
    Case { name: name.into(), seconds: 0.0, end: Some(end), about: vec![why.into()] }
}

fn cases(entry: &Entry, base: Option<&Baseline>, log_end: LogTail<'_>) -> Vec<Case> {
    if !entry.usable() {
        let why = entry.problem.clone().unwrap_or_else(|| why_unusable(entry));
        return vec![untimed("attempt", "error", why)];
    }
    if entry.results.is_empty() {
        let why = "no command was run: it could not be recommended";
        return vec![untimed("attempt", "skipped", why)];
    }
    let mut all: Vec<Case> = Vec::new();
    for result in &entry.results.0 {
        all.push(of_result(result, "", &log_end(entry, result.stage, false)));
    }
    let kinds = base.and_then(|base| Comparison::of(base, entry));
    for name in entry.results.failing_tests().unwrap_or_default() {
        let kinds = kinds.iter().flat_map(Comparison::kinds);
        let kind = kinds.into_iter().find(|(_, names)| names.contains(name));
        let why = kind.map_or("fails".to_owned(), |(what, _)| format!("fails; it {what}"));
        all.push(untimed(format!("test {name}"), "failure", why));
    }
    if let Some(second) = &entry.base_tests {
        if second.is_not_compared() {
            all.push(untimed("with the base's tests", "failure", without_own_tests(entry)));
        }
        for (at, result) in second.results.iter().enumerate() {
            let lines = log_end(entry, result.stage, true);
            let suffix = match second.beside(at) {
                Some(path) => format!(" with its source and {path} alone"),
                None => " with the base's tests".to_owned(),
            };
            all.push(of_result(result, &suffix, &lines));
        }
    }
    all
}

/// The case for one command. `log` has the last lines of the command's log.
fn of_result(result: &StageResult, suffix: &str, log: &[String]) -> Case {
    let StageResult { stage, seconds, outcome, .. } = result;
    let reason = format!("{stage}{suffix}: {outcome}");
    let end = match outcome {
        outcome if outcome.passed() => None,
        Outcome::Skipped | Outcome::CannotTell => Some("skipped"),
        Outcome::CouldNotStart { .. } => Some("error"),
        _ => Some("failure"),
    };
    let about = [reason].into_iter().chain(log.iter().cloned()).collect();
    Case { name: format!("{stage}{suffix}"), seconds: *seconds, end, about }
}

fn write_suite(writer: &mut Writer<Vec<u8>>, name: &str, cases: &[Case]) -> io::Result<()> {
    let suite = with_counts(writer, "testsuite", name, &cases.iter().collect::<Vec<_>>());
    suite.write_inner_content(|writer| {
        cases.iter().try_for_each(|case| write_case(writer, name, case))
    })?;
    Ok(())
}

/// Begins an element that has the numbers of its cases as attributes.
fn with_counts<'w>(
    writer: &'w mut Writer<Vec<u8>>,
    element: &'static str,
    name: &str,
    cases: &[&Case],
) -> ElementWriter<'w, Vec<u8>> {
    let count = |end| cases.iter().filter(|case| case.end == Some(end)).count().to_string();
    let time: f64 = cases.iter().map(|case| case.seconds).sum();
    writer.create_element(element).with_attributes([
        ("name", one_line(name).as_str()),
        ("tests", cases.len().to_string().as_str()),
        ("failures", count("failure").as_str()),
        ("errors", count("error").as_str()),
        ("skipped", count("skipped").as_str()),
        ("time", format!("{time:.3}").as_str()),
    ])
}

fn write_case(writer: &mut Writer<Vec<u8>>, suite: &str, case: &Case) -> io::Result<()> {
    let element = writer.create_element("testcase").with_attributes([
        ("name", one_line(&case.name).as_str()),
        ("classname", one_line(suite).as_str()),
        ("time", format!("{:.3}", case.seconds).as_str()),
    ]);
    let Some(end) = case.end else { return element.write_empty().map(drop) };
    let message = one_line(&case.about[0]);
    element.write_inner_content(|writer| {
        let element = writer.create_element(end).with_attribute(("message", message.as_str()));
        match end {
            "skipped" => element.write_empty(),
            _ => element.write_text_content(BytesText::new(&lines(&case.about.join("\n")))),
        }
        .map(drop)
    })?;
    Ok(())
}

/// A text as one line. Characters that XML forbids or that control a terminal are left out.
fn one_line(text: &str) -> String {
    lines(text).replace('\n', " ")
}

fn lines(text: &str) -> String {
    let shown = text.lines().map(|line| {
        plain::line(line).chars().filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')).collect()
    });
    shown.collect::<Vec<String>>().join("\n")
}
