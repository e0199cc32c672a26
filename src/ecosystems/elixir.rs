//! Elixir: Mix.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::manifest::all_but_sections;
use crate::ecosystems::paths::is_in;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, command};
use crate::model::outcome::Stage;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Settings, mix)],
    extensions: &["ex", "exs"],
    other_extensions: &["eex", "heex", "leex"],
    is_source_if_new: |file| file.has_its_language(),
    lock_files: &["mix.lock"],
    is_plain_lock: is_literal,
    comment: "#",
    quotes: &["\"\"\"", "'''", "\"", "'"],
    test_marks: r#"test "|describe "|doctest "#,
    skip_marks: "@tag :skip|@moduletag :skip|@describetag :skip|@tag skip:|exclude:",
    decisive_files: ".credo.exs .formatter.exs",
    // Mix reads the settings file of the environment in which it runs. So a new settings file may
    // change what is run, too, if its environment had none before.
    shadows_tool: |path| path.ends_with(".exs") && is_in(path, "config"),
    manifests: &[(&["mix.exs"], mix_part)],
    ..Ecosystem::NOTHING
};

/// Builds with `mix compile` and tests with `mix test`. Lints with the formatter if it is
/// configured.
fn mix(files: &RootFiles<'_>) -> FoundCommands {
    let Some(project) = files.first(&["mix.exs"]) else { return Ok(Vec::new()) };
    let mut found = vec![
        command(Stage::Build, &["mix", "compile"], project),
        command(Stage::Test, &["mix", "test"], project),
    ];
    if files.has(".formatter.exs") {
        found.push(command(Stage::Lint, &["mix", "format", "--check-formatted"], ".formatter.exs"));
    }
    if files.has("mix.lock") {
        found.push(command(Stage::Setup, &["mix", "deps.get", "--check-locked"], "mix.lock"));
    } else if files.text(project)?.unwrap_or_default().contains("deps:") {
        found.push(command(Stage::Setup, &["mix", "deps.get"], "mix.exs (no lock file)"));
    }
    Ok(found)
}

/// Restores the base's mix.exs, but keeps the attempt's dependencies from the registry. The rest of
/// the file is code.
fn mix_part(base: Option<&str>, own: &str) -> Option<String> {
    all_but_sections(base, own, ("defp deps do", "\n  end"), |line| {
        const KEYS: [&str; 4] = ["only", "optional", "runtime", "targets"];
        let before = line.split(": ").filter_map(|text| text.rsplit([' ', '[', '{', ',']).next());
        let mut keys = before.take(line.matches(": ").count());
        line.is_empty()
            || line.starts_with("{:") && is_literal(line) && keys.all(|key| KEYS.contains(&key))
    })
}

/// True if a text consists only of maps, tuples, lists, strings, numbers and atoms. Mix evaluates
/// its lock file, so any other text would run as code.
fn is_literal(text: &str) -> bool {
    let parts = text.split('"').enumerate();
    // The text is split at its quotes. That would go wrong in three cases, so these are refused:
    // code in a string (`#{}`), escaped quotes, and strings in three quotes.
    !text.contains("\"\"\"")
        && text.matches('"').count().is_multiple_of(2)
        && parts.into_iter().all(|(at, part)| match at % 2 {
            0 => is_data(part),
            _ => !part.contains(['#', '\\']),
        })
}

/// True if the text between two strings has no call, and no names except atoms, keys, `true`,
/// `false` and `nil`.
fn is_data(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = text.split_inclusive(|c| !is_name(c)).scan(' ', |before, piece| {
        let name = piece.trim_end_matches(|c| !is_name(c));
        let after = piece[name.len()..].chars().next().unwrap_or(' ');
        let start = std::mem::replace(before, after);
        Some((start, name, after))
    });
    text.chars().all(|c| is_name(c) || c.is_ascii_whitespace() || "%{}[]:,".contains(c))
        && names.all(|(before, name, after)| {
            before == ':'
                || after == ':'
                || name.chars().all(|c| c.is_ascii_digit())
                || ["true", "false", "nil"].contains(&name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_that_calls_something_is_no_data() {
        let entry = |value: &str| {
            format!(
                "%{{\n  \"a\": {{:hex, :a, \"1.0.0\", {value}, [:mix], \
                 [{{:b, \"~> 1.0\", [hex: :b, optional: true]}}], \"hexpm\", \"y\"}},\n}}\n"
            )
        };
        for (value, expected) in [
            ("\"x\"", true),
            ("nil", true),
            ("System.halt(0)", false),
            ("exit :normal", false),
            ("exit 1", false),
            ("\"#{halt 1}\"", false),
            ("\"\"\"\n , \" , \n\"\"\", System.halt(0), \"", false),
            ("\"x\n# \", System.halt(0), \"\n\"", false),
            ("~s(x)", false),
            ("%System{}", false),
            ("&halt/1", false),
        ] {
            assert_eq!(is_literal(&entry(value)), expected, "{value}");
        }
    }
}
