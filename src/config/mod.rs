//! Configuration: flags, then `FRITES_*`, then `git config frites.*`, then `.frites.toml`, then defaults.
//!
//! One table of keys feeds every layer; a key that is not in it is an error that names the file, the
//! line and the nearest key. Flags are applied by the commands themselves, on top.
pub mod keys;
pub mod starter;
pub mod value;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use crate::config::keys::{Key, Otherwise, Spec};
use crate::config::value::Setting;
use crate::error::{Error, IoContext, Result};
use crate::fs::regular;
use crate::git::repo::Repo;
use crate::model::nearest::nearest;
use crate::model::oracle::CommandLine;

/// The file at the root of the user's own checkout.
pub const FILE: &str = ".frites.toml";

/// What a key is set to, and by whom.
#[derive(Clone, Debug)]
pub struct Set {
    /// The value; the key's type can be read from it.
    pub value: Value,
    /// The layer, in words that stay the same when lines are added to a file.
    pub source: String,
    /// Where exactly: a file with its line, a file of git's, a variable.
    pub place: String,
}

/// The effective configuration.
#[derive(Debug, Default)]
pub struct Config {
    values: BTreeMap<String, Set>,
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

    /// The value of a key: what it is set to, or its default.
    pub fn get<T: Setting>(&self, key: Key<T>) -> T {
        self.value_of(key, key.name)
    }

    /// The same for a key whose `*` stands for `name`.
    pub fn get_for<T: Setting>(&self, key: Key<T>, name: &str) -> T {
        self.value_of(key, &key.name.replace('*', name))
    }

    /// The names that a key's `*` stands for anywhere.
    pub fn names_of<T>(&self, key: Key<T>) -> impl Iterator<Item = &str> {
        let (before, after) = key.name.split_once('*').unwrap_or((key.name, ""));
        self.values.keys().filter_map(move |name| name.strip_prefix(before)?.strip_suffix(after))
    }

    fn value_of<T: Setting>(&self, key: Key<T>, name: &str) -> T {
        let value = match self.values.get(name) {
            Some(set) => T::read(&set.value),
            None => match key.otherwise {
                Otherwise::Is(text) => T::read(&keys::parse(text)),
                Otherwise::Unset(..) => T::unset(),
            },
        };
        value.expect("what is set was checked when it was read, the defaults are by a test")
    }

    /// A command, and the layer that set it.
    pub fn command(&self, key: Key<Option<CommandLine>>) -> Option<(CommandLine, String)> {
        Some((self.get(key)?, self.values.get(key.name)?.source.clone()))
    }

    /// Every key that is set, by its full name.
    pub fn all(&self) -> &BTreeMap<String, Set> {
        &self.values
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let bytes = match regular::read(path) {
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
            let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
            Place { file: path, line: before.matches('\n').count() + 1, column }
        };
        let table = DeTable::parse(text).map_err(|e| {
            let at = place(e.span().map_or(0, |s| s.start));
            Error::fatal(format!("{}: {}", at.exactly(), e.message()))
                .hint(format!("mend {FILE}; it is TOML"))
        })?;
        self.read_table("", table.get_ref(), &place)
    }

    fn read_table<'a>(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        place: &dyn Fn(usize) -> Place<'a>,
    ) -> Result<()> {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            match value.get_ref() {
                DeValue::Table(inner) if keys::ALL.iter().any(|spec| spec.is_within(&key)) => {
                    self.read_table(&key, inner, place)?;
                }
                _ => {
                    let spec = known(&key, || place(name.span().start).exactly())?;
                    let at = place(value.span().start);
                    let place = format!("{FILE}:{}", at.line);
                    self.put(spec, key, plain(value), &at.exactly(), FILE.to_owned(), place)?;
                }
            }
        }
        Ok(())
    }

    fn read_git(&mut self, repo: &Repo) -> Result<()> {
        if !repo.may_configure("frites") {
            return Ok(());
        }
        let call = repo.checkout().for_user().call("config").args([
            "-z",
            "--show-origin",
            "--get-regexp",
            r"^frites\.",
        ]);
        let output = call.output()?;
        // 1 is "nothing found".
        if output.code > 1 {
            return Err(output.error("config"));
        }
        let mut lists: BTreeMap<String, (&Spec, Vec<Value>, String)> = BTreeMap::new();
        let text = String::from_utf8_lossy(&output.stdout);
        let mut fields = text.split('\0');
        // Each setting comes as two fields: its origin (`file:.git/config`, `command line:`), then the rest.
        while let (Some(origin), Some(record)) = (fields.next(), fields.next()) {
            let place = format!(
                "git config ({})",
                origin.trim_start_matches("file:").trim_end_matches(':')
            );
            // A key without `=` has no newline: git's short form of `true`.
            let (name, text) = record.split_once('\n').unwrap_or((record, "true"));
            let key = name.strip_prefix("frites.").unwrap_or(name);
            // As git calls its sections: `remote.origin`, `branch.main`, and so `agent.claude`.
            let key =
                &key.strip_prefix("agent.").map_or(key.to_owned(), |rest| format!("agents.{rest}"));
            let spec = known(key, || place.clone())?;
            if spec.list {
                let list = lists.entry(key.clone()).or_insert((spec, Vec::new(), String::new()));
                list.1.push(text.into());
                list.2 = place;
            } else {
                let source = format!("git config frites.{key}");
                self.put(
                    spec,
                    key.clone(),
                    (spec.from_text)(text),
                    &source,
                    source.clone(),
                    place,
                )?;
            }
        }
        for (key, (spec, list, place)) in lists {
            let source = format!("git config frites.{key}");
            self.put(spec, key, Some(Value::Array(list)), &source, source.clone(), place)?;
        }
        Ok(())
    }

    fn read_environment(&mut self) -> Result<()> {
        refuse_unknown_variables()?;
        for spec in keys::ALL {
            let Some(variable) = spec.variable() else { continue };
            let Some(text) = std::env::var_os(&variable) else { continue };
            let text = text.into_string().map_err(|_| {
                Error::fatal(format!("{variable} is not UTF-8"))
                    .hint(format!("write it again, or `unset {variable}`"))
            })?;
            let value = (spec.from_text)(&text);
            self.put(
                spec,
                spec.name.to_owned(),
                value,
                &variable,
                variable.clone(),
                variable.clone(),
            )?;
        }
        Ok(())
    }

    /// Sets a key, or says `at` which place what is wrong with the value.
    fn put(
        &mut self,
        spec: &Spec,
        key: String,
        value: Option<Value>,
        at: &str,
        source: String,
        place: String,
    ) -> Result<()> {
        let Some(value) = value.filter(|value| (spec.accepts)(value)) else {
            return Err(Error::fatal(format!("{at}: '{key}' takes {}", spec.takes))
                .hint(format!("correct '{key}', or remove it to get the default")));
        };
        self.values.insert(key, Set { value, source, place });
        Ok(())
    }
}

/// A place in a file; both count from 1.
struct Place<'a> {
    file: &'a Path,
    line: usize,
    column: usize,
}

impl Place<'_> {
    fn exactly(&self) -> String {
        format!("{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// The user's own checkout. In a candidate's worktree (`inside`) that is the main one: the candidate's
/// may have been edited by an attempt.
pub fn checkout_root(repo: &Repo, inside: bool) -> Option<PathBuf> {
    match repo.work_tree() {
        Some(dir) if !inside => Some(dir.to_owned()),
        Some(_) if repo.common_dir().ends_with(".git") => {
            repo.common_dir().parent().map(Path::to_owned)
        }
        _ => None,
    }
}

fn known(key: &str, place: impl FnOnce() -> String) -> Result<&'static Spec> {
    if let Some(spec) = keys::ALL.iter().find(|spec| spec.matches(key)) {
        return Ok(spec);
    }
    let error = Error::fatal(format!("{}: unknown key '{key}'", place()));
    let is_section = keys::ALL.iter().any(|spec| spec.is_within(key));
    Err(match nearest(keys::ALL.iter().map(|spec| spec.name), key) {
        Some(near) if !is_section => error.hint(format!("did you mean '{near}'?")),
        // Not `git frites config`: it cannot run before this is mended.
        _ => error.hint(list_of_keys(key)),
    })
}

/// The keys of the section that `key` (nearly) begins with, or all.
fn list_of_keys(key: &str) -> String {
    let sections = keys::ALL.iter().filter_map(|spec| spec.name.split('.').next());
    let section = nearest(sections, key.split('.').next().unwrap_or(key));
    let of_section = |spec: &&Spec| section.is_none_or(|section| spec.is_within(section));
    let names: Vec<&str> = keys::ALL.iter().filter(of_section).map(|spec| spec.name).collect();
    format!("the keys are {}", names.join(", "))
}

/// Refuses a variable that is called after a section of the table, and sets no key.
fn refuse_unknown_variables() -> Result<()> {
    let known: Vec<String> = keys::ALL.iter().filter_map(Spec::variable).collect();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| !known.iter().any(|k| k == name)) else {
            continue;
        };
        let section = name
            .strip_prefix("FRITES_")
            .and_then(|rest| rest.split_once('_'))
            .map(|(s, _)| s.to_lowercase());
        if section.is_some_and(|section| keys::ALL.iter().any(|spec| spec.is_within(&section))) {
            let error = Error::fatal(format!("the variable {name} sets no key that there is"));
            return Err(match nearest(known.iter().map(String::as_str), name) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => {
                    error.hint(format!("`unset {name}`; the variables are {}", known.join(", ")))
                }
            });
        }
    }
    Ok(())
}

/// A value without its places; none for what TOML allows and we cannot hold, such as a number too large.
fn plain(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Value::deserialize(ValueDeserializer::from(value.clone())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Config> {
        let mut config = Config::default();
        config.read_toml(text, Path::new(FILE)).map(|()| config)
    }

    #[test]
    fn both_forms_of_a_command_are_read() {
        let config =
            read("[oracle]\nbuild = \"make all\"\ntest = [\"cargo\", \"test\"]\n").expect("valid");
        assert_eq!(config.command(keys::ORACLE_BUILD).map(|c| c.0.argv().len()), Some(3), "sh -c");
        let test = config.command(keys::ORACLE_TEST).expect("set");
        assert_eq!((test.0.to_string().as_str(), test.1.as_str()), ("cargo test", FILE));
        assert_eq!(config.all()["oracle.test"].place, ".frites.toml:3");
    }

    #[test]
    fn a_size_is_a_number_with_a_unit_or_of_bytes() {
        let set = |text: &str| {
            read(&format!("limits.min-free-disk = {text}\n"))
                .map(|c| c.get(keys::LIMITS_MIN_FREE_DISK).0)
        };
        let sizes = [
            ("\"2GiB\"", 2 << 30),
            ("\"1.5 MiB\"", 3 << 19),
            ("\"2GB\"", 2_000_000_000),
            ("4096", 4096),
            ("0", 0),
        ];
        for (text, bytes) in sizes {
            assert_eq!(set(text).expect("a size"), bytes, "{text}");
        }
        for text in ["\"much\"", "\"\"", "-1", "\"-1GiB\"", "\"99999999TiB\"", "true", "[\"2GiB\"]"]
        {
            let error = set(text).expect_err(text);
            assert!(
                error.message.ends_with("'limits.min-free-disk' takes a size such as 2GiB"),
                "{}",
                error.message
            );
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

    #[test]
    fn a_key_that_is_set_nowhere_has_its_default() {
        let config = read("[spawn]\njobs = 3\n").expect("valid");
        assert_eq!(config.get(keys::SPAWN_JOBS), Some(3));
        assert_eq!(config.get(keys::SPAWN_IDLE_TIMEOUT), None);
        assert_eq!(config.get(keys::LIMITS_MIN_FREE_DISK).0, 2 << 30);
    }

    /// Every key with a value that it takes, as a file would have them.
    fn whole() -> String {
        let line = |spec: &Spec| {
            let (Otherwise::Is(value) | Otherwise::Unset(_, value)) = spec.otherwise;
            format!("{} = {value}\n", spec.name.replace('*', "mine"))
        };
        keys::ALL.iter().map(line).collect()
    }

    #[test]
    fn a_file_with_every_key_is_read() {
        assert_eq!(read(&whole()).expect("valid").all().len(), keys::ALL.len());
    }

    proptest! {
        #[test]
        fn a_file_that_was_damaged_is_read_or_its_place_is_named(
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, "[\\[\\]{}\"'=.,#\\\\\n\u{0}éa0-]{0,3}"), 1..4),
        ) {
            let mut text: Vec<char> = whole().chars().collect();
            for (at, cut, new) in cuts {
                let at = at.index(text.len());
                let end = (at + cut).min(text.len());
                text.splice(at..end, new.chars());
            }
            let text: String = text.into_iter().collect();
            if let Err(error) = read(&text) {
                let mut parts = error.message.splitn(4, ':');
                prop_assert_eq!(parts.next(), Some(FILE));
                let mut number = || parts.next().and_then(|n| n.parse::<usize>().ok()).unwrap_or_default();
                let (line, column) = (number(), number());
                // The place is in the file, or right behind its end.
                let lines: Vec<&str> = text.split('\n').collect();
                prop_assert!((1..=lines.len()).contains(&line), "{}", error.message);
                prop_assert!((1..=lines[line - 1].chars().count() + 1).contains(&column), "{}", error.message);
                prop_assert!(!error.hints.is_empty());
            }
        }
    }
}
