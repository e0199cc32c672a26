//! The named commands of a build tool's file: rules of a Makefile, recipes of a justfile, scripts
//! of a package.json.

/// Named commands, and the recipes that run with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// The name by which the tool runs the recipe.
    pub name: String,
    /// The names of the recipes that the tool runs before or after this one. Words that name no
    /// recipe may be among them.
    pub needs: Vec<String>,
    /// The commands of the recipe, as shell lines.
    pub lines: Vec<String>,
}

/// Recipes below a line `name: needs`, as in a Makefile or a justfile. `head` returns the names and
/// the rest of such a line, and `None` for other lines.
pub fn indented_recipes<'t>(
    lines: &'t [String],
    head: impl Fn(&'t str) -> Option<(&'t str, &'t str)>,
) -> Vec<Recipe> {
    let mut found: Vec<Recipe> = Vec::new();
    // The index of the first recipe of the last head. An indented line below the head belongs to
    // all recipes from this index on.
    let mut open = 0;
    for line in lines {
        if line.starts_with(['\t', ' ']) {
            let text = line.trim_start().trim_start_matches(['@', '-', '+']);
            found[open..].iter_mut().for_each(|recipe| recipe.lines.push(text.to_owned()));
        } else if let Some((names, rest)) = head(line) {
            let (needs, first) = rest.split_once(';').unwrap_or((rest, ""));
            let needs =
                needs.split_whitespace().map(|need| need.trim_matches(['(', ')']).to_owned());
            let lines = vec![first.trim().trim_start_matches(['@', '-', '+']).to_owned()];
            let recipe = Recipe { name: String::new(), needs: needs.collect(), lines };
            open = found.len();
            let names = names.split_whitespace().map(str::to_owned);
            found.extend(names.map(|name| Recipe { name, ..recipe.clone() }));
        } else if line.contains(':') && !line.starts_with('#') {
            // Other lines, such as conditions of make, do not end a recipe.
            open = found.len();
        }
    }
    found
}
