//! The types of keys, and how each is read from TOML and from sources that hold only text.
use std::time::Duration;

use toml::Value;

use crate::model::agent_output::UsageFormat;
use crate::model::base_tests::BaseTests;
use crate::model::oracle::CommandLine;
use crate::model::rank::Rank;
use crate::model::world::WorldKind;

/// A type that a key can have.
pub trait Setting: Sized {
    /// The values that the type takes, in words.
    const TAKES: &'static str;

    /// True for a list.
    const LIST: bool = false;

    /// Reads a value; `None` if it has another type, or is out of range.
    fn read(value: &Value) -> Option<Self>;

    /// Converts a text, unless the type accepts it as a [`literal`]. [`Setting::read`] may refuse
    /// the result.
    fn from_text(text: &str) -> Option<Value> {
        Some(text.into())
    }

    /// The value of an unset key without a default; `None` if the type has no such value.
    fn unset() -> Option<Self> {
        None
    }
}

/// A number, or an array of strings, that is written as in TOML; `None` for any other text.
pub fn literal(text: &str) -> Option<Value> {
    let mut table: toml::Table = format!("value = {}", text.trim()).parse().ok()?;
    let value = table.remove("value")?;
    let is_literal = match &value {
        Value::Array(items) => items.iter().all(Value::is_str),
        value => value.is_integer() || value.is_float(),
    };
    (is_literal && table.is_empty()).then_some(value)
}

impl<T: Setting> Setting for Option<T> {
    const TAKES: &'static str = T::TAKES;
    const LIST: bool = T::LIST;

    fn read(value: &Value) -> Option<Self> {
        T::read(value).map(Some)
    }

    fn from_text(text: &str) -> Option<Value> {
        T::from_text(text)
    }

    fn unset() -> Option<Self> {
        Some(None)
    }
}

impl Setting for CommandLine {
    const TAKES: &'static str = "a string (run by sh -c) or an array of strings (run as argv)";

    fn read(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some(text) => Some(CommandLine::Shell(text.to_owned())),
            None => Vec::read(value).filter(|words| !words.is_empty()).map(CommandLine::Argv),
        }
    }
}

impl Setting for String {
    const TAKES: &'static str = "a string";

    fn read(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Setting for bool {
    const TAKES: &'static str = "true or false";

    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn from_text(text: &str) -> Option<Value> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true.into()),
            "false" | "no" | "off" | "0" | "" => Some(false.into()),
            _ => None,
        }
    }
}

impl Setting for usize {
    const TAKES: &'static str = "a whole number from 1";

    fn read(value: &Value) -> Option<Self> {
        value.as_integer().and_then(|n| n.try_into().ok()).filter(|n| *n > 0)
    }
}

impl Setting for u32 {
    const TAKES: &'static str = "a whole number from 0";

    fn read(value: &Value) -> Option<Self> {
        value.as_integer().and_then(|n| n.try_into().ok())
    }
}

impl Setting for Rank {
    const TAKES: &'static str = "one of blast-radius, agreement, cross, auto";

    fn read(value: &Value) -> Option<Self> {
        value.clone().try_into().ok()
    }
}

impl Setting for BaseTests {
    const TAKES: &'static str = "one of changed, always, never";

    fn read(value: &Value) -> Option<Self> {
        value.clone().try_into().ok()
    }
}

impl Setting for Duration {
    const TAKES: &'static str = "a duration such as \"90s\", \"10m\" or \"1h30m\"";

    fn read(value: &Value) -> Option<Self> {
        parse_duration(value.as_str()?)
    }
}

impl Setting for Vec<String> {
    const TAKES: &'static str = "an array of strings";
    const LIST: bool = true;

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    }

    fn from_text(text: &str) -> Option<Value> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Some(Value::Array(items.map(Value::from).collect()))
    }
}

impl Setting for f64 {
    const TAKES: &'static str = "a number above 0";

    fn read(value: &Value) -> Option<Self> {
        let number = value.as_float().or(value.as_integer().map(|n| n as f64));
        number.filter(|n| n.is_finite() && *n > 0.0)
    }
}

/// Defines types that have a few words as their values.
macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident: $first:literal $variant:ident, $($word:literal $other:ident),+;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
        pub enum $name {
            #[doc = $first]
            #[strum(serialize = $first)]
            $variant,
            $(#[doc = $word] #[strum(serialize = $word)] $other),+
        }

        impl Setting for $name {
            const TAKES: &'static str = concat!("one of ", $first, $(", ", $word),+);

            fn read(value: &Value) -> Option<Self> {
                value.as_str()?.parse().ok()
            }
        }
    )+};
}

choices! {
    /// `env.mode`
    EnvMode: "inherit" Inherit, "clean" Clean;
    /// `oracle.flaky`
    Flaky: "pass" Pass, "fail" Fail;
    /// `ui.notify`: how a person who looks elsewhere learns that the work has ended
    NotifyMode: "off" Off, "bell" Bell, "auto" Auto;
    /// `synthesis.mode`
    SynthesisMode: "passing-only" PassingOnly, "off" Off;
    /// `merge.strategy`
    MergeStrategy: "none" None, "newest-file-wins" NewestFileWins;
    /// `merge.tie`: the side that wins if both wrote a file at the same time
    Tie: "child" Child, "parent" Parent;
    /// `sandbox.mode`
    SandboxMode: "auto" Auto, "required" Required, "sealed" Sealed, "landlock" Landlock, "off" Off;
    /// `sandbox.home`
    SandboxHome: "user" User, "private" Private;
    /// `spawn.home`
    SpawnHome: "private" Private, "shared" Shared;
    /// `spawn.guard`
    GuardMode: "auto" Auto, "required" Required, "off" Off;
    /// `oracle.proof`
    ProofMode: "auto" Auto, "always" Always, "never" Never;
    /// `oracle.warm`
    WarmMode: "auto" Auto, "base" Base, "never" Never;
    /// `agents.*.stdin`
    AgentInput: "prompt" Prompt, "none" None;
}

impl SandboxMode {
    /// True if this mode accepts outcomes from this kind of world.
    pub fn allows(self, world: WorldKind) -> bool {
        match self {
            SandboxMode::Auto | SandboxMode::Off => true,
            SandboxMode::Required => world != WorldKind::Open,
            SandboxMode::Sealed => world == WorldKind::Sealed,
            SandboxMode::Landlock => world == WorldKind::Landlock,
        }
    }
}

/// `sandbox.network`
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Network {
    /// `true`
    On,
    /// `false`
    Off,
    /// `"setup"`: only the setup command has the network.
    Setup,
}

impl Setting for Network {
    const TAKES: &'static str = "true, false or \"setup\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(true) => Some(Network::On),
            Value::Boolean(false) => Some(Network::Off),
            Value::String(text) if text == "setup" => Some(Network::Setup),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Value> {
        if text == "setup" { Some(text.into()) } else { bool::from_text(text) }
    }
}

/// The strings of an array, or the parts of a string between its commas.
fn listed(value: &Value) -> Option<Vec<String>> {
    match value.as_str() {
        Some(text) => Some(text.split(',').map(|word| word.trim().to_owned()).collect()),
        None => Vec::read(value),
    }
}

/// A program and its arguments, which run without a shell; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argv(pub Vec<String>);

impl Setting for Argv {
    const TAKES: &'static str =
        "a program and its arguments: an array of strings, or one string with shell quoting";

    fn read(value: &Value) -> Option<Self> {
        let words = match value.as_str() {
            Some(text) => shell_words::split(text).ok(),
            None => Vec::read(value),
        };
        words.filter(|words| !words.is_empty()).map(Argv)
    }
}

impl Setting for UsageFormat {
    const TAKES: &'static str = "claude, codex, gemini, opencode, off, or JSON pointers such as \"in=/usage/in,out=/usage/out,cost=/usd\"";

    fn read(value: &Value) -> Option<Self> {
        UsageFormat::parse(&listed(value)?)
    }
}

/// The variables that name directories for an agent's state, or one word: `off`, or the name of a
/// built-in agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVariables(pub Vec<String>);

impl Setting for StateVariables {
    const TAKES: &'static str = "off, the name of a built-in agent, or names of variables: an array of strings, or a string with commas";
    const LIST: bool = true;

    fn read(value: &Value) -> Option<Self> {
        let words = listed(value)?;
        let is_name = |word: &String| {
            let begins_well = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            begins_well && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        (!words.is_empty() && words.iter().all(is_name)).then_some(StateVariables(words))
    }
}

/// An interval; `None` for `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(pub Option<Duration>);

impl Setting for Interval {
    const TAKES: &'static str = "\"off\", or a duration such as \"10m\" or \"1h30m\"";

    fn read(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "off" => Some(Interval(None)),
            text => parse_duration(text).map(|interval| Interval(Some(interval))),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl Setting for ByteSize {
    const TAKES: &'static str = "a size such as 2GiB";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => parse_size::parse_size(text).ok().map(ByteSize),
            Value::Integer(n) => u64::try_from(*n).ok().map(ByteSize),
            _ => None,
        }
    }
}

/// Reads a duration such as `90s`, `10m` or `1h30m`; `None` if the text is not a duration above
/// zero.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok().filter(|d| !d.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{keys, of_text};
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text| parse_duration(text).map(|d| d.as_secs());
        assert_eq!(["90s", "10m", "1h30m"].map(seconds), [Some(90), Some(600), Some(5400)]);
        assert_eq!(["", "10", "0s", "-5s", "soon"].map(seconds), [None; 5]);
    }

    proptest! {
        #[test]
        fn a_duration_is_the_sum_of_its_parts(h in 0u64..10_000, m in 0u64..10_000, s in 0u64..10_000) {
            let all = Duration::from_secs(h * 3600 + m * 60 + s);
            prop_assert_eq!(parse_duration(&format!("{h}h{m}m{s}s")), Some(all).filter(|d| !d.is_zero()));
        }

        #[test]
        fn a_size_is_its_number_times_its_unit(n in 0u64..1 << 20, unit in 0u32..5) {
            let text = format!("{n}{}", ["B", "KiB", "MiB", "GiB", "TiB"][unit as usize]);
            prop_assert_eq!(ByteSize::read(&Value::from(text)), n.checked_mul(1 << (10 * unit)).map(ByteSize));
        }

        #[test]
        fn every_text_is_a_value_of_a_key_or_is_not(
            text in prop_oneof![any::<String>(), "[-+]?[0-9]{1,30}[a-zA-Z. ]{0,6}[0-9]{0,30}[a-z]{0,3}", "[0-9PTHMS.e-]{0,20}"],
        ) {
            for spec in keys::ALL {
                // An accepted value is accepted again after a round trip through TOML.
                if let Some(value) = of_text(spec, &text).filter(|value| (spec.accepts)(value)) {
                    let again: Value = value.to_string().parse().expect("TOML");
                    prop_assert!((spec.accepts)(&again), "{}: {again}", spec.name);
                }
            }
            prop_assert!(parse_duration(&text).is_none_or(|d| !d.is_zero()));
        }
    }
}
