//! Reads `.frites.toml`, one of the sources of the configuration.
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use crate::config::{Config, FILE, Origin, find_key, keys};
use crate::error::{Error, IfExists, IoContext, Result};
use crate::fs::regular;

/// A file's text, for turning offsets into lines and columns.
struct ConfigFile<'a> {
    path: &'a Path,
    text: &'a str,
}

impl ConfigFile<'_> {
    /// The line of the byte at this offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.before(offset).matches('\n').count() + 1
    }

    /// `PATH:LINE:COLUMN` of the byte at this offset.
    fn position(&self, offset: usize) -> String {
        let last_line = self.before(offset).rsplit('\n').next().unwrap_or_default();
        let column = last_line.chars().count() + 1;
        format!("{}:{}:{column}", self.path.display(), self.line(offset))
    }

    fn before(&self, offset: usize) -> &str {
        self.text.get(..offset).unwrap_or(self.text)
    }
}

impl Config {
    pub(super) fn read_file(&mut self, path: &Path) -> Result<()> {
        if path.is_symlink() && !path.exists() {
            return Err(Error::fatal(format!("'{}' is a link to nothing", path.display()))
                .hint("remove the link, or make the file to which it leads"));
        }
        let bytes = regular::read(path).if_exists().could_not("read", path)?;
        bytes.map_or(Ok(()), |bytes| self.read_bytes(&bytes, path))
    }

    /// Fails if these bytes are not a valid `.frites.toml`, with the error that [`Config::load`]
    /// would give in a checkout with this file.
    pub fn check_file(bytes: &[u8]) -> Result<()> {
        Config::default().read_bytes(bytes, Path::new(FILE))
    }

    fn read_bytes(&mut self, bytes: &[u8], path: &Path) -> Result<()> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            not_toml(&format!("{}:{line}", path.display()), "this is not UTF-8")
        })?;
        self.read_toml(text, path)
    }

    pub(super) fn read_toml(&mut self, text: &str, path: &Path) -> Result<()> {
        let file = ConfigFile { path, text };
        let table = DeTable::parse(text).map_err(|e| {
            let offset = e.span().map_or(0, |span| span.start);
            not_toml(&file.position(offset), e.message())
        })?;
        self.read_table("", table.get_ref(), &file)
    }

    fn read_table(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        file: &ConfigFile<'_>,
    ) -> Result<()> {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            if let DeValue::Table(inner) = value.get_ref()
                && keys::ALL.iter().any(|spec| spec.is_within(&key))
            {
                self.read_table(&key, inner, file)?;
                continue;
            }
            let position = file.position(name.span().start);
            let spec = find_key(&key, &position)?;
            if spec.is_users_own() {
                let words = format!("{position}: '{key}' cannot be set in {FILE}");
                let hint = format!("set it for yourself: `git config --global frites.{key} …`");
                return Err(Error::fatal(words).hint(hint));
            }
            let offset = value.span().start;
            let origin = Origin {
                source: FILE.to_owned(),
                place: format!("{FILE}:{}", file.line(offset)),
                error_prefix: file.position(offset),
            };
            self.set(spec, key, without_spans(value), origin)?;
        }
        Ok(())
    }
}

fn not_toml(position: &str, why: &str) -> Error {
    Error::fatal(format!("{position}: {why}")).hint(format!("fix the TOML syntax of {FILE}"))
}

/// A value without its positions; `None` if TOML allows it but we cannot represent it, such as a
/// number that is too large.
fn without_spans(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Value::deserialize(ValueDeserializer::from(value.clone())).ok()
}
