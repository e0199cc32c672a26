//! A verdict as a JUnit file, which every CI can show. There is one suite for the verdict and one for each
//! candidate. The cases of a candidate's suite are the oracle's commands and the tests that failed.
use std::io;

use quick_xml::events::BytesText;
use quick_xml::{ElementWriter, Writer};

use crate::model::outcome::{Outcome, Stage, StageResult};
use crate::model::plain;
use crate::model::rationale::{why_unusable, without_own_tests};
use crate::model::test_comparison::Comparison;
use crate::model::verdict::{Baseline, Entry, Verdict};

/// Returns the last lines of a command's log. If the last argument is false, reads the log for the
/// candidate's own tree; if it is true, the log for the tree with the base's tests.
pub type LogTail<'a> = &'a dyn Fn(&Entry, Stage, bool) -> Vec<String>;

/// The data of a `<testcase>`.
struct Case {
    name: String,
    seconds: f64,
    end: CaseEnd,
}

enum CaseEnd {
    Passed,
    /// The case was skipped, for this reason.
    Skipped(String),
    /// The case failed. The value is the reason in one line, and the details.
    Failed(String, String),
    /// The case never ran. The value is the reason in one line, and the details.
    NotStarted(String, String),
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
    let reason = format!("{kind}: {}", verdict.decision.rationale);
    let seconds = verdict.candidates.iter().flat_map(|e| &e.results.0).map(|r| r.seconds).sum();
    let end =
        if verdict.verified() { CaseEnd::Passed } else { CaseEnd::Failed(reason.clone(), reason) };
    Case { name: "verdict".into(), seconds, end }
}

fn cases(entry: &Entry, base: Option<&Baseline>, log_end: LogTail<'_>) -> Vec<Case> {
    if !entry.usable() {
        let why = entry.problem.clone().unwrap_or_else(|| why_unusable(entry));
        let end = CaseEnd::NotStarted(why.clone(), why);
        return vec![Case { name: "attempt".into(), seconds: 0.0, end }];
    }
    if entry.results.is_empty() {
        let why = "no command was run: it could not be recommended".into();
        return vec![Case { name: "attempt".into(), seconds: 0.0, end: CaseEnd::Skipped(why) }];
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
        let end = CaseEnd::Failed(why.clone(), why);
        all.push(Case { name: format!("test {name}"), seconds: 0.0, end });
    }
    if let Some(second) = &entry.base_tests {
        if second.is_not_compared() {
            let problem = without_own_tests(entry);
            let end = CaseEnd::Failed(problem.clone(), problem);
            all.push(Case { name: "with the base's tests".into(), seconds: 0.0, end });
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
    let text = || {
        let lines = [reason.clone()].into_iter().chain(log.iter().cloned());
        lines.collect::<Vec<_>>().join("\n")
    };
    let end = match outcome {
        outcome if outcome.passed() => CaseEnd::Passed,
        Outcome::Skipped | Outcome::CannotTell => CaseEnd::Skipped(reason.clone()),
        Outcome::CouldNotStart { .. } => CaseEnd::NotStarted(reason.clone(), text()),
        _ => CaseEnd::Failed(reason.clone(), text()),
    };
    Case { name: format!("{stage}{suffix}"), seconds: *seconds, end }
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
    let count = |is: fn(&CaseEnd) -> bool| cases.iter().filter(|c| is(&c.end)).count().to_string();
    let time: f64 = cases.iter().map(|case| case.seconds).sum();
    writer.create_element(element).with_attributes([
        ("name", one_line(name).as_str()),
        ("tests", cases.len().to_string().as_str()),
        ("failures", count(|end| matches!(end, CaseEnd::Failed(..))).as_str()),
        ("errors", count(|end| matches!(end, CaseEnd::NotStarted(..))).as_str()),
        ("skipped", count(|end| matches!(end, CaseEnd::Skipped(_))).as_str()),
        ("time", format!("{time:.3}").as_str()),
    ])
}

fn write_case(writer: &mut Writer<Vec<u8>>, suite: &str, case: &Case) -> io::Result<()> {
    let element = writer.create_element("testcase").with_attributes([
        ("name", one_line(&case.name).as_str()),
        ("classname", one_line(suite).as_str()),
        ("time", format!("{:.3}", case.seconds).as_str()),
    ]);
    let (name, message, text) = match &case.end {
        CaseEnd::Passed => return element.write_empty().map(drop),
        CaseEnd::Skipped(reason) => ("skipped", reason, None),
        CaseEnd::Failed(reason, text) => ("failure", reason, Some(text)),
        CaseEnd::NotStarted(reason, text) => ("error", reason, Some(text)),
    };
    element.write_inner_content(|writer| {
        let element =
            writer.create_element(name).with_attribute(("message", one_line(message).as_str()));
        match text {
            Some(text) => element.write_text_content(BytesText::new(&lines(text))).map(drop),
            None => element.write_empty().map(drop),
        }
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
