//! Classes and modules by whose names code loads files.
use crate::ecosystems::loading::LoadedName;
use crate::ecosystems::loading::code_lines::is_comment;
use crate::ecosystems::paths::{directories_above, file_name, is_in_name};

/// Words before the name of a class or a module.
const DECLARES: [&str; 8] =
    ["class", "defmodule", "defprotocol", "enum", "interface", "module", "namespace", "trait"];

impl LoadedName<'_> {
    /// True if a line of another file of the base has the name of the file's constant.
    /// [`Self::is_meant_in`] tells whether it means this one.
    pub fn may_be_meant_in(&self, other: &str, line: &str) -> bool {
        self.language.loads_files_by_constants()
            && self.is_constant_in(line)
            && !is_comment(line)
            && self.has_code_in(other)
    }

    /// True if code that names the file's constant means this file. `own` is the text of this file,
    /// which must declare the constant. `other` is the text of the code: it may not declare a constant
    /// of this name itself, and must name the module in which this one is.
    pub fn is_meant_in(&self, own: &str, other: &str, line: &str) -> bool {
        let Some(outer) = self.declaration_in(own) else { return false };
        // `Other::Calc` is the constant of another module.
        let mut places = self.places_of_constant(line);
        let is_this = places.any(|at| {
            let before = line[..at].trim_end_matches(['\\', ':', '.', '{', ' ']);
            let module = before.rsplit(|c| !is_in_name(c)).next().unwrap_or_default();
            !line[..at].ends_with(['\\', ':', '.'])
                || !module.starts_with(char::is_uppercase)
                || Some(module) == outer.as_deref()
        });
        is_this
            && outer.is_none_or(|outer| other.split(|c| !is_in_name(c)).any(|word| word == outer))
            && self.declaration_in(other).is_none()
    }

    /// If `text` declares the constant of the file as a class or a module: the name of the module or
    /// namespace around it, if there is one.
    pub fn declaration_in(&self, text: &str) -> Option<Option<String>> {
        let mut around: Vec<(usize, &str)> = Vec::new();
        for line in text.lines().filter(|line| !is_comment(line)) {
            let code = line.trim_start();
            let indent =
                if code.starts_with("namespace") { 0 } else { 1 + line.len() - code.len() };
            let mut words = code.split(|c: char| c.is_whitespace() || "({;<,".contains(c));
            let is_value =
                code.split_once(" = ").is_some_and(|(name, _)| name.chars().all(is_in_name));
            let Some(name) = (match is_value {
                true => words.next(),
                false => words.find(|word| DECLARES.contains(word)).and_then(|_| words.next()),
            }) else {
                continue;
            };
            let parts: Vec<&str> =
                name.split(|c| !is_in_name(c)).filter(|p| !p.is_empty()).collect();
            let Some((last, outer)) = parts.split_last() else { continue };
            around.retain(|(other, _)| *other < indent);
            if self.is_constant_of(last) {
                let outer = outer.last().copied().or(around.last().map(|(_, name)| *name));
                return Some(outer.map(str::to_owned));
            }
            around.push((indent, last));
        }
        None
    }

    /// True if the build of the file's language compiles it, and some code in it is in a module: Mix
    /// compiles all files in `lib`.
    pub fn is_compiled(&self, text: &str) -> bool {
        self.language.compiles_libraries()
            && directories_above(self.path).any(|directory| file_name(directory) == "lib")
            && ["defmodule ", "defimpl ", "defprotocol "].iter().any(|word| text.contains(word))
    }

    /// True if a word of a line is the constant: `CSRFProtection` for `csrf_protection.ex`.
    pub fn is_constant_in(&self, line: &str) -> bool {
        self.places_of_constant(line).next().is_some()
    }

    /// True if a word is the constant, or if a text in quotes is (`plugin 'Calc'`).
    pub(super) fn is_constant_of(&self, word: &str) -> bool {
        let Some(constant) = &self.constant else { return false };
        word.starts_with(char::is_uppercase)
            && word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).eq(constant.chars())
    }

    /// The positions of the constant in a line.
    fn places_of_constant<'l>(&self, line: &'l str) -> impl Iterator<Item = usize> + use<'_, 'l> {
        let words = self.constant.iter().flat_map(|_| line.split(|c| !is_in_name(c)));
        let words = words.filter(|word| self.is_constant_of(word));
        words.map(|word| word.as_ptr().addr() - line.as_ptr().addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecosystems::paths::stem_and_extension;

    #[test]
    fn code_means_the_class_of_a_file_by_its_name_and_namespace() {
        let php = "<?php\nnamespace App\\Rules;\n\nfinal class Calc\n{\n";
        let ruby = "module App\n  class JSONCalc < Base\n";
        let cases = [
            ("src/Rules/Calc.php", php, "use App\\Rules\\Calc;\nnew Calc();", true),
            ("src/Rules/Calc.php", php, "namespace App\\Rules;\nnew Calc();", true),
            ("src/Rules/Calc.php", php, "namespace App;\nnew Calc();", false),
            ("src/Calc.php", "<?php\nclass Calc {}\n", "new Calc();", true),
            ("src/Calc.php", "<?php\nclass Calc {}\n", "class Calc {}\nnew Calc();", false),
            ("src/Calc.php", "<?php\n", "new Calc();", false),
            ("lib/app/json_calc.rb", ruby, "App::JSONCalc.new", true),
            ("lib/app/json_calc.rb", ruby, "module App\n  JSONCalc.new", true),
            ("lib/app/json_calc.rb", ruby, "JSONCalc.new", false),
            ("lib/calc.rb", "Calc = Struct.new(:a)\n", "Calc.new(1)", true),
            ("lib/calc.rb", "class Calc\n", "Other::Calc.new(1)", false),
            ("lib/calc.rb", "class Calc\n", "::Calc.new(1)", true),
            ("lib/calc.ex", "defmodule Calc do\n", "assert Calc.add(1, 2) == 3", true),
            ("lib/app/calc.ex", "defmodule App.Calc do\n", "alias App.{Calc, Sum}", true),
            ("lib/app/calc.ex", "defmodule App.Calc do\n", "alias Other.Calc", false),
        ];
        for (path, own, other, expected) in cases {
            let file = LoadedName::of(path).expect("only code loads it");
            let extension = stem_and_extension(path).1;
            let mut lines = other.lines();
            let is_meant = lines.any(|line| file.may_be_meant_in(&format!("a.{extension}"), line))
                && other.lines().any(|line| file.is_meant_in(own, other, line));
            assert_eq!(is_meant, expected, "{path} with {own} in {other}");
        }
    }
}
