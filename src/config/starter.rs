//! The starter file: every key of the table with what it is for and its default, all commented out.
use crate::config::keys::{self, Otherwise};

/// The text of a new `.frites.toml`.
pub fn text() -> String {
    let mut text = String::from(
        "# git-frites: how attempts at a change to this project are made and judged.\n\
         # Every key there is. A line that is commented out shows the default, or an example where there is\n\
         # none; take away its `#` to set it. `git frites config` shows what counts, and where it comes from.\n",
    );
    let mut section = "";
    for spec in keys::ALL {
        let (within, key) = spec.name.rsplit_once('.').unwrap_or(("", spec.name));
        if within != section {
            section = within;
            // A name that is the user's is an example, too.
            let comment = if section.contains('*') { "#" } else { "" };
            text.push_str(&format!("\n{comment}[{}]\n", section.replace('*', "example")));
        }
        let (value, note) = match spec.otherwise {
            Otherwise::Is(value) => (value, String::new()),
            Otherwise::Unset(words, example) => (example, format!(" Unset: {words}.")),
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
