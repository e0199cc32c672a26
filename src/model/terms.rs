//! The terms of a judging: the commands, the settings and the seeds. They describe completely how a
//! tree was judged. Records contain the terms, and output shows them. The ledger finds outcomes by
//! their terms. Only outcomes with the same terms are compared.
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::base_tests::BaseTests;
use crate::model::is_default;
use crate::model::name::Name;
use crate::model::oracle::{CommandLine, OracleCommand, as_options, shell_word};
use crate::model::outcome::Stage;
use crate::model::path::quoted;
use crate::model::rank::Rank;
use crate::model::world::WorldKind;

/// The terms on which trees were judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Terms {
    /// A digest of the seeds; `None` if nothing ran.
    pub seeds: Option<String>,
    /// In records, the key of this field is `terms`.
    #[serde(rename = "terms")]
    pub settings: JudgeSettings,
    /// The commands, in order; empty if there are none to run.
    pub oracle: Vec<OracleCommand>,
}

/// The settings of a judging, and the reasons to doubt its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct JudgeSettings {
    /// The ranking of the candidates that passed.
    pub rank: Rank,
    /// True if each candidate's tests were also run on the other candidates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cross: bool,
    /// `synthesis.ceiling`: a synthesis (a candidate that was made from other candidates, its
    /// originals) can win only if its size is at most this multiple of the combined size of its
    /// originals that passed. `None` means 1.5.
    pub ceiling: Option<f64>,
    /// Paths that were restored to the base's version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Which candidates were judged a second time, with the base's tests and commands.
    pub base_tests: BaseTests,
    /// The patterns of `oracle.source`. They declare which files are source and which are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    #[serde(flatten)]
    pub commands: CommandSettings,
    /// True if a renamed file counts as one file, with the lines that differ. Otherwise it
    /// counts as a deleted and an added one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renames: bool,
    /// True if the candidates were judged in their worktrees, where ignored files can affect the
    /// results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
    /// The reasons to doubt the results.
    #[serde(flatten)]
    pub doubts: Doubts,
    /// True if the commands were detected, and none of them is a test: then a pass shows nothing
    /// about the change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tests_nothing: bool,
}

/// The settings of the oracle's commands. The results on a tree depend on each of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CommandSettings {
    /// The kind of world in which the commands ran, i.e. how they were confined.
    pub world: WorldKind,
    /// If a command fails, it is run again up to this many times.
    #[serde(skip_serializing_if = "is_default")]
    pub retries: u32,
    /// True if a command that passed only in a retry counted as failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuse_flaky: bool,
    /// True if an exit code of 0 counted, whatever the tests' report says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust_exit: bool,
    /// The JUnit file, or directory of such files, that tests write: a path from the checkout's
    /// root.
    pub junit: Option<String>,
}

/// The reasons to doubt results: passes with such a reason are not verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Doubts {
    /// True if something outside of the checkouts changed between commands of the oracle, and can
    /// have affected them: git's configuration, a file in `info/`, `.frites.toml`, or a file above
    /// the judge checkouts. Then candidates were judged under different conditions, and one may
    /// have made another fail or pass.
    ///
    /// In records, the key of this field is `disturbed`.
    #[serde(rename = "disturbed", skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// Seeds that lead back to a checkout of the repository. With them, commands may have used
    /// files of that checkout in place of the judged files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leads_back: Vec<String>,
    /// Paths that the run's attempts could write to and that the commands could read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts_write: Vec<String>,
}

impl Doubts {
    /// Adds the reasons to doubt other results.
    pub fn add(&mut self, more: &Doubts) {
        self.tainted |= more.tainted;
        for (all, more) in [
            (&mut self.leads_back, &more.leads_back),
            (&mut self.attempts_write, &more.attempts_write),
        ] {
            for path in more {
                if !all.contains(path) {
                    all.push(path.clone());
                }
            }
        }
    }
}

/// The hint for seeds that lead back to a checkout.
pub const LEADS_BACK_HINT: &str = "take the seed out of `seed.copy` or `seed.link`; let \
                                   `spawn.setup` make its files in each checkout, e.g. with `uv sync`";

/// The hint for paths that the commands can read and attempts may write.
pub const ATTEMPTS_WRITE_HINT: &str = "check the files that attempts wrote there: they stay, and later runs trust them; then take the path \
     out of `spawn.write` or out of the seeds, and spawn again";

/// The terms that the results on a tree depend on. The other terms affect only which trees are
/// judged, and how the verdict is decided from the results.
#[derive(Serialize)]
pub struct ResultTerms<'t> {
    oracle: Vec<(Stage, &'t CommandLine)>,
    settings: &'t CommandSettings,
    seeds: Option<&'t str>,
}

impl Terms {
    /// The terms that the results on a tree depend on.
    pub fn of_results(&self) -> ResultTerms<'_> {
        ResultTerms {
            oracle: self.oracle.iter().map(|c| (c.stage, &c.command)).collect(),
            settings: &self.settings.commands,
            seeds: self.seeds.as_deref(),
        }
    }

    /// A digest of the terms that results depend on. If two results on the same tree have the same
    /// digest, either can be used in place of the other.
    pub fn id(&self) -> String {
        let text = serde_json::to_vec(&self.of_results()).unwrap_or_default();
        HEXLOWER.encode(&Sha256::digest(text))
    }

    /// These terms without the setup command, which no option of `judge` names.
    #[must_use]
    pub fn without_setup(&self) -> Terms {
        let mut terms = self.clone();
        terms.oracle.retain(|command| command.stage != Stage::Setup);
        terms
    }

    /// The command that judges a run on these terms, with the options `more`. It repeats the terms
    /// that options may have set, because the next judging would not take them from the record.
    /// These are retries, protected paths, and the commands that came from options. But commands
    /// that `more` replaces are left out.
    pub fn judge_command(&self, run: &Name, more: &str) -> String {
        let named = |c: &&OracleCommand| c.source.starts_with("--") && !more.contains(&c.source);
        let named = as_options(self.oracle.iter().filter(named));
        let retries = match self.settings.commands.retries {
            0 => String::new(),
            retries => format!(" --retries {retries}"),
        };
        let protected = self.settings.protect.iter();
        let protected: String =
            protected.map(|p| format!(" --protect {}", shell_word(p))).collect();
        format!("git frites judge {run}{more}{named}{retries}{protected}")
    }

    /// The first difference between these terms and `ours` that matters to a verdict, as a clause
    /// about these terms. Four things are compared: the world, the commands, the settings of
    /// [`JudgeSettings::by_key`], and the seeds if both are known.
    ///
    /// The other terms, e.g. the ranking, the doubts and the way of counting lines, are not
    /// compared. They do not change the result of a command, or the verdict records them as doubts.
    pub fn first_difference(&self, ours: &Terms) -> Option<String> {
        self.different_world(ours)
            .or_else(|| self.different_command(ours))
            .or_else(|| self.settings.difference(&ours.settings))
            .or_else(|| {
                let differ =
                    self.seeds.is_some() && ours.seeds.is_some() && self.seeds != ours.seeds;
                differ.then(|| "its seeds differ from the seeds here".into())
            })
    }

    fn different_world(&self, ours: &Terms) -> Option<String> {
        let [theirs, ours] = [self, ours].map(|terms| terms.settings.commands.world.in_words());
        let differ = format!("its commands ran {theirs}, but those of other outcomes ran {ours}");
        (theirs != ours).then_some(differ)
    }

    fn different_command(&self, ours: &Terms) -> Option<String> {
        [Stage::Setup, Stage::Build, Stage::Lint, Stage::Test].into_iter().find_map(|stage| match (
            self.command(stage),
            ours.command(stage),
        ) {
            (Some(theirs), Some(ours)) if theirs != ours => {
                Some(format!("its {stage} command is `{theirs}`, and here `{ours}`"))
            }
            (Some(theirs), None) => {
                Some(format!("its {stage} command is `{theirs}`, and here there is none"))
            }
            (None, Some(ours)) => {
                Some(format!("it has no {stage} command, and here it is `{ours}`"))
            }
            _ => None,
        })
    }

    fn command(&self, stage: Stage) -> Option<&CommandLine> {
        self.oracle.iter().find(|c| c.stage == stage).map(|c| &c.command)
    }
}

impl JudgeSettings {
    /// True if a pass with these settings can be verified: a command tests the change, and there is
    /// no reason to doubt the results.
    pub fn can_verify(&self) -> bool {
        !self.tests_nothing && self.doubts_in_words().is_empty()
    }

    /// The reasons to doubt the results, each as a clause.
    pub fn doubts_in_words(&self) -> Vec<String> {
        let Doubts { tainted, leads_back, attempts_write } = &self.doubts;
        let mut words = Vec::new();
        if self.in_place {
            let why = "other files there may have affected the results";
            words.push(format!("the run was judged in the worktrees, and {why}"));
        }
        words.extend(
            leads_back
                .first()
                .map(|first| format!("the seed '{first}' leads to a checkout of this repository")),
        );
        words.extend(attempts_write.iter().map(|path| {
            let path = quoted(path.as_bytes());
            format!("the commands can read {path}, which attempts may write")
        }));
        if *tainted {
            let what = "git's settings, `.frites.toml` or files above the checkouts";
            words.push(format!("{what} changed while the oracle's commands ran"));
        }
        words
    }

    /// True if a pass does not count until it has been compared with the base's results
    /// (`ops/judge/overruled.rs`).
    pub fn needs_base(&self) -> bool {
        !self.in_place && self.base_tests != BaseTests::Never
    }

    /// The settings that matter to a verdict. Each has its key, and its value as it is written for
    /// `git -c KEY=VALUE`. This list is used to show the settings, to compare them, and to name
    /// them in hints.
    fn by_key(&self) -> [(&'static str, String); 7] {
        let CommandSettings { world: _, retries, refuse_flaky, trust_exit, junit } = &self.commands;
        [
            ("oracle.protect", as_value(&self.protect)),
            ("oracle.base-tests", as_value(self.base_tests)),
            ("oracle.source", as_value(&self.source)),
            ("oracle.retries", as_value(retries)),
            ("oracle.flaky", (if *refuse_flaky { "fail" } else { "pass" }).to_owned()),
            ("oracle.trust-exit", as_value(trust_exit)),
            ("oracle.junit", junit.clone().unwrap_or_else(|| "none".to_owned())),
        ]
    }

    /// The settings that differ from `ours`. Each item has the key, the value in `self`, and the
    /// value in `ours`. If the candidates were judged in place, no file of the base was put back.
    /// So the settings that choose the files to put back are not compared.
    fn differences(&self, ours: &JudgeSettings) -> Vec<(&'static str, String, String)> {
        let puts_back = ["oracle.protect", "oracle.base-tests", "oracle.source"];
        let pairs = self.by_key().into_iter().zip(ours.by_key());
        let mut all: Vec<_> = pairs.map(|((key, theirs), (_, ours))| (key, theirs, ours)).collect();
        all.retain(|(key, theirs, ours)| {
            theirs != ours && !(self.in_place && puts_back.contains(key))
        });
        all
    }

    /// The first setting that differs from `ours`, as a clause about these settings.
    fn difference(&self, ours: &JudgeSettings) -> Option<String> {
        let (key, theirs, ours) = self.differences(ours).into_iter().next()?;
        Some(format!("its {key} is {theirs}, and here {ours}"))
    }

    /// For each setting that differs from `ours`, the option with which `git` sets it to its value
    /// in `self`: ` -c KEY=VALUE`. Each option begins with a space.
    pub fn git_options(&self, ours: &JudgeSettings) -> String {
        let differences = self.differences(ours).into_iter();
        let pairs = differences.map(|(key, theirs, _)| format!("frites.{key}={theirs}"));
        pairs.map(|pair| format!(" -c {}", shell_word(&pair))).collect()
    }

    /// The settings that differ from the default, in words, e.g. `oracle.retries = 2`. `None` if
    /// there are none.
    pub fn in_words(&self) -> Option<String> {
        let changed =
            self.differences(&JudgeSettings { in_place: self.in_place, ..Default::default() });
        let words: Vec<String> =
            changed.into_iter().map(|(key, value, _)| format!("{key} = {value}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// A value as it is written for `git -c KEY=VALUE`.
fn as_value(value: impl Serialize) -> String {
    match toml::Value::try_from(value) {
        Ok(toml::Value::String(text)) => text,
        value => value.map(|value| value.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let command = CommandLine::Shell("make test".into());
        let oracle = vec![OracleCommand { stage: Stage::Test, command, source: "Makefile".into() }];
        Terms { seeds: Some("a".into()), oracle, ..Terms::default() }
    }

    #[test]
    fn terms_that_results_depend_on_have_an_id_of_their_own_and_are_a_difference() {
        type Change = fn(&mut Terms);
        let changes: [(Change, &str); 5] = [
            (|t| t.seeds = Some("b".into()), "its seeds differ"),
            (|t| t.oracle.clear(), "it has no test command, and here it is `make test`"),
            (|t| t.settings.commands.retries = 2, "its oracle.retries is 2, and here 0"),
            (|t| t.settings.commands.trust_exit = true, "its oracle.trust-exit is true, and here"),
            (
                |t| t.settings.commands.world = WorldKind::Sealed,
                "its commands ran in sealed worlds",
            ),
        ];
        for (change, words) in changes {
            let mut other = terms();
            change(&mut other);
            assert_ne!(other.id(), terms().id(), "{words}");
            let difference = other.first_difference(&terms()).unwrap_or_default();
            assert!(difference.starts_with(words), "{difference}");
        }
    }

    #[test]
    fn command_that_judges_again_names_what_options_named() {
        let run = "1".parse().expect("a name");
        let mut terms = terms();
        assert_eq!(terms.judge_command(&run, " --cold"), "git frites judge 1 --cold");
        terms.oracle[0].source = "--test".into();
        let again = terms.judge_command(&run, " --cold");
        assert_eq!(again, "git frites judge 1 --cold --test 'make test'");
        terms.settings.commands.retries = 2;
        terms.settings.protect = vec!["a b".into(), "c".into()];
        let again = terms.judge_command(&run, " --test CMD");
        assert_eq!(again, "git frites judge 1 --test CMD --retries 2 --protect 'a b' --protect c");
        terms.settings = JudgeSettings::default();
        assert_eq!(terms.judge_command(&run, " --test CMD"), "git frites judge 1 --test CMD");
    }

    #[test]
    fn terms_that_choose_trees_are_a_difference_and_those_that_decide_are_none() {
        let mut other = terms();
        other.settings.protect = vec!["tests".into()];
        assert_eq!(other.id(), terms().id());
        assert_eq!(
            other.first_difference(&terms()).as_deref(),
            Some("its oracle.protect is [\"tests\"], and here []")
        );
        let mut other = terms();
        other.settings.rank = Rank::Agreement;
        other.settings.doubts.tainted = true;
        other.oracle[0].source = "--test".into();
        assert_eq!((other.id(), other.first_difference(&terms())), (terms().id(), None));
    }

    #[test]
    fn settings_are_shown_and_given_as_options_by_their_keys() {
        let mut settings = JudgeSettings::default();
        assert_eq!((settings.in_words(), settings.git_options(&settings)), (None, String::new()));
        settings.protect = vec!["a b".into(), "c".into()];
        settings.commands.retries = 2;
        let words = "oracle.protect = [\"a b\", \"c\"], oracle.retries = 2";
        assert_eq!(settings.in_words().as_deref(), Some(words));
        let ours = JudgeSettings { protect: settings.protect.clone(), ..JudgeSettings::default() };
        assert_eq!(settings.git_options(&ours), " -c frites.oracle.retries=2");
        let options = ours.git_options(&JudgeSettings::default());
        assert_eq!(options, " -c 'frites.oracle.protect=[\"a b\", \"c\"]'");
    }

    #[test]
    fn terms_of_an_earlier_version_are_read() {
        let record = "seeds = 'abc'\n\n[terms]\nrank = 'agreement'\nceiling = 1.5\nprotect = ['ci']\n\
                      base-tests = 'changed'\nworld = 'sealed'\nretries = 2\nrefuse-flaky = true\n\
                      junit = 'r.xml'\nrenames = true\ndisturbed = true\nleads-back = ['.venv']\n\n\
                      [[oracle]]\nstage = 'test'\ncommand = 'make test'\nsource = 'Makefile'\n";
        let terms: Terms = toml::from_str(record).expect("it is read");
        let CommandSettings { world, retries, refuse_flaky, trust_exit, junit } =
            &terms.settings.commands;
        assert_eq!((*world, *retries, *refuse_flaky), (WorldKind::Sealed, 2, true));
        assert_eq!((*trust_exit, junit.as_deref()), (false, Some("r.xml")));
        let Doubts { tainted, leads_back, attempts_write } = &terms.settings.doubts;
        assert!(*tainted && leads_back == &[".venv"] && attempts_write.is_empty());
        assert_eq!((terms.settings.rank, terms.oracle.len()), (Rank::Agreement, 1));
        let written = toml::to_string(&terms).expect("it is written");
        let table = |text: &str| toml::from_str::<toml::Table>(text).expect("a table");
        assert_eq!(table(&written), table(record));
    }
}
