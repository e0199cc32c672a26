//! just: the recipes of a justfile.
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::project::{Evidence, FoundCommands, RootFiles, recipe_commands};
use crate::ecosystems::recipe::{Recipe, indented_recipes};
use crate::model::shell::continued_lines;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    detectors: &[(Evidence::Recipe, justfile)],
    decisive_files: "justfile Justfile .justfile",
    recipe_files: &JUSTFILES,
    recipe_runners: &["just"],
    recipes: all_recipes,
    ..Ecosystem::NOTHING
};

/// The names of a justfile.
pub const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

/// Commands for the recipes and aliases that [`recipe_commands`] looks for, if they need no
/// arguments.
fn justfile(files: &RootFiles<'_>) -> FoundCommands {
    let Some(name) = files.first(&JUSTFILES) else { return Ok(Vec::new()) };
    let text = files.text(name)?.unwrap_or_default();
    let recipes: Vec<&str> = text.lines().filter_map(recipe).collect();
    Ok(recipe_commands("just", &recipes, name))
}

/// The recipes, as lines of a shell. The first one has no name: it has the variables and the
/// imports.
fn all_recipes(justfile: &str) -> Vec<Recipe> {
    let text = justfile.replace("{{", "${").replace("}}", "}");
    let lines = continued_lines(&text);
    let others = lines.iter().filter(|line| line.starts_with("import") || line.contains(":="));
    let others = others.map(|line| match line.split_once(":=") {
        Some((name, value)) => format!("{}={}", name.trim(), value.trim()),
        None => line.clone(),
    });
    let others = Recipe { lines: others.collect(), ..Recipe::default() };
    let mut found = indented_recipes(&lines, head);
    let aliases = lines.iter().filter_map(|line| line.strip_prefix("alias ")?.split_once(":="));
    found.extend(aliases.map(|(name, recipe)| Recipe {
        name: name.trim().to_owned(),
        needs: vec![recipe.trim().to_owned()],
        ..Recipe::default()
    }));
    found.insert(0, others);
    found
}

/// The name of the alias or the recipe that begins in a line; `None` if the recipe needs an
/// argument.
fn recipe(line: &str) -> Option<&str> {
    if let Some(alias) = line.strip_prefix("alias ") {
        return alias.split(":=").next().map(str::trim);
    }
    let (name, rest) = head(line)?;
    let head = &line[..line.len() - rest.len() - ":".len()];
    let mut arguments = head.trim_start_matches('@').split_whitespace().skip(1);
    // `word` needs a value and `+word` one or more; `word=default` and `*word` need none.
    let needs_none = arguments.all(|word| word.contains('=') || word.starts_with('*'));
    needs_none.then_some(name)
}

/// The name before a line's colon, and the text after the colon; `None` if no recipe begins in the
/// line.
fn head(line: &str) -> Option<(&str, &str)> {
    let (head, rest) = line.split_once(':')?;
    let name = head.trim_start_matches('@').split_whitespace().next()?;
    let is_other = line.starts_with(['#', '[', ' ', '\t']) || rest.starts_with('=');
    if is_other { None } else { Some((name, rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recipes_without_required_arguments_are_called() {
        let text = "set shell := ['sh', '-c']\nversion := 'a:b'\n[private]\n@build: lint\n\
                    \x20 echo a:b\nlint flags='': \ntest name:\ncheck *args:\n# all: no\n\
                    alias t := check\nmany +names:\n";
        let found: Vec<&str> = text.lines().filter_map(recipe).collect();
        assert_eq!(found, ["build", "lint", "check", "t"]);
    }
}
