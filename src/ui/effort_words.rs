//! The number of commands that a judging ran, and of those that did not have to run, in words.
use crate::model::verdict::Effort;

/// The number of commands that ran, and the numbers of commands that did not have to run, each with
/// the reason; `None` if all commands had to run.
pub fn line(effort: Effort) -> Option<String> {
    let because_it = if effort.saved_not_run == 1 { "it" } else { "they" };
    let saved = [
        (effort.saved_equal, "by equal trees".to_owned()),
        (effort.saved_cached, "by the cache (`--no-cache` turns it off)".to_owned()),
        (effort.saved_not_run, format!("because {because_it} could not change the recommendation")),
    ];
    let mut reasons = saved.into_iter().filter(|(n, _)| *n > 0);
    let (first, why) = reasons.next()?;
    let were = if first == 1 { "was" } else { "were" };
    let more: String = reasons.map(|(n, why)| format!(", {n} {why}")).collect();
    Some(format!("{}; {first} {were} saved {why}{more}", ran(effort)))
}

fn ran(effort: Effort) -> String {
    let commands = |n: u64| format!("{n} {} ran", if n == 1 { "command" } else { "commands" });
    match (effort.ran, effort.ran_base) {
        (0, 0) => "no command ran".to_owned(),
        (0, base) => format!("{} for the base and none for the candidates", commands(base)),
        (candidates, 0) => format!("{} for the candidates", commands(candidates)),
        (candidates, base) => {
            format!("{} for the candidates and {base} for the base", commands(candidates))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line for these numbers of commands. `ran` has those that ran, for candidates and for the
    /// base. `saved` has those that did not have to run: because of equal trees, because of the
    /// cache, and because they could not change the recommendation.
    fn words(ran: [u64; 2], saved: [u64; 3]) -> Option<String> {
        let ([ran, ran_base], [saved_equal, saved_cached, saved_not_run]) = (ran, saved);
        line(Effort { ran, ran_base, saved_equal, saved_cached, saved_not_run })
    }

    #[test]
    fn line_is_plain_english_whatever_ran_and_was_saved() {
        let said = |ran, saved| words(ran, saved).unwrap_or_default();
        assert_eq!(words([3, 1], [0, 0, 0]), None);
        assert_eq!(
            said([4, 1], [2, 0, 0]),
            "4 commands ran for the candidates and 1 for the base; 2 were saved by equal trees"
        );
        assert_eq!(
            said([1, 2], [1, 0, 2]),
            "1 command ran for the candidates and 2 for the base; 1 was saved by equal trees, \
             2 because they could not change the recommendation"
        );
        assert_eq!(
            said([0, 2], [0, 5, 1]),
            "2 commands ran for the base and none for the candidates; 5 were saved by the cache \
             (`--no-cache` turns it off), 1 because it could not change the recommendation"
        );
        assert_eq!(
            said([0, 1], [0, 0, 1]),
            "1 command ran for the base and none for the candidates; 1 was saved because it could \
             not change the recommendation"
        );
        assert_eq!(
            said([3, 0], [1, 1, 0]),
            "3 commands ran for the candidates; 1 was saved by equal trees, 1 by the cache \
             (`--no-cache` turns it off)"
        );
        assert_eq!(
            said([0, 0], [0, 1, 0]),
            "no command ran; 1 was saved by the cache (`--no-cache` turns it off)"
        );
    }
}
