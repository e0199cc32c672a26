//! Configuration. Its sources, the strongest first, are flags, variables `FRITES_*`,
//! `git config frites.*`, `.frites.toml`, and defaults.
//!
//! One table of keys serves all sources. A key that is not in the table is an error that names the
//! file, the line and the nearest key. Flags are not read here: each command applies its own flags.
mod file;
pub mod keys;
pub mod starter;
pub mod value;

use std::collections::BTreeMap;
use std::path::Path;

use toml::Value;

use crate::config::keys::{DefaultValue, Key, KeySpec};
use crate::config::value::Setting;
use crate::error::{Error, Result};
use crate::model::nearest::nearest;
use crate::model::oracle::CommandLine;

/// The name of the configuration file at the root of the user's own checkout.
pub const FILE: &str = ".frites.toml";

/// The value of a key that is set, and where it was set.
#[derive(Clone, Debug)]
pub struct SourcedValue {
    /// The value; the key's type accepts it.
    pub value: Value,
    /// The source, in words that stay the same when lines are added to a file.
    pub source: String,
    /// The exact place: a file with a line, a configuration file of git, or a variable.
    pub place: String,
    /// Set if the value replaces a list from a weaker source, and lacks items of that list: the
    /// place of that list.
    pub replaced: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Origin {
    /// See [`SourcedValue::source`].
    source: String,
    /// See [`SourcedValue::place`].
    place: String,
    /// The place as the start of an error message.
    error_prefix: String,
}

/// The effective configuration.
#[derive(Debug, Default)]
pub struct Config {
    values: BTreeMap<String, SourcedValue>,
}

impl Config {
    /// Reads all sources. `root` is the user's own checkout, if there is one; `git_settings` is the
    /// output of [`Repo::settings_of`](crate::git::repo::Repo::settings_of) for `frites`.
    pub fn load(root: Option<&Path>, git_settings: &[u8]) -> Result<Config> {
        let mut config = Config::default();
        if let Some(root) = root {
            config.read_file(&root.join(FILE))?;
        }
        config.read_git(git_settings)?;
        config.read_environment()?;
        Ok(config)
    }

    /// The value that is set for a key, or else the default.
    pub fn get<T: Setting>(&self, key: Key<T>) -> T {
        self.value_of(key, key.name)
    }

    /// The value of a key whose `*` stands for `name`.
    pub fn get_for<T: Setting>(&self, key: Key<T>, name: &str) -> T {
        self.value_of(key, &key.name.replace('*', name))
    }

    /// The names that stand in place of the `*` of this key in any source.
    pub fn names_of<T>(&self, key: Key<T>) -> impl Iterator<Item = &str> {
        let (before, after) = key.name.split_once('*').unwrap_or((key.name, ""));
        self.values.keys().filter_map(move |name| name.strip_prefix(before)?.strip_suffix(after))
    }

    fn value_of<T: Setting>(&self, key: Key<T>, name: &str) -> T {
        let value = match self.values.get(name) {
            Some(set) => T::read(&set.value),
            None => match key.default {
                DefaultValue::Is(text) => T::read(&keys::parse(text)),
                DefaultValue::Unset(..) => T::unset(),
            },
        };
        value.expect("`set` checks every value that is set, and a test checks every default")
    }

    /// A command, and the source that set it.
    pub fn command(&self, key: Key<Option<CommandLine>>) -> Option<(CommandLine, String)> {
        Some((self.get(key)?, self.values.get(key.name)?.source.clone()))
    }

    /// Every key that is set, by its full name.
    pub fn all(&self) -> &BTreeMap<String, SourcedValue> {
        &self.values
    }

    /// Reads git's settings. A setting is two fields, each ended by NUL: first the origin
    /// (`file:.git/config`, `command line:`), then the key, a newline and the value. Refuses text
    /// that is not UTF-8, because a path with replaced bytes would name another file.
    fn read_git(&mut self, settings: &[u8]) -> Result<()> {
        let mut lists: BTreeMap<String, (&KeySpec, Vec<Value>, Origin)> = BTreeMap::new();
        let mut fields = settings.split(|byte| *byte == 0);
        while let (Some(origin), Some(setting)) = (fields.next(), fields.next()) {
            let origin = String::from_utf8_lossy(origin);
            let file = origin.trim_start_matches("file:").trim_end_matches(':');
            let place = format!("git config ({file})");
            let setting = std::str::from_utf8(setting).map_err(|_| {
                let text = String::from_utf8_lossy(setting);
                let key = text.lines().next().unwrap_or_default();
                Error::fatal(format!("{place}: the value of '{key}' is not UTF-8"))
                    .hint(format!("set it again, or `git config --unset-all {key}`"))
            })?;
            // A key without a newline is git's short form of `true`.
            let (name, text) = setting.split_once('\n').unwrap_or((setting, "true"));
            let name = name.strip_prefix("frites.").unwrap_or(name);
            // `agent.claude` is accepted, too, because git's own sections are singular, as in
            // `remote.origin`.
            let key = match name.strip_prefix("agent.") {
                Some(rest) => format!("agents.{rest}"),
                None => name.to_owned(),
            };
            let spec = find_key(&key, &place)?;
            let source = format!("git config frites.{key}");
            let origin = Origin { error_prefix: source.clone(), source, place };
            if spec.list {
                let list = lists.entry(key).or_insert((spec, Vec::new(), Origin::default()));
                match value::literal(text) {
                    Some(Value::Array(items)) => list.1.extend(items),
                    _ => list.1.push(text.into()),
                }
                list.2 = origin;
            } else {
                self.set(spec, key, of_text(spec, text), origin)?;
            }
        }
        for (key, (spec, list, origin)) in lists {
            self.set(spec, key, Some(Value::Array(list)), origin)?;
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
                    .hint(format!("set it again, or `unset {variable}`"))
            })?;
            let origin = Origin {
                source: variable.clone(),
                place: variable.clone(),
                error_prefix: variable,
            };
            self.set(spec, spec.name.to_owned(), of_text(spec, &text), origin)?;
        }
        Ok(())
    }

    /// Sets a key; refuses a value that the key's type does not accept.
    fn set(
        &mut self,
        spec: &KeySpec,
        key: String,
        value: Option<Value>,
        origin: Origin,
    ) -> Result<()> {
        let Origin { source, place, error_prefix } = origin;
        let Some(value) = value.filter(|value| (spec.accepts)(value)) else {
            return Err(Error::fatal(format!("{error_prefix}: '{key}' takes {}", spec.takes))
                .hint(format!("correct '{key}', or remove it to get the default")));
        };
        let mut replaced = None;
        if let Some(earlier) = self.values.get(&key)
            && let Some(old) = earlier.value.as_array()
            && let Some(new) = value.as_array()
            && !old.iter().all(|item| new.contains(item))
        {
            replaced = Some(earlier.place.clone());
        }
        self.values.insert(key, SourcedValue { value, source, place, replaced });
        Ok(())
    }
}

/// Converts a text from a source that has only text. If the text is a literal of TOML that the key
/// takes, it is read as this literal. Otherwise, the key's type converts it.
fn of_text(spec: &KeySpec, text: &str) -> Option<Value> {
    let literal = value::literal(text).filter(|literal| (spec.accepts)(literal));
    literal.or_else(|| (spec.from_text)(text))
}

/// The entry of the table for a key. Refuses an unknown key with a hint that names the nearest key,
/// or lists the keys of a section.
fn find_key(key: &str, place: &str) -> Result<&'static KeySpec> {
    if let Some(spec) = keys::ALL.iter().find(|spec| spec.matches(key)) {
        return Ok(spec);
    }
    let error = Error::fatal(format!("{place}: unknown key '{key}'"));
    let is_section = keys::ALL.iter().any(|spec| spec.is_within(key));
    Err(match nearest(keys::ALL.iter().map(|spec| spec.name), key) {
        Some(near) if !is_section => error.hint(format!("did you mean '{near}'?")),
        _ => error.hint(list_of_keys(key)),
    })
}

/// The list of keys of the section whose name is nearest to the start of `key`. If no section is
/// near, returns the command that lists all keys.
fn list_of_keys(key: &str) -> String {
    let sections = keys::ALL.iter().filter_map(|spec| spec.name.split('.').next());
    let Some(section) = nearest(sections, key.split('.').next().unwrap_or(key)) else {
        // The hint does not name `git frites config`, which fails until this key is corrected.
        return "`git frites man config` lists all keys".to_owned();
    };
    let names: Vec<&str> =
        keys::ALL.iter().filter(|spec| spec.is_within(section)).map(|spec| spec.name).collect();
    format!("the keys are {}", names.join(", "))
}

/// True if the name of a variable begins with that of a section.
fn names_a_section(variable: &str) -> bool {
    let section = variable.strip_prefix("FRITES_").and_then(|rest| rest.split_once('_'));
    let section = section.map(|(section, _)| section.to_lowercase());
    section.is_some_and(|section| keys::ALL.iter().any(|spec| spec.is_within(&section)))
}

/// Refuses a variable that begins with the name of a section but sets no key, such as
/// `FRITES_ORACLE_TSET`.
fn refuse_unknown_variables() -> Result<()> {
    let variables: Vec<String> = keys::ALL.iter().filter_map(KeySpec::variable).collect();
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = names.find(|name| names_a_section(name) && !variables.contains(name));
    let Some(name) = unknown else { return Ok(()) };
    let error = Error::fatal(format!("the variable {name} sets no key"));
    Err(match nearest(variables.iter().map(String::as_str), &name) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("`unset {name}`; the variables are {}", variables.join(", "))),
    })
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

    /// The keys that a file can set.
    fn keys_of_files() -> impl Iterator<Item = &'static KeySpec> {
        keys::ALL.iter().filter(|spec| !spec.is_users_own())
    }

    /// A file with each of these keys, set to a value that the key takes.
    fn file_with_every_key() -> String {
        let line = |spec: &KeySpec| {
            let (DefaultValue::Is(value) | DefaultValue::Unset(_, value)) = spec.default;
            format!("{} = {value}\n", spec.name.replace('*', "mine"))
        };
        keys_of_files().map(line).collect()
    }

    #[test]
    fn a_file_with_every_key_is_read() {
        assert_eq!(
            read(&file_with_every_key()).expect("valid").all().len(),
            keys_of_files().count()
        );
    }

    #[test]
    fn no_file_of_a_repository_names_a_hook() {
        for text in ["hooks.verdict = 'x'\n", "[hooks]\ntimeout = '1h'\n"] {
            let error = read(text).expect_err("it is the user's");
            assert!(error.message.contains("cannot be set in"), "{}", error.message);
        }
        let mut config = Config::default();
        config.read_git(b"file:f\0frites.hooks.verdict\nnotify 'a b'\0").expect("valid");
        assert_eq!(
            config.get(keys::HOOKS_VERDICT).map(|argv| argv.0),
            Some(vec!["notify".to_owned(), "a b".to_owned()])
        );
    }

    #[test]
    fn git_settings_make_lists_and_name_their_files() {
        let settings = "file:.git/config\0frites.seed.copy\n.env\0\
                        file:.git/config\0frites.oracle.detect\0\
                        command line:\0frites.seed.copy\nvendor\0\
                        file:/home/u/.gitconfig\0frites.agent.mine.command\nmy agent\0";
        let mut config = Config::default();
        config.read_git(settings.as_bytes()).expect("valid");
        assert_eq!(config.get(keys::SEED_COPY), [".env", "vendor"]);
        assert_eq!(config.all()["seed.copy"].place, "git config (command line)");
        assert!(config.get(keys::ORACLE_DETECT), "a key without a value is true");
        assert_eq!(config.names_of(keys::AGENT_COMMAND).collect::<Vec<_>>(), ["mine"]);

        let error = config.read_git(b"file:f\0frites.spawn.job\n1\0").expect_err("unknown key");
        assert_eq!(error.message, "git config (f): unknown key 'spawn.job'");
        let error = config.read_git(b"file:f\0frites.spawn.jobs\nx\0").expect_err("no number");
        assert_eq!(
            error.message,
            "git config frites.spawn.jobs: 'spawn.jobs' takes a whole number from 1"
        );
    }

    proptest! {
        #[test]
        fn a_file_that_was_damaged_is_read_or_its_place_is_named(
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, "[\\[\\]{}\"'=.,#\\\\\n\u{0}éa0-]{0,3}"), 1..4),
        ) {
            let mut text: Vec<char> = file_with_every_key().chars().collect();
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
                // The position is in the file, or directly behind its end.
                let lines: Vec<&str> = text.split('\n').collect();
                prop_assert!((1..=lines.len()).contains(&line), "{}", error.message);
                prop_assert!((1..=lines[line - 1].chars().count() + 1).contains(&column), "{}", error.message);
                prop_assert!(!error.hints.is_empty());
            }
        }
    }
}
