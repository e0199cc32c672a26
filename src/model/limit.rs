//! What an agent prints when its account may do no more for a while.
use jiff::tz::TimeZone;

/// The words before the time at which an agent can go on.
const BEFORE_RESET: [&str; 5] = ["try again ", "resets ", "reset at ", "reset after ", "reset in "];

/// The longest description of that time that is taken over, in characters.
const LONGEST: usize = 60;

/// An agent's limit, as the agent told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLimit {
    /// The line that told it.
    pub line: String,
    /// The time at which it is over, in the agent's words or from its number.
    pub resets: Option<String>,
}

/// Finds the last of these lines that a pattern matches. In a pattern `*` stands for anything; capitals
/// do not matter.
pub fn find(lines: &[String], patterns: &[String]) -> Option<AgentLimit> {
    let line = lines.iter().rev().find(|line| patterns.iter().any(|p| matches(line, p)))?;
    Some(AgentLimit { line: line.trim().to_owned(), resets: reset(line) })
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

fn matches(line: &str, pattern: &str) -> bool {
    let (line, pattern) = (plain(line), plain(pattern));
    if pattern.trim().is_empty() {
        return false;
    }
    let mut rest = line.as_str();
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The time at which a limit is over, if a line tells it.
fn reset(line: &str) -> Option<String> {
    let lower = plain(line);
    // `limit reached|1762952400` and `"resets_at":1762952400`.
    for before in ["limit reached|", "\"resets_at\":"] {
        if let Some((_, rest)) = lower.split_once(before) {
            let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
            let time = jiff::Timestamp::from_second(digits.parse().ok()?).ok()?;
            return Some(
                time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
            );
        }
    }
    // Lower case may have another length than the line itself.
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
        let patterns = lines("you've hit your*limit");
        let found = find(&lines("You’ve hit your session limit · resets 12:50am\nbye"), &patterns);
        assert_eq!(found.and_then(|found| found.resets).as_deref(), Some("12:50am"));
        assert_eq!(find(&lines("the limit: you've hit your"), &patterns), None, "another order");
        assert_eq!(find(&lines("anything"), &lines(" ")), None, "an empty pattern matches nothing");
        assert_eq!(find(&lines("anything"), &[]), None);
    }
}
