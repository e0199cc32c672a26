//! The files that a file of recipes includes.
use crate::ecosystems::ecosystem::Ecosystem;

/// The files that a file of recipes includes, and the files from which make writes them: a built-in rule of make
/// writes `x` from `x.sh`.
pub fn files_of_includes(tool: &Ecosystem, recipes: &str) -> Vec<String> {
    match tool.recipe_runners.first() {
        Some(&"just") => included_files(recipes, &["import", "import?"]),
        Some(&"make") => {
            let mut found = included_files(recipes, &["include", "-include", "sinclude"]);
            found.extend(found.clone().iter().map(|path| format!("{path}.sh")));
            found
        }
        // `"import"` in a package.json is a condition of its exports.
        _ => Vec::new(),
    }
}

/// The files in lines that begin with one of the words `including`, as paths or as patterns. Missing files are
/// among them.
fn included_files(recipes: &str, including: &[&str]) -> Vec<String> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`;&|()@".contains(c);
    let mut found = Vec::new();
    for line in recipes.lines() {
        let mut words = line.split(is_separator).filter(|word| !word.is_empty());
        if !words.next().is_some_and(|first| including.contains(&first)) {
            continue;
        }
        for word in words {
            let path = word.strip_prefix("./").unwrap_or(word);
            // Before a leading slash there was a variable that names a directory: `$(DIR)/rules.mk`.
            found.push(if path.starts_with('/') { format!("*{path}") } else { path.to_owned() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecosystems::{javascript, just, make};

    #[test]
    fn only_make_and_just_include_files_and_only_make_writes_them_from_scripts() {
        assert_eq!(files_of_includes(&make::ECOSYSTEM, "include rules\n"), ["rules", "rules.sh"]);
        assert_eq!(files_of_includes(&just::ECOSYSTEM, "import 'ci.just'\n"), ["ci.just"]);
        assert_eq!(files_of_includes(&javascript::ECOSYSTEM, "\"import\": \"./a.mjs\"\n"), [""; 0]);
    }

    #[test]
    fn recipes_include_files_also_by_wildcards_and_variables() {
        let recipes = "include rules\n-include $(wildcard ci/*.inc) $(TOP)/x.mk\nall: slug.sh\n";
        assert_eq!(
            included_files(recipes, &["include", "-include"]),
            ["rules", "$", "wildcard", "ci/*.inc", "$", "TOP", "*/x.mk"]
        );
    }
}
