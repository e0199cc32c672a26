//! `git frites config`: shows the effective configuration, or writes a `.frites.toml` to start
//! with.
use std::fs::OpenOptions;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::agents;
use crate::complete;
use crate::config::keys::{self, DefaultValue, KeySpec};
use crate::config::{self, starter};
use crate::error::{Error, IoContext, Result, exit};
use crate::model::nearest::nearest;
use crate::ops::proposed_seeds;
use crate::ops::session::Session;
use crate::ui::style::Tone;
use crate::ui::table::{self, Grid};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Shows each key with its value and where the value comes from: .frites.toml in the root of \
your checkout, git's configuration (`git config frites.KEY VALUE`), or a variable such as \
FRITES_ORACLE_TEST. The later ones override the earlier ones.\n\n\
Exit status: 0; 1 if KEY is not set and has no default."
)]
pub struct ConfigArgs {
    /// Print nothing but the value of this key
    #[arg(value_name = "KEY", add = complete::by(complete::keys))]
    pub key: Option<String>,
    /// Write a .frites.toml with every key commented out, and seeds proposed from what your
    /// checkout ignores; an existing file is kept
    #[arg(long, conflicts_with_all = ["key", "json"])]
    pub init: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// One effective setting.
struct Row {
    key: String,
    spec: &'static KeySpec,
    /// The value; `None` if the key is not set and has no default.
    value: Option<toml::Value>,
    place: Option<String>,
}

pub fn run(session: &Session, args: &ConfigArgs) -> Result<u8> {
    if args.init {
        return init(session);
    }
    let rows = rows(session);
    match &args.key {
        None => show_all(session, args, &rows),
        Some(key) => match rows.into_iter().find(|row| row.key == *key).or_else(|| built_in(key)) {
            None => return Err(unknown(key)),
            Some(row) => {
                match &row.value {
                    _ if args.json => {
                        session.ui.answer_json(json!({ "keys": [as_json(&row)] }));
                    }
                    Some(value) => session.ui.answer(format!("{}\n", bare(value))),
                    None => {}
                }
                // If a key is not set, the exit code is 1, as in `git config`.
                return Ok(if row.value.is_some() { exit::OK } else { exit::NO });
            }
        },
    }
    Ok(exit::OK)
}

/// The rows of all keys, in the order of `keys::ALL`. A key with a `*`, e.g. `agents.*.framing`,
/// has one row for each name that is in use.
fn rows(session: &Session) -> Vec<Row> {
    let set = session.config.all();
    let mut rows = Vec::new();
    for spec in keys::ALL {
        let given: Vec<&String> = set.keys().filter(|name| spec.matches(name)).collect();
        for name in &given {
            let set = &set[*name];
            let value = Some(set.value.clone());
            let place = Some(set.place.clone());
            rows.push(Row { key: (*name).clone(), spec, value, place });
        }
        if given.is_empty() && !spec.name.contains('*') {
            let value = match spec.default {
                DefaultValue::Is(text) => Some(keys::parse(text)),
                DefaultValue::Unset(..) => None,
            };
            rows.push(Row { key: spec.name.to_owned(), spec, value, place: None });
        }
    }
    rows
}

/// The row for an unset key of a built-in agent, with the built-in value.
fn built_in(key: &str) -> Option<Row> {
    let spec = keys::ALL.iter().find(|spec| spec.matches(key))?;
    let value = Some(agents::built_in_value(key)?.into());
    Some(Row { key: key.to_owned(), spec, value, place: None })
}

fn show_all(session: &Session, args: &ConfigArgs, rows: &[Row]) {
    if args.json {
        let keys: Vec<Value> = rows.iter().map(as_json).collect();
        return session.ui.answer_json(json!({ "keys": keys }));
    }
    let mut grid = Grid::new(&["key", "value", "from"], &[], session.ui.out);
    for row in rows {
        let set = row.place.is_some();
        let value = match (&row.value, row.spec.default) {
            (Some(value), _) => (value.to_string(), if set { Tone::Plain } else { Tone::Dim }),
            (None, DefaultValue::Unset(words, _) | DefaultValue::Is(words)) => {
                (format!("- ({words})"), Tone::Dim)
            }
        };
        let from = (row.place.clone().unwrap_or_else(|| "default".into()), Tone::Dim);
        grid.row(vec![(row.key.clone(), Tone::Plain), value, from]);
    }
    session.ui.answer(grid.render());
    if let Some(home) = session.home.as_ref().filter(|home| !home.join(config::FILE).exists()) {
        session.ui.hint(format!(
            "`git frites config --init` writes '{}'",
            home.join(config::FILE).display()
        ));
    }
}

fn as_json(row: &Row) -> Value {
    json!({
        "key": row.key, "value": row.value, "place": row.place, "default": row.place.is_none(),
        "about": row.spec.about, "takes": row.spec.takes, "variable": row.spec.variable(),
    })
}

/// A value as scripts read it: a string without quotes, an array with one item on each line.
fn bare(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(bare).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

fn unknown(key: &str) -> Error {
    let error = Error::usage(format!("there is no key '{key}'"));
    let names = keys::ALL.iter().map(|spec| spec.name).filter(|name| *name != key);
    match nearest(names, key) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("`git frites config` lists the keys"),
    }
}

fn init(session: &Session) -> Result<u8> {
    let Some(home) = &session.home else {
        return Err(Error::fatal("there is no checkout here that could hold a configuration file")
            .hint("set keys in git's configuration instead: `git config frites.oracle.test CMD`"));
    };
    let seeds = proposed_seeds::find(session)?;
    let path = home.join(config::FILE);
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::fatal(format!("'{}' exists already", path.display()))
                .hint("it is not changed; `git frites config` shows its values"));
        }
        file => file.context(|| format!("could not write '{}'", path.display()))?,
    };
    file.write_all(starter::text(&seeds).as_bytes())
        .context(|| format!("could not write '{}'", path.display()))?;
    session.ui.answer(format!("{}\n", path.display()));
    session.ui.hint("uncomment a key to set it; commit the file to share it");
    session.ui.hint(
        "`git log --all` shows captures, too; without them: `git config alias.la \"log \
         --exclude='refs/frites/*' --exclude='refs/heads/frites/*' --all\"`",
    );
    if !seeds.patterns.is_empty() {
        session.ui.hint(format!(
            "the file proposes seeds that this checkout has: seed.copy = {}",
            table::printable(&toml::Value::from(seeds.patterns).to_string())
        ));
    }
    Ok(exit::OK)
}
