//! Recognises by an agent's output that the agent cannot go on: its account has reached a limit, or
//! its environment lacks something.
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::model::agent_output;
use crate::model::pattern::matches;

/// The words before the time at which an agent can go on.
const BEFORE_RESET: [&str; 5] = ["try again ", "resets ", "reset at ", "reset after ", "reset in "];

/// The maximum length of an agent's description of the time at which it can go on, in characters.
const LONGEST: usize = 60;

/// A fault of an agent's environment. No attempt of that agent can work until a person corrects the
/// fault. It is displayed as a clause about the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum AgentFault {
    /// The agent has no valid login.
    #[strum(serialize = "is not logged in")]
    NotLoggedIn,
    /// The agent refuses to run as root.
    #[strum(serialize = "refuses to run as root")]
    RefusesRoot,
    /// The agent refuses to work in a directory that was not declared as trusted.
    #[strum(serialize = "does not trust its directory")]
    Distrusts,
    /// The agent does not reach its service.
    #[strum(serialize = "has no network")]
    NoNetwork,
}

/// The patterns of lines with which an agent says that it cannot go on. In a pattern `*` stands for
/// anything; case does not matter.
#[derive(Clone, Debug, Default)]
pub struct StopPatterns {
    /// Patterns of lines that say that the agent's account has reached a limit.
    pub limits: Vec<String>,
    /// For each fault of the agent's environment, the patterns of lines that report it.
    pub faults: Vec<(AgentFault, Vec<String>)>,
}

/// The reason why an agent cannot go on, from its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStop {
    /// The line with the reason.
    pub line: String,
    /// The time at which the limit ends, in the agent's words, or made from a timestamp in the
    /// line.
    pub resets: Option<String>,
    /// The fault of the agent's environment; `None` if the agent's account has reached a limit.
    pub fault: Option<AgentFault>,
}

impl StopPatterns {
    /// Finds the last line that reports a limit, or else the last line that reports a fault. If
    /// lines report several faults, the one that comes first in `faults` counts.
    pub fn find(&self, lines: &[String]) -> Option<AgentStop> {
        let last = |patterns: &[String]| lines.iter().rev().find(|line| any(line, patterns));
        if let Some(line) = last(&self.limits) {
            let line = line.trim().to_owned();
            return Some(AgentStop { resets: reset(&line), line, fault: None });
        }
        self.faults.iter().find_map(|(fault, patterns)| {
            let line = last(patterns)?.trim().to_owned();
            Some(AgentStop { line, resets: None, fault: Some(*fault) })
        })
    }

    /// True if the patterns can recognise an agent that waits for the network. Such an agent may
    /// wait for ever.
    pub fn can_wait(&self) -> bool {
        self.faults.iter().any(|(fault, _)| *fault == AgentFault::NoNetwork)
    }

    /// True if a line of the output says only that the agent waits for the network.
    pub fn only_waits(&self, line: &str) -> bool {
        agent_output::readable(line).iter().all(|words| {
            let mut all = self.faults.iter().filter(|(fault, _)| *fault == AgentFault::NoNetwork);
            all.any(|(_, patterns)| any(words, patterns))
        })
    }
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// True if one of the patterns matches a part of the line.
fn any(line: &str, patterns: &[String]) -> bool {
    let mut patterns = patterns.iter().filter(|pattern| !pattern.trim().is_empty());
    patterns.any(|pattern| matches(&format!("*{}*", plain(pattern)), &plain(line)))
}

/// The time at which a limit ends, if a line says it.
fn reset(line: &str) -> Option<String> {
    let lower = plain(line);
    // Lines with a timestamp: `limit reached|1762952400` and `"resets_at":1762952400`.
    for before in ["limit reached|", "\"resets_at\":"] {
        if let Some((_, rest)) = lower.split_once(before) {
            let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
            let time = jiff::Timestamp::from_second(digits.parse().ok()?).ok()?;
            return Some(
                time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
            );
        }
    }
    // `at` is a position in the lower-case text, which may have another length than the line.
    let text = if lower.len() == line.len() { line } else { lower.as_str() };
    let at = BEFORE_RESET.iter().find_map(|words| Some(lower.find(words)? + words.len()))?;
    let rest = text.get(at..)?;
    let end = rest.find(". ").or_else(|| rest.find(['"', '\\', '}'])).unwrap_or(rest.len());
    let words = rest[..end].trim().trim_end_matches(['.', ',']);
    let words: String = words.chars().take(LONGEST).collect();
    let words = words.strip_prefix("at ").map(str::to_owned).unwrap_or(words);
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resets(line: &str) -> Option<String> {
        reset(line)
    }

    #[test]
    fn the_time_of_the_reset_is_what_the_agent_told() {
        let told = |line| resets(line).unwrap_or_default();
        assert_eq!(
            told("You've hit your limit · resets 1:30am (Asia/Dhaka)"),
            "1:30am (Asia/Dhaka)"
        );
        assert_eq!(
            told("Claude usage limit reached. Your limit will reset at 9am (America/Chicago)."),
            "9am (America/Chicago)"
        );
        assert_eq!(
            told(
                "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 2 days 17 hours 14 minutes."
            ),
            "in 2 days 17 hours 14 minutes"
        );
        assert_eq!(
            told("Upgrade to Plus to continue using Codex, or try again at Jul 5th, 2026 8:19 PM."),
            "Jul 5th, 2026 8:19 PM"
        );
        assert!(told("Claude AI usage limit reached|1762952400").starts_with("2025-11-1"));
        assert!(
            told(r#"{"type":"usage_limit_reached","resets_at":1777936568,"x":1}"#)
                .starts_with("2026-05-0")
        );
        assert_eq!(resets("You have exhausted your daily quota on this model."), None);
    }

    #[test]
    fn a_pattern_matches_in_any_case_and_a_star_stands_for_anything() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let limit = |text: &str, pattern: &str| {
            let patterns = StopPatterns { limits: lines(pattern), faults: Vec::new() };
            patterns.find(&lines(text))
        };
        let pattern = "you've hit your*limit";
        let found = limit("You’ve hit your session limit · resets 12:50am\nbye", pattern);
        assert_eq!(found.and_then(|found| found.resets).as_deref(), Some("12:50am"));
        assert_eq!(limit("the limit: you've hit your", pattern), None, "another order");
        assert_eq!(limit("anything", " "), None, "an empty pattern matches nothing");
        assert_eq!(limit("anything", ""), None);
    }

    #[test]
    fn a_limit_is_told_before_a_fault_and_only_waiting_lines_wait() {
        let patterns = StopPatterns {
            limits: vec!["limit reached".into()],
            faults: vec![
                (AgentFault::NotLoggedIn, vec!["/login".into()]),
                (AgentFault::NoNetwork, vec!["waiting for network".into()]),
            ],
        };
        let fault = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            patterns.find(&lines).map(|stop| stop.fault)
        };
        assert_eq!(fault(&["run /login", "bye"]), Some(Some(AgentFault::NotLoggedIn)));
        assert_eq!(fault(&["limit reached", "run /login"]), Some(None));
        assert_eq!(fault(&["all is well"]), None);
        let waits = r#"{"type":"error","message":"Reconnecting... waiting for network (DNS)"}"#;
        assert!(patterns.can_wait() && patterns.only_waits(waits));
        assert!(!patterns.only_waits(r#"{"type":"turn.started"}"#));
        assert!(!StopPatterns::default().can_wait());
    }
}
