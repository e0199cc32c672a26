//! The share of a run that one job judges. A run's *parts* are the base and the candidates;
//! candidates with the same tree are one part. An *engine* starts the jobs: Slurm, GitLab or
//! Kubernetes.
use std::str::FromStr;

/// A share as a user types it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// `K/N`: every N-th part from the K-th.
    Fixed(Share),
    /// `auto`: environment variables of the engine give K and N.
    Auto,
    /// `auto/N`: an environment variable of the engine gives K.
    AutoOf(u32),
}

/// The parts `number`, `number + of`, `number + 2 * of` and so on. The first part of a run has the
/// number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the share, from 1. The first part of the share has the same number.
    pub number: u32,
    /// The count of shares.
    pub of: u32,
}

/// How a share is written. The error for an invalid share shows this.
pub const SHARD_RULE: &str = "a share is K/N, with K from 1 to N; in a Slurm array or a GitLab job, it can be auto; in an indexed \
     Kubernetes job, it can be auto/N";

impl Share {
    fn new(number: u32, of: u32) -> Option<Share> {
        (1..=of).contains(&number).then_some(Share { number, of })
    }

    /// The parts of this share, in their order.
    pub fn take<T>(self, parts: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        parts.into_iter().skip(self.number as usize - 1).step_by(self.of as usize)
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Shard, &'static str> {
        let shard = match text.split_once('/') {
            None if text == "auto" => Some(Shard::Auto),
            None => None,
            Some(("auto", of)) => of.parse().ok().filter(|of| *of > 0).map(Shard::AutoOf),
            Some((number, of)) => {
                let share = number.parse().ok().zip(of.parse().ok());
                share.and_then(|(number, of)| Share::new(number, of)).map(Shard::Fixed)
            }
        };
        shard.ok_or(SHARD_RULE)
    }
}

impl Shard {
    /// The share, by the variables that an engine sets: for a Slurm array, for a GitLab job with
    /// `parallel`, or for an indexed job of Kubernetes. `None` if these variables are missing or do
    /// not make a share.
    pub fn resolve(self, variable: impl Fn(&str) -> Option<String>) -> Option<Share> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        match self {
            Shard::Fixed(share) => Some(share),
            Shard::AutoOf(of) => Share::new(number("JOB_COMPLETION_INDEX")?.checked_add(1)?, of),
            Shard::Auto if variable("SLURM_ARRAY_TASK_ID").is_some() => {
                let first = number("SLURM_ARRAY_TASK_MIN")?;
                let from_first = number("SLURM_ARRAY_TASK_ID")?.checked_sub(first)?;
                let length = number("SLURM_ARRAY_TASK_MAX")?.checked_sub(first)?;
                let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
                let count = number("SLURM_ARRAY_TASK_COUNT")?;
                // The numbers of a list such as `1,3,7` do not differ by the step. Their positions
                // in the list are unknown.
                if from_first % step != 0 || (length / step).checked_add(1) != Some(count) {
                    return None;
                }
                Share::new(from_first / step + 1, count)
            }
            Shard::Auto => Share::new(number("CI_NODE_INDEX")?, number("CI_NODE_TOTAL")?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(text: &str, variables: &[(&str, &str)]) -> Option<(u32, u32)> {
        let value = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let shard: Shard = text.parse().expect("a shard");
        shard.resolve(value).map(|share| (share.number, share.of))
    }

    #[test]
    fn share_is_read_from_the_variables_of_each_engine() {
        assert_eq!(resolved("2/3", &[]), Some((2, 3)));
        assert_eq!(resolved("auto", &[]), None);
        assert_eq!(resolved("auto/4", &[("JOB_COMPLETION_INDEX", "0")]), Some((1, 4)));
        assert_eq!(resolved("auto/4", &[("JOB_COMPLETION_INDEX", "4")]), None);
        let gitlab = [("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")];
        assert_eq!(resolved("auto", &gitlab), Some((3, 3)));
        let slurm = |id, min, max, count, step| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_STEP", step),
            ]
        };
        assert_eq!(resolved("auto", &slurm("0", "0", "3", "4", "1")), Some((1, 4)));
        assert_eq!(resolved("auto", &slurm("9", "3", "9", "4", "2")), Some((4, 4)));
        // `--array=1,3,7`
        for id in ["1", "3", "7"] {
            assert_eq!(resolved("auto", &slurm(id, "1", "7", "3", "1")), None);
        }
        assert_eq!(resolved("auto", &slurm("4", "3", "9", "4", "2")), None);
        for text in ["", "0/3", "4/3", "1/0", "auto/0", "auto/x", "1/2/3", "-1/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn shares_hold_each_part_once(parts in 0usize..40, of in 1u32..12) {
            let mut all: Vec<usize> = (1..=of)
                .flat_map(|number| Share { number, of }.take(0..parts).collect::<Vec<_>>())
                .collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..parts).collect::<Vec<_>>());
        }
    }
}
