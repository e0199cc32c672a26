//! The recipes that commands run, and the files that contain the recipes.
use std::rc::Rc;

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::Ecosystem;
use crate::ecosystems::javascript::{self, is_workspace};
use crate::ecosystems::paths::{directory_of, inside};
use crate::ecosystems::run_files::search::{Search, Text, TextContext, lines_of};
use crate::ecosystems::run_files::values::variables_in;
use crate::error::Result;
use crate::model::pattern::matches;
use crate::model::shell::Word;

/// Words before the files that a file of recipes includes.
pub(super) const INCLUDING: [&str; 5] = ["include", "-include", "sinclude", "import", "import?"];

/// The variable of a Makefile that names the recipe to run if make gets no name, as a shell reads it.
const DEFAULT_GOAL: &str = "${_DEFAULT_GOAL}";

/// The recipes of at most this many packages of a workspace are searched.
const MOST_MEMBERS: usize = 1000;

impl Search<'_> {
    /// Adds the recipes that are named by these words after a runner, and the files of recipes. The
    /// files may be in the root, or in a directory that a word names (`make -C D`). A word may also
    /// name a file (`make -f F`).
    pub(super) fn run_recipes(
        &mut self,
        tool: &'static Ecosystem,
        rest: &[Word],
        context: &TextContext,
    ) -> Result<()> {
        let runner = tool.recipe_runners[0];
        let words = self.all_values(rest, context);
        for (at, word) in words.iter().enumerate() {
            self.recipes.insert((runner, word.text.clone()));
            let is_file =
                at > 0 && ["-f", "--file", "--makefile"].contains(&words[at - 1].text.as_str());
            let joined = word.text.strip_prefix("--file=").or(word.text.strip_prefix("-f"));
            // npm passes these options on to the script.
            if runner != "npm" && (is_file || joined.is_some()) {
                for path in self.existing(&word.with(joined.unwrap_or(&word.text)), context) {
                    self.found.run.insert(path.clone());
                    self.recipe_file(tool, &path)?;
                }
            }
        }
        let mut files: Vec<String> = Vec::new();
        for top in self.tops(context) {
            let mut named = tool.recipe_files.iter().map(|name| inside(&top, name));
            files.extend(named.find(|file| self.files.has(file)));
        }
        if self.changes_anywhere.contains(&context.at) || runner == "npm" && self.has_members()? {
            let names = tool.recipe_files.iter();
            let all = names.filter_map(|name| self.files.by_name.get(name)).flatten();
            files.extend(all.take(MOST_MEMBERS).map(|file| (*file).to_owned()));
        }
        for file in files {
            if file.contains('/') && runner != "npm" {
                self.found.run.insert(file.clone());
            }
            self.recipe_file(tool, &file)?;
        }
        if !self.has_goal(runner, &words) {
            self.used.extend(variables_in(DEFAULT_GOAL));
            let goal = self.with_values(&Word::expanded(DEFAULT_GOAL.to_owned()), context);
            let goal = goal.iter().flat_map(|word| word.text.split_whitespace());
            let goal: Vec<_> = goal.map(|name| (runner, name.to_owned())).collect();
            let first = self.first_recipes.iter().filter(|(of, _)| *of == runner);
            self.recipes.extend(first.cloned().chain(goal));
        }
        Ok(())
    }

    /// True if one of these words after a runner is the name of a recipe. A word after an option may be
    /// its value, as in `make -C D -j 4`, unless a recipe has this name. A variable may be empty.
    fn has_goal(&self, runner: &'static str, words: &[Word]) -> bool {
        words.iter().enumerate().any(|(at, word)| {
            let name = word.text.as_str();
            let may_be_value = at > 0 && words[at - 1].text.starts_with('-');
            !name.starts_with('-')
                && !name.contains(['=', '$'])
                && (!may_be_value || self.known_recipes.contains(&(runner, name.to_owned())))
        })
    }

    /// Runs the scripts of a package.json that these words name, whatever program gets them:
    /// `run-s lint unit`, `concurrently npm:unit 'npm run lint'`, `run-p test:*`.
    pub(super) fn run_scripts_named(
        &mut self,
        words: &[Word],
        context: &TextContext,
    ) -> Result<()> {
        if self.scripts.is_none() {
            let text = (self.files.text)(javascript::MANIFEST)?.unwrap_or_default();
            let recipes = (javascript::ECOSYSTEM.recipes)(&text).into_iter();
            self.scripts = Some(recipes.map(|script| script.name).collect());
        }
        let scripts = self.scripts.iter().flatten();
        let mut found = Vec::new();
        for piece in words.iter().flat_map(|word| word.text.split_whitespace()) {
            let name = piece.strip_prefix("npm:").unwrap_or(piece);
            let named = scripts
                .clone()
                .filter(|script| *script == name || name.contains(":*") && matches(name, script));
            found.extend(named.map(|name| Word::plain(name.clone())));
        }
        if found.is_empty() {
            return Ok(());
        }
        self.run_recipes(&javascript::ECOSYSTEM, &found, context)
    }

    /// True if the project is a workspace of JavaScript packages: a command in the root may run the
    /// scripts of each of them.
    fn has_members(&self) -> Result<bool> {
        let root = (self.files.text)("package.json")?.unwrap_or_default();
        Ok(is_workspace(|file| self.files.has(file), || root))
    }

    /// Adds the text of a file of recipes.
    pub(super) fn recipe_file(&mut self, tool: &'static Ecosystem, path: &str) -> Result<()> {
        let runner = tool.recipe_runners[0];
        if !self.read.insert(path.to_owned()) {
            return Ok(());
        }
        let Some(text) = (self.files.text)(path)? else { return Ok(()) };
        // A recipe that does not run uses its variables all the same.
        self.used.extend(variables_in(&text));
        let mut lines = Vec::new();
        let recipes = (tool.recipes)(&text);
        let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.');
        // A runner that gets no name runs the first recipe. npm runs none.
        let first = recipes.iter().find(|recipe| is_plain(&recipe.name) && runner != "npm");
        self.first_recipes.extend(first.map(|recipe| (runner, recipe.name.clone())));
        for mut recipe in recipes {
            let counts = !is_plain(&recipe.name) || recipe.name.contains(['$', '%']);
            if !recipe.needs.is_empty() {
                // The recipe's own name shows that the runner gets a name.
                let needs = recipe.needs.join(" ");
                recipe.lines.push(format!("{runner} {} {needs}", recipe.name));
            }
            let key = (runner, recipe.name);
            self.known_recipes.insert(key.clone());
            let key = if counts { None } else { Some(key) };
            lines.extend(recipe.lines.iter().flat_map(|text| lines_of(text, &key)));
        }
        // make runs in the root, or in the directory that an option names.
        let directory = directory_of(path).to_owned();
        self.texts.push(Rc::new(Text { lines, directory, ..Text::default() }));
        Ok(())
    }

    /// Adds the files that a file of recipes includes. Also adds the files from which make can
    /// build these files: a built-in rule writes `x` from `x.sh`. Missing files count.
    pub(super) fn included(
        &mut self,
        word: &str,
        files: &[Word],
        context: &TextContext,
    ) -> Result<()> {
        let runner = if word.starts_with("import") { "just" } else { "make" };
        let Some(tool) = ALL.iter().find(|one| one.recipe_runners.contains(&runner)) else {
            return Ok(());
        };
        for file in self.all_values(files, context) {
            for path in self.possible(&file, context) {
                let matching: Vec<&str> = match path.contains('*') {
                    true => {
                        self.files.paths.iter().copied().filter(|p| matches(&path, p)).collect()
                    }
                    false => vec![&path],
                };
                for path in matching {
                    self.recipe_file(tool, path)?;
                }
                self.found.run.extend([format!("{path}.sh"), path]);
            }
        }
        Ok(())
    }
}
