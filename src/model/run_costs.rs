//! Compares two ways of judging: with the base's build outputs and without them. Chooses the way
//! that is expected to cost less time.
use serde::{Deserialize, Serialize};

/// The times, in seconds, of two runs of the commands, one with the base's build outputs and one
/// without them. Both runs ended at the same command (for example, the test), so the times can be
/// compared. Each run is the first of its kind that ended there. `None` if there was no such run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunCosts {
    /// The time with the base's build outputs.
    pub warm: Option<f64>,
    /// The time without the base's build outputs.
    pub cold: Option<f64>,
}

impl RunCosts {
    /// Notes the time of a run, unless the time of a run of its kind is noted already. So the
    /// answer of [`RunCosts::warm_pays`] changes at most once.
    pub fn note(&mut self, is_warm: bool, seconds: f64) {
        let noted = if is_warm { &mut self.warm } else { &mut self.cold };
        noted.get_or_insert(seconds);
    }

    /// True if judging this many candidates with the base's outputs is expected to cost less. Also
    /// true if there are several candidates, and one of the two times is not known yet.
    pub fn warm_pays(&self, candidates: usize) -> bool {
        candidates > 1 && self.sums(candidates).is_none_or(|[warm, cold]| warm < cold)
    }

    /// The expected times of judging this many candidates in two ways. In the first, they are
    /// judged with outputs, and then confirmed without them. In the second, they are judged without
    /// outputs from the start. `None` unless both times are known.
    fn sums(&self, candidates: usize) -> Option<[f64; 2]> {
        let (warm, cold) = self.warm.zip(self.cold)?;
        let all = candidates as f64;
        // Between 1 and `all` candidates are confirmed: only the winner, or all of them if none
        // passes. The mean of 1 and `all` is expected.
        Some([all * warm + f64::midpoint(all, 1.0) * cold, all * cold])
    }

    /// Both times, and which way is expected to cost less; `None` unless both times are known and
    /// there is a choice.
    pub fn in_words(&self, candidates: usize) -> Option<String> {
        let (warm, cold) = self.warm.zip(self.cold)?;
        let [over, without] = self.sums(candidates)?;
        if candidates <= 1 {
            return None;
        }
        let (way, less, more) = match self.warm_pays(candidates) {
            true => ("with outputs first", over, without),
            false => ("without outputs from the start", without, over),
        };
        Some(format!(
            "one judging took {warm:.1} s with the base's build outputs and {cold:.1} s without them; for \
             {candidates} candidates, it costs less to judge {way} (about {less:.1} s instead of {more:.1} s), \
             because results that decide are confirmed without outputs (see oracle.warm)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(warm: f64, cold: f64) -> RunCosts {
        RunCosts { warm: Some(warm), cold: Some(cold) }
    }

    #[test]
    fn a_slow_build_is_judged_warm_and_a_short_suite_cold() {
        assert!(costs(28.0, 199.0).warm_pays(4));
        assert!(!costs(2.0, 2.1).warm_pays(5));
        assert!(costs(0.0, 0.1).warm_pays(2));
        // Outputs that save half the time save less than the confirmations cost.
        assert!(!costs(1.0, 2.0).warm_pays(5));
        assert!(!costs(0.0, 0.0).warm_pays(5));
    }

    #[test]
    fn one_candidate_is_its_own_confirmation() {
        assert!(!costs(0.0, 199.0).warm_pays(1));
        assert!(!RunCosts::default().warm_pays(1));
    }

    #[test]
    fn an_unknown_time_is_learnt_by_a_warm_run() {
        let mut known = RunCosts::default();
        assert!(known.warm_pays(2));
        known.note(false, 3.0);
        assert!(known.warm_pays(2));
        assert_eq!(known.in_words(2), None);
        known.note(true, 3.0);
        assert!(!known.warm_pays(2));
        known.note(true, 0.0);
        assert_eq!(known, costs(3.0, 3.0));
        let words = known.in_words(2).unwrap_or_default();
        assert!(words.contains("3.0 s with"), "{words}");
        assert_eq!(known.in_words(1), None, "there is no choice");
    }

    #[test]
    fn both_sums_are_told_with_what_they_hold() {
        assert_eq!(
            costs(49.0, 94.5).in_words(5).unwrap_or_default(),
            "one judging took 49.0 s with the base's build outputs and 94.5 s without them; for 5 candidates, \
             it costs less to judge without outputs from the start (about 472.5 s instead of 528.5 s), \
             because results that decide are confirmed without outputs (see oracle.warm)"
        );
        let words = costs(28.0, 199.0).in_words(4).unwrap_or_default();
        let way = "to judge with outputs first (about 609.5 s instead of 796.0 s), because";
        assert!(words.contains(way), "{words}");
    }
}
