//! Configuration: flags, then `FRITES_*`, then `git config frites.*`, then `.frites.toml`, then defaults.
//!
//! One table of keys feeds every layer; a key that is not in it is an error that names the file, the
//! line and the nearest key. Flags are applied by the commands themselves, on top.
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, IoContext, Result};
use crate::git::repo::Repo;
use crate::model::oracle::CommandLine;

/// The file at the root of the user's own checkout.
pub const FILE: &str = ".frites.toml";

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Command,
    Text,
    Choice(&'static [&'static str]),
    Switch,
    Count,
    Ratio,
    Span,
    Size,
    List,
}

impl Kind {
    fn in_words(self) -> String {
        let words = match self {
            Kind::Choice(words) => return format!("one of {}", words.join(", ")),
            Kind::Command => "a string (run by sh -c) or an array of strings (run as argv)",
            Kind::Text => "a string",
            Kind::Ratio => "a number above 0",
            Kind::Switch => "true or false",
            Kind::Count => "a whole number from 1",
            Kind::Span => "a duration such as \"90s\", \"10m\" or \"1h30m\"",
            Kind::Size => "a size such as 2GiB",
            Kind::List => "an array of strings",
        };
        words.to_owned()
    }
}

/// Every key there is.
const KEYS: [(&str, Kind); 24] = [
    ("oracle.build", Kind::Command),
    ("oracle.lint", Kind::Command),
    ("oracle.test", Kind::Command),
    ("oracle.detect", Kind::Switch),
    ("oracle.timeout", Kind::Span),
    ("seed.copy", Kind::List),
    ("seed.link", Kind::List),
    ("spawn.jobs", Kind::Count),
    ("spawn.timeout", Kind::Span),
    ("spawn.idle-timeout", Kind::Span),
    ("spawn.setup", Kind::Command),
    ("spawn.worktree-root", Kind::Text),
    ("diff.exclude", Kind::List),
    ("env.mode", Kind::Choice(&["inherit", "clean"])),
    ("env.pass", Kind::List),
    ("env.deny", Kind::List),
    ("synthesis.mode", Kind::Choice(&["passing-only", "off"])),
    ("synthesis.ceiling", Kind::Ratio),
    ("limits.candidates", Kind::Count),
    ("limits.jobs", Kind::Count),
    ("limits.nesting", Kind::Count),
    ("limits.inheritance", Kind::Count),
    ("limits.worktrees", Kind::Count),
    ("limits.min-free-disk", Kind::Size),
];

/// What a key is set to.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Command(CommandLine),
    Text(String),
    Switch(bool),
    Count(usize),
    Ratio(f64),
    Span(Duration),
    Size(u64),
    List(Vec<String>),
}

/// The effective configuration.
#[derive(Debug, Default)]
pub struct Config {
    values: BTreeMap<&'static str, (Value, String)>,
}

impl Config {
    /// Reads every layer. `root` is the user's own checkout, if there is one.
    pub fn load(repo: &Repo, root: Option<&Path>) -> Result<Config> {
        let mut config = Config::default();
        if let Some(root) = root {
            config.read_file(&root.join(FILE))?;
        }
        config.read_git(repo)?;
        config.read_environment()?;
        Ok(config)
    }

    /// A command, and where it was set.
    pub fn command(&self, key: &str) -> Option<(&CommandLine, &str)> {
        match self.values.get(key)? {
            (Value::Command(command), source) => Some((command, source)),
            _ => None,
        }
    }

    /// A whole number, or its default.
    pub fn count(&self, key: &str, default: usize) -> usize {
        match self.values.get(key) {
            Some((Value::Count(n), _)) => *n,
            _ => default,
        }
    }

    /// A number, or its default.
    pub fn ratio(&self, key: &str, default: f64) -> f64 {
        match self.values.get(key) {
            Some((Value::Ratio(n), _)) => *n,
            _ => default,
        }
    }

    /// A duration, if one is set.
    pub fn span(&self, key: &str) -> Option<Duration> {
        match self.values.get(key)? {
            (Value::Span(span), _) => Some(*span),
            _ => None,
        }
    }

    /// A size in bytes, or its default.
    pub fn size(&self, key: &str, default: u64) -> u64 {
        match self.values.get(key) {
            Some((Value::Size(bytes), _)) => *bytes,
            _ => default,
        }
    }

    /// A switch, or its default.
    pub fn switch(&self, key: &str, default: bool) -> bool {
        match self.values.get(key) {
            Some((Value::Switch(on), _)) => *on,
            _ => default,
        }
    }

    /// A string, or one of several words.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            (Value::Text(text), _) => Some(text),
            _ => None,
        }
    }

    /// A list, or its default.
    pub fn list(&self, key: &str, default: &[&str]) -> Vec<String> {
        match self.values.get(key) {
            Some((Value::List(list), _)) => list.clone(),
            _ => default.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e).context(|| format!("could not read '{}'", path.display())),
        };
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            Error::fatal(format!("{}:{line}: this is not UTF-8", path.display()))
                .hint(format!("mend {FILE}; it is TOML"))
        })?;
        self.read_toml(text, path)
    }

    fn read_toml(&mut self, text: &str, path: &Path) -> Result<()> {
        let place = |at: usize| {
            let before = text.get(..at).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
            format!("{}:{line}:{column}", path.display())
        };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            Error::fatal(format!("{}: {}", place(at), e.message())).hint(format!("mend {FILE}; it is TOML"))
        })?;
        self.read_table("", table.get_ref(), &place)
    }

    fn read_table(&mut self, prefix: &str, table: &DeTable<'_>, place: &dyn Fn(usize) -> String) -> Result<()> {
        for (name, value) in table {
            let key =
                if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
            let section = format!("{key}.");
            match value.get_ref() {
                DeValue::Table(inner) if KEYS.iter().any(|(k, _)| k.starts_with(&section)) => {
                    self.read_table(&key, inner, place)?;
                }
                _ => {
                    let (known, kind) = known(&key, &|| place(name.span().start))?;
                    let value =
                        from_toml(kind, value).ok_or_else(|| wrong_type(&place(value.span().start), known, kind))?;
                    self.values.insert(known, (value, FILE.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn read_git(&mut self, repo: &Repo) -> Result<()> {
        let call =
            repo.checkout().for_user().call("config").args(["-z", "--show-origin", "--get-regexp", r"^frites\."]);
        let output = call.output()?;
        // 1 is "nothing found".
        if output.code > 1 {
            return Err(output.error("config"));
        }
        let mut lists: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let text = String::from_utf8_lossy(&output.stdout);
        let mut fields = text.split('\0');
        // Each setting comes as two fields: its origin (`file:.git/config`, `command line:`), then the rest.
        while let (Some(origin), Some(record)) = (fields.next(), fields.next()) {
            let place = || format!("git config ({})", origin.trim_start_matches("file:").trim_end_matches(':'));
            // A key without `=` has no newline: git's short form of `true`.
            let (name, text) = record.split_once('\n').unwrap_or((record, "true"));
            let key = name.strip_prefix("frites.").unwrap_or(name);
            let (known, kind) = known(key, &place)?;
            if kind == Kind::List {
                lists.entry(known).or_default().push(text.to_owned());
            } else {
                self.set_text(known, kind, text, &format!("git config frites.{known}"))?;
            }
        }
        for (key, list) in lists {
            self.values.insert(key, (Value::List(list), format!("git config frites.{key}")));
        }
        Ok(())
    }

    fn read_environment(&mut self) -> Result<()> {
        for (key, kind) in KEYS {
            let variable = format!("FRITES_{}", key.replace(['.', '-'], "_").to_uppercase());
            let Some(text) = std::env::var_os(&variable) else { continue };
            let text = text.into_string().map_err(|_| {
                Error::fatal(format!("{variable} is not UTF-8")).hint(format!("write it again, or `unset {variable}`"))
            })?;
            if kind == Kind::List {
                let list = text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect();
                self.values.insert(key, (Value::List(list), variable));
            } else {
                self.set_text(key, kind, &text, &variable)?;
            }
        }
        Ok(())
    }

    /// Sets a key from a layer that only knows strings.
    fn set_text(&mut self, key: &'static str, kind: Kind, text: &str, source: &str) -> Result<()> {
        let value = match kind {
            Kind::Command => Some(Value::Command(CommandLine::Shell(text.to_owned()))),
            Kind::Text => Some(Value::Text(text.to_owned())),
            Kind::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
            Kind::Ratio => ratio(text),
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(Value::Switch(true)),
                "false" | "no" | "off" | "0" | "" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Count => text.parse().ok().filter(|n| *n > 0).map(Value::Count),
            Kind::Span => parse_duration(text).map(Value::Span),
            Kind::Size => parse_size::parse_size(text).ok().map(Value::Size),
            Kind::List => None,
        };
        let value = value.ok_or_else(|| wrong_type(source, key, kind))?;
        self.values.insert(key, (value, source.to_owned()));
        Ok(())
    }
}

/// The user's own checkout. In a candidate's worktree (`inside`) that is the main one: the candidate's
/// may have been edited by an attempt.
pub fn checkout_root(repo: &Repo, inside: bool) -> Option<PathBuf> {
    match repo.work_tree() {
        Some(dir) if !inside => Some(dir.to_owned()),
        Some(_) if repo.common_dir().ends_with(".git") => repo.common_dir().parent().map(Path::to_owned),
        _ => None,
    }
}

/// Reads `90s`, `10m` or `1h30m`; none if it is something else, or no time at all.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok().filter(|d| !d.is_zero())
}

fn known(key: &str, place: &dyn Fn() -> String) -> Result<(&'static str, Kind)> {
    if let Some((known, kind)) = KEYS.iter().find(|(k, _)| *k == key) {
        return Ok((known, *kind));
    }
    let error = Error::fatal(format!("{}: unknown key '{key}'", place()));
    let nearest = KEYS.iter().map(|(k, _)| (strsim::damerau_levenshtein(k, key), *k)).min();
    Err(match nearest {
        Some((distance, near)) if distance <= 3 => error.hint(format!("did you mean '{near}'?")),
        _ => error.hint(format!("the keys are {}", KEYS.map(|(k, _)| k).join(", "))),
    })
}

fn wrong_type(place: &str, key: &str, kind: Kind) -> Error {
    Error::fatal(format!("{place}: '{key}' takes {}", kind.in_words()))
        .hint(format!("correct '{key}', or remove it to get the default"))
}

fn ratio(text: &str) -> Option<Value> {
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0).map(Value::Ratio)
}

fn from_toml(kind: Kind, value: &Spanned<DeValue<'_>>) -> Option<Value> {
    let strings = |value: &DeValue<'_>| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
    };
    let value = value.get_ref();
    match kind {
        Kind::Command => match value.as_str() {
            Some(text) => Some(Value::Command(CommandLine::Shell(text.to_owned()))),
            None => strings(value).filter(|words| !words.is_empty()).map(|w| Value::Command(CommandLine::Argv(w))),
        },
        Kind::Text => value.as_str().map(|s| Value::Text(s.to_owned())),
        Kind::Choice(words) => value.as_str().filter(|s| words.contains(s)).map(|s| Value::Text(s.to_owned())),
        Kind::Ratio => value.as_float().map(|n| n.as_str()).or(value.as_integer().map(|n| n.as_str())).and_then(ratio),
        Kind::Switch => value.as_bool().map(Value::Switch),
        Kind::Span => value.as_str().and_then(parse_duration).map(Value::Span),
        Kind::Count => value.as_integer()?.as_str().parse().ok().filter(|n| *n > 0).map(Value::Count),
        Kind::Size => match value.as_str() {
            Some(text) => parse_size::parse_size(text).ok().map(Value::Size),
            None => value.as_integer()?.as_str().parse().ok().map(Value::Size),
        },
        Kind::List => strings(value).map(Value::List),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        let mut config = Config::default();
        config.read_toml(text, Path::new(FILE)).map(|()| config)
    }

    #[test]
    fn both_forms_of_a_command_are_read() {
        let config = read("[oracle]\nbuild = \"make all\"\ntest = [\"cargo\", \"test\"]\n").expect("valid");
        assert_eq!(config.command("oracle.build").map(|c| c.0.argv().len()), Some(3), "sh -c");
        assert_eq!(config.command("oracle.test").map(|c| c.0.to_string()).as_deref(), Some("cargo test"));
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text| parse_duration(text).map(|d| d.as_secs());
        assert_eq!(["90s", "10m", "1h30m"].map(seconds), [Some(90), Some(600), Some(5400)]);
        assert_eq!(["", "10", "0s", "-5s", "soon"].map(seconds), [None; 5]);
    }

    #[test]
    fn a_size_is_a_number_with_a_unit_or_of_bytes() {
        let set =
            |text: &str| read(&format!("limits.min-free-disk = {text}\n")).map(|c| c.size("limits.min-free-disk", 1));
        let sizes =
            [("\"2GiB\"", 2 << 30), ("\"1.5 MiB\"", 3 << 19), ("\"2GB\"", 2_000_000_000), ("4096", 4096), ("0", 0)];
        for (text, bytes) in sizes {
            assert_eq!(set(text).expect("a size"), bytes, "{text}");
        }
        for text in ["\"much\"", "\"\"", "-1", "\"-1GiB\"", "\"99999999TiB\"", "true", "[\"2GiB\"]"] {
            let error = set(text).expect_err(text);
            assert!(error.message.ends_with("'limits.min-free-disk' takes a size such as 2GiB"), "{}", error.message);
        }
    }

    #[test]
    fn a_wrong_key_names_its_line_and_the_nearest() {
        let error = read("[oracle]\ntest = \"x\"\nbiuld = \"y\"\n").expect_err("unknown key");
        assert_eq!(error.message, ".frites.toml:3:1: unknown key 'oracle.biuld'");
        assert_eq!(error.hints, ["did you mean 'oracle.build'?"]);
    }

    #[test]
    fn a_wrong_type_and_broken_toml_name_their_place() {
        let error = read("spawn.jobs = 0\n").expect_err("not a count");
        assert_eq!(error.message, ".frites.toml:1:14: 'spawn.jobs' takes a whole number from 1");
        let error = read("[oracle\n").expect_err("not TOML");
        assert!(error.message.starts_with(".frites.toml:1:"), "{}", error.message);
    }
}
