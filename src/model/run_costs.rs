//! The times that a run of the commands takes with the base's build outputs and without them, and
//! which of the two ways is expected to cost less.
use serde::{Deserialize, Serialize};

/// The times of the first runs that ended at one command, in seconds; `None` where no run was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunCosts {
    /// Over the base's build outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<f64>,
    /// Without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<f64>,
}

impl RunCosts {
    /// Notes the time of a run, unless one of its kind is noted already: so [`RunCosts::warm_pays`] changes
    /// its answer at most once.
    pub fn note(&mut self, is_warm: bool, seconds: f64) {
        let noted = if is_warm { &mut self.warm } else { &mut self.cold };
        noted.get_or_insert(seconds);
    }

    /// True if judging so many candidates with the base's outputs is expected to cost less, or a
    /// run over them has to show it first.
    ///
    /// At least one result is confirmed without outputs, the winner's; all are if nobody passes.
    /// The mean of both is expected.
    pub fn warm_pays(&self, candidates: usize) -> bool {
        let all = candidates as f64;
        let confirmed = f64::midpoint(all, 1.0);
        if candidates <= 1 {
            return false;
        }
        match (self.warm, self.cold) {
            (Some(warm), Some(cold)) => all * warm + confirmed * cold < all * cold,
            _ => true,
        }
    }

    /// Both times and the way that they speak for; `None` unless both are known.
    pub fn in_words(&self, candidates: usize) -> Option<String> {
        let (warm, cold) = self.warm.zip(self.cold)?;
        let way = match self.warm_pays(candidates) {
            true => "judging over them first costs less",
            false => "judging without them at once costs less",
        };
        Some(format!(
            "a run took {warm:.1} s with the base's build outputs and {cold:.1} s without them: {way}"
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
        // Outputs that save half save less than the confirmations cost.
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
        assert!(words.contains("3.0 s over") && words.ends_with("at once costs less"), "{words}");
    }
}
