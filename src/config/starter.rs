//! The starter file: every key of the table with its description and its default, all commented
//! out.
use crate::config::keys::{self, DefaultValue};

/// The text of a new `.frites.toml`.
pub fn text() -> String {
    let mut text = String::from(
        "# git-frites: how attempts at a change to this project are made and judged.\n\
         # All keys. A commented-out line shows the default, or an example if there is no default;\n\
         # remove its `#` to set the key. `git frites config` shows each effective value and its source.\n",
    );
    let mut section = "";
    for spec in keys::ALL {
        let (within, key) = spec.name.rsplit_once('.').unwrap_or(("", spec.name));
        if within != section {
            section = within;
            // A section whose name the user chooses is an example, too.
            let comment = if section.contains('*') { "#" } else { "" };
            text.push_str(&format!("\n{comment}[{}]\n", section.replace('*', "example")));
        }
        let (value, note) = match spec.default {
            DefaultValue::Is(value) => (value, String::new()),
            DefaultValue::Unset(words, example) => (example, format!(" Unset: {words}.")),
        };
        text.push_str(&format!("# {}{note}\n#{key} = {}\n", spec.about, value.replace('\'', "\"")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn read(text: &str) -> Config {
        let mut config = Config::default();
        config.read_toml(text, Path::new("starter")).expect("it is TOML with known keys");
        config
    }

    #[test]
    fn it_sets_nothing_and_shows_every_key() {
        assert!(read(&text()).all().is_empty(), "all is commented out");
        let uncommented: String = text()
            .lines()
            .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        let config = read(&uncommented);
        for spec in keys::ALL {
            assert!(config.all().keys().any(|name| spec.matches(name)), "{} is shown", spec.name);
        }
        assert_eq!(config.all().len(), keys::ALL.len());
    }
}
