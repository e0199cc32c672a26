//! The starter file: every key of the table, with its description and its default, as comments.
use crate::config::keys::{self, DefaultValue};
use crate::ui::table::printable;

/// The files of a checkout that are proposed as seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedProposal {
    /// The patterns for `seed.copy`.
    pub patterns: Vec<String>,
    /// The files and directories that these patterns match.
    pub found: Vec<String>,
    /// Directories that do not work as copies, because files in them hold the directory's own path.
    pub tied: Vec<String>,
}

impl SeedProposal {
    /// The comments and the line for `seed.copy`.
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.tied.is_empty() {
            text.push_str(&format!(
                "# Not proposed, because files in a copy would still contain the path of the original: {}.\n\
                 # Let spawn.setup make one in each worktree.\n",
                printable(&self.tied.join(", "))
            ));
        }
        if self.patterns.is_empty() {
            return text;
        }
        let patterns: toml::Value = self.patterns.clone().into();
        text.push_str(&format!(
            "# git ignores these files in this checkout: {}.\n# Proposed, if attempts or their tests need them:\n#copy = {patterns}\n",
            printable(&self.found.join(", "))
        ));
        text
    }
}

/// The text of a new `.frites.toml`.
pub fn text(seeds: &SeedProposal) -> String {
    let mut text = String::from(
        "# git-frites: how attempts at a change to this project are made and judged.\n\
         # This file has all keys except hooks.*, which only your own configuration can set. A commented-out line shows the default, or an example if there is no default;\n\
         # remove its `#` to set the key. `git frites config` shows each effective value and its source.\n",
    );
    let mut section = "";
    for spec in keys::ALL.iter().filter(|spec| !spec.is_users_own()) {
        let (within, key) = spec.name.rsplit_once('.').unwrap_or(("", spec.name));
        if within != section {
            section = within;
            // If the user chooses the name of a section, its heading is only an example, too.
            let comment = if section.contains('*') { "#" } else { "" };
            text.push_str(&format!("\n{comment}[{}]\n", section.replace('*', "example")));
        }
        let (value, note) = match spec.default {
            DefaultValue::Is(value) => (value, String::new()),
            DefaultValue::Unset(words, example) => (example, format!(" Unset: {words}.")),
        };
        text.push_str(&format!("# {}{note}\n#{key} = {}\n", spec.about, value.replace('\'', "\"")));
        if spec.name == keys::SEED_COPY.name {
            text.push_str(&seeds.text());
        }
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
        let none = SeedProposal::default();
        assert!(read(&text(&none)).all().is_empty(), "all is commented out");
        let uncommented: String = text(&none)
            .lines()
            .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        let config = read(&uncommented);
        let shown = || keys::ALL.iter().filter(|spec| !spec.is_users_own());
        for spec in shown() {
            assert!(config.all().keys().any(|name| spec.matches(name)), "{} is shown", spec.name);
        }
        assert_eq!(config.all().len(), shown().count());
    }

    #[test]
    fn a_proposal_is_a_comment_until_somebody_uncomments_it() {
        let seeds = SeedProposal {
            patterns: vec![".env*".into(), "/a\"b/node_modules/".into()],
            found: vec![".env".into(), "a\n#b".into()],
            tied: vec![".venv".into()],
        };
        let text = text(&seeds);
        assert!(read(&text).all().is_empty(), "all is commented out");
        assert!(text.contains(": .venv.") && text.contains(": .env, a\\n#b."), "{text}");
        let line = text.lines().find(|line| line.starts_with("#copy = [\"")).expect("proposed");
        let config = read(&format!("[seed]\n{}", &line[1..]));
        assert_eq!(config.get(keys::SEED_COPY), seeds.patterns);
    }
}
