//! A source file that attempts add: whether it can be nothing but source, by the code beside it.
use std::collections::BTreeSet;

/// The files of a base, as far as they tell where it has code.
#[derive(Default)]
pub struct CodePlaces {
    /// The directories, without the root.
    pub directories: BTreeSet<String>,
    /// All files.
    pub files: BTreeSet<String>,
    /// The names of the tests, without their directories.
    pub test_names: BTreeSet<String>,
    /// The directories that hold sources of a language themselves.
    pub sources: BTreeSet<(String, &'static str)>,
    /// The languages of the sources.
    pub languages: BTreeSet<&'static str>,
}

/// A source file that a base does not have.
pub struct NewFile<'f> {
    /// The code of the base.
    pub places: &'f CodePlaces,
    /// Its path.
    pub path: &'f str,
    /// The innermost directory of the base that is above it; empty for the root.
    pub nearest: &'f str,
    /// Its language.
    pub language: &'static str,
}

impl NewFile<'_> {
    /// True if the base has sources of its language anywhere: for languages whose tools never take
    /// a file for its name.
    pub fn has_its_language(&self) -> bool {
        self.places.languages.contains(self.language)
    }

    /// True if its own directory has sources of its language.
    pub fn is_beside_its_language(&self) -> bool {
        self.nearest == directory_of(self.path) && self.nearest_has_language()
    }

    /// True if a test of the base has its name: where files are searched in several directories, it may
    /// take that test's place.
    pub fn has_name_of_a_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        self.places.test_names.contains(name)
    }

    /// True if the directory of the base that it is in, or whose new directory it is in, has sources of its
    /// language, and is no place in which libraries are looked up by name.
    pub fn is_inside_known_code(&self) -> bool {
        let is_looked_up =
            self.nearest.is_empty() || self.nearest.rsplit('/').next() == Some("lib");
        self.nearest_has_language() && !is_looked_up
    }

    /// True if it is part of a package of the base: of a directory with this file.
    pub fn is_in_package(&self, marker: &str) -> bool {
        !self.nearest.is_empty()
            && self.places.files.contains(&format!("{}/{marker}", self.nearest))
    }

    /// True if it stands beside a `package.json`.
    pub fn is_in_package_root(&self) -> bool {
        let directory = directory_of(self.path);
        directory.is_empty() || self.places.files.contains(&format!("{directory}/package.json"))
    }

    fn nearest_has_language(&self) -> bool {
        self.places.sources.contains(&(self.nearest.to_owned(), self.language))
    }
}

/// The directory of a path; empty for one in the root.
pub fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
