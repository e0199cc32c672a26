//! Elixir: Mix.
use crate::ecosystems::ecosystem::{Ecosystem, is_in};
use crate::ecosystems::manifest::{PutBackPart, all_but_sections};
use crate::ecosystems::project::{Detector, Evidence, RootFiles, command};
use crate::error::Result;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Stage;

/// Elixir.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[Detector { evidence: Evidence::Settings, find: mix }],
    extensions: &["ex", "exs"],
    other_extensions: &["eex", "heex", "leex"],
    is_source_if_new: |file| file.has_its_language(),
    lock_files: &["mix.lock"],
    comment: "#",
    test_marks: &["test \"", "describe \"", "doctest "],
    skip_marks: &["@tag :skip", "@moduletag :skip", "@describetag :skip", "@tag skip:", "exclude:"],
    is_test_file: |stem, extension| {
        ECOSYSTEM.extensions.contains(&extension) && stem.ends_with("_test")
    },
    decisive_files: &[".credo.exs", ".formatter.exs"],
    // Mix reads the settings of each environment, also of one that had none.
    shadows_tool: |path| path.ends_with(".exs") && is_in(path, "config"),
    manifest: |name| if name == "mix.exs" { Some(mix_part as PutBackPart) } else { None },
    ..Ecosystem::NOTHING
};

/// `mix compile` and `mix test`; the formatter if it is configured.
fn mix(files: &RootFiles<'_>) -> Result<Vec<OracleCommand>> {
    if !files.has("mix.exs") {
        return Ok(Vec::new());
    }
    let mut found = vec![
        command(Stage::Build, &["mix", "compile"], "mix.exs"),
        command(Stage::Test, &["mix", "test"], "mix.exs"),
    ];
    if files.has(".formatter.exs") {
        found.push(command(Stage::Lint, &["mix", "format", "--check-formatted"], ".formatter.exs"));
    }
    let text = files.text("mix.exs")?.unwrap_or_default();
    if !files.has("mix.lock") && text.contains("deps:") {
        found.push(command(Stage::Setup, &["mix", "deps.get"], "mix.exs (no lock file)"));
    }
    if files.has("mix.lock") {
        found.push(command(Stage::Setup, &["mix", "deps.get", "--check-locked"], "mix.lock"));
    }
    Ok(found)
}

/// Everything but the dependencies that come from the registry: the file is code.
fn mix_part(base: Option<&str>, own: &str) -> Option<String> {
    all_but_sections(base, own, ("defp deps do", "\n  end"), |line| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " {}[]:,\"~<>=._-".contains(c);
        ["[", "]", "", "end"].contains(&line)
            || line.starts_with("{:") && line.chars().all(is_plain) && !line.contains("path:")
    })
}
