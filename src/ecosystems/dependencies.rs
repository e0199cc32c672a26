//! The dependencies in a manifest or a lock file. A change that adds a dependency adds code that
//! the change's patch does not show.
//!
//! Two properties are enough to read all formats. TOML, JSON and YAML list dependencies under a key
//! with a known name. In other lock files, a line begins with the name of a package.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::ecosystems::ALL;
use crate::ecosystems::ecosystem::{Ecosystem, PackagesFound};
use crate::ecosystems::manifest::json;
use crate::ecosystems::paths::{directory_of, file_name, inside};

/// The dependencies that a change adds to a file; empty if the file is neither a manifest nor a
/// lock file.
pub fn gained(path: &str, before: Option<&str>, after: &str) -> BTreeSet<String> {
    let Some(file) = PackageFile::of(path) else { return BTreeSet::new() };
    let known = before.map(|text| file.packages(text)).unwrap_or_default();
    file.packages(after).difference(&known).cloned().collect()
}

/// True if a changed manifest or lock file may put a package in place of another one. That can
/// happen in three ways:
/// * The file takes a package from a directory of the tree, and did not do so before the change.
/// * The change affects more than the versions of packages.
/// * The file drops a package, and tools then find a directory of the tree in its place.
///
/// `is_directory` is true for the directories of the tree.
pub fn redirects(
    path: &str,
    before: Option<&str>,
    after: &str,
    is_directory: &dyn Fn(&str) -> bool,
) -> bool {
    let Some(file) = PackageFile::of(path) else { return false };
    let found_instead = before.map(|before| (file.ecosystem.found_instead)(before, after));
    file.leads_into_tree(before, after, is_directory)
        || file.moves_package(before, after)
        || found_instead
            .into_iter()
            .flatten()
            .any(|at| is_directory(&inside(directory_of(path), &at)))
}

/// A manifest or a lock file.
struct PackageFile<'p> {
    name: &'p str,
    ecosystem: &'static Ecosystem,
    is_lock: bool,
}

impl<'p> PackageFile<'p> {
    /// `None` if a file at this path is neither a manifest nor a lock file.
    fn of(path: &'p str) -> Option<PackageFile<'p>> {
        let name = file_name(path);
        let ecosystem = ecosystem_of(name)?;
        Some(PackageFile { name, ecosystem, is_lock: ecosystem.lock_files.contains(&name) })
    }

    /// The names of the packages in a text of this file.
    fn packages(&self, text: &str) -> BTreeSet<String> {
        match self.content(text) {
            Content::Document(document) => {
                of_document(&document).into_iter().map(|(name, _)| name).collect()
            }
            Content::Lines if self.is_lock => text.lines().filter_map(first_name).collect(),
            Content::Lines | Content::Unreadable => BTreeSet::new(),
        }
    }

    /// Reads a text of this file.
    fn content(&self, text: &str) -> Content {
        let document = match self.name {
            "Gemfile.lock" | "go.sum" | "gradle.lockfile" | "mix.lock" => return Content::Lines,
            "yarn.lock" if is_of_yarn_1(text) => return Content::Lines,
            "bun.lockb" => None,
            "bun.lock" => json(text).map(with_entries_of_bun),
            "pnpm-lock.yaml" | "pubspec.lock" | "yarn.lock" => serde_saphyr::from_str(text).ok(),
            name if name.ends_with(".json") || name.ends_with(".jsonc") => json(text),
            _ => toml::from_str(text).ok().or_else(|| serde_json::from_str(text).ok()),
        };
        match document {
            Some(document) => Content::Document(document),
            None if self.is_lock => Content::Unreadable,
            None => Content::Lines,
        }
    }

    /// True if the file takes a package from a directory of the tree, and did not do so before the
    /// change. Such a package is code of the attempt, and may replace a package that the tests use.
    /// Always false in an ecosystem in which a package finds only the packages that its own
    /// manifest names.
    fn leads_into_tree(
        &self,
        before: Option<&str>,
        after: &str,
        is_directory: &dyn Fn(&str) -> bool,
    ) -> bool {
        let places = |text: &str| {
            let mut found = Places { is_directory, all: BTreeSet::new() };
            match self.content(text) {
                Content::Document(document) => found.add_document(&document, "", self.is_lock),
                Content::Lines if self.is_lock => found.add_lines(text),
                Content::Lines | Content::Unreadable => {}
            }
            found.all
        };
        self.ecosystem.finds != PackagesFound::Named
            && !places(after).is_subset(&before.map(places).unwrap_or_default())
    }

    /// True if a change affects more than the version of a package: for example its origin, or the
    /// programs in its entry of a lock file. Also true in these cases:
    /// * A new package does not come from the registry, and may replace an installed package.
    /// * The lock file cannot be read as a whole.
    /// * Tools run the lock file as code, and it contains more than data.
    fn moves_package(&self, before: Option<&str>, after: &str) -> bool {
        let origins = |text: &str| {
            let mut found = Origins::default();
            match self.content(text) {
                // A version at the top of the document does not belong to a package.
                Content::Document(Value::Object(members)) if self.is_lock => {
                    let format = members.get("lockfileVersion").and_then(Value::as_f64);
                    found.has_old_peers = format.is_some_and(|n| (5.0..6.0).contains(&n));
                    for (key, value) in &members {
                        found.add_document(value, key, &("", ""));
                    }
                }
                Content::Document(document) => {
                    for (package, origin) in of_document(&document) {
                        found.insert(&package, "", origin);
                    }
                }
                Content::Lines => match self.name {
                    "Gemfile.lock" => found.add_gems(text),
                    "mix.lock" => found.add_entries_of_mix(text),
                    "yarn.lock" => found.add_entries_of_yarn(text),
                    _ => found.add_requirements(text),
                },
                Content::Unreadable => found.is_incomplete = true,
            }
            found
        };
        let old = before.map(origins).unwrap_or_default();
        let own = origins(after);
        let counts_if_new = !self.is_lock && self.ecosystem.finds != PackagesFound::Named;
        self.is_lock && !(self.ecosystem.is_plain_lock)(after)
            || old.is_incomplete
            || own.is_incomplete
            || own.facts.iter().any(|(package, own)| match old.facts.get(package) {
                Some(old) if package.1.is_empty() => !own.is_subset(old),
                Some(old) => own != old,
                // A new fact that belongs to no package may be about a package of the base.
                None if package.0.is_empty() => before.is_some(),
                None => counts_if_new && own.iter().any(|origin| !origin.is_empty()),
            })
    }
}

/// A text of a manifest or a lock file.
enum Content {
    /// A document of TOML, JSON or YAML.
    Document(Value),
    /// Lines, each of which may name a package.
    Lines,
    /// A lock file that is damaged or binary, or that our parser does not read.
    Unreadable,
}

/// True for a lock file of Yarn 1, which is not YAML. Later versions of Yarn recognise such a file
/// by the same comment.
fn is_of_yarn_1(text: &str) -> bool {
    let mut comments = text.lines().take_while(|line| line.starts_with('#'));
    comments.any(|line| line.trim_end() == "# yarn lockfile v1")
}

/// A lock file of Bun with objects in place of its lists
/// `["name@1.0.0", "registry", {…}, "sha512-…"]`.
fn with_entries_of_bun(mut document: Value) -> Value {
    let Some(Value::Object(packages)) = document.get_mut("packages").map(Value::take) else {
        return document;
    };
    document["packages"] = Map::new().into();
    for (key, value) in packages {
        let items = value.as_array().cloned().unwrap_or_default();
        let mut entry: Map<String, Value> =
            items.iter().filter_map(Value::as_object).flat_map(Map::clone).collect();
        let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        let resolution = texts.first().copied().unwrap_or_default();
        let version = name_and_version(resolution).map_or("", |(_, version)| version);
        entry.insert("version".to_owned(), version.into());
        entry.insert("resolution".to_owned(), resolution.into());
        entry.insert("resolved".to_owned(), texts[texts.len().min(1)..].into());
        // A key such as `a/@s/b` is a place. Other lock files write it as
        // `node_modules/a/node_modules/@s/b`.
        let steps: Vec<&str> = key.split('/').collect();
        let name = match steps[..] {
            [.., scope, name] if scope.starts_with('@') => format!("{scope}/{name}"),
            [.., name] => name.to_owned(),
            [] => String::new(),
        };
        document["packages"][format!("{key}/node_modules/{name}")] = entry.into();
    }
    document
}

/// The parts of a key such as `name@1.0.0(other@2.0.0)`, `@scope/name@1.0.0` or `/name/1.0.0`.
fn name_and_version(key: &str) -> Option<(&str, &str)> {
    let (is_path, key) = key.strip_prefix('/').map_or((false, key), |key| (true, key));
    let scope = if key.starts_with('@') { key.find('/')? + 1 } else { 0 };
    let end = scope + key[scope..].find(['@', '/']).filter(|end| *end > 0)?;
    let version = key[end + 1..].split('(').next().unwrap_or_default();
    (is_path || key[end..].starts_with('@')).then_some((&key[..end], version))
}

/// The packages in a document's lists of dependencies, each with its [`origin`].
fn of_document(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![document];
    while let Some(value) = left.pop() {
        let Value::Object(members) = value else { continue };
        for (key, value) in members {
            if lists_dependencies(key) {
                add(value, &mut found);
            } else if key != "exports" {
                // In `exports`, a member `require` is not a list of dependencies: it names the
                // module that `require()` loads.
                left.push(value);
            }
        }
    }
    found
}

/// True for keys under which documents list dependencies.
fn lists_dependencies(key: &str) -> bool {
    key.to_ascii_lowercase().contains("dependenc")
        || "imports package packages packages-dev require require-dev requires"
            .split(' ')
            .any(|known| known == key)
}

/// The maximum length of a name or version. No package has a longer one. A text with a longer one
/// counts as incomplete, because the name or version would be copied for each fact about it.
const LONGEST_NAME: usize = 1000;

/// Facts about packages, other than their versions.
#[derive(Default)]
struct Origins {
    /// The key is a package's name and version. The version is empty if the fact holds for every
    /// version.
    facts: BTreeMap<(String, String), BTreeSet<String>>,
    /// True if the text could not be read as a whole, or if a name or version is longer than
    /// [`LONGEST_NAME`].
    is_incomplete: bool,
    /// True if versions are written as in old lock files of pnpm: `1.0.0_other@2.0.0`.
    has_old_peers: bool,
}

impl Origins {
    fn insert(&mut self, package: &str, version: &str, fact: String) {
        let key = (package.to_owned(), version.to_owned());
        self.facts.entry(key).or_default().insert(fact);
    }

    /// The package or place that a name leads to in a lock file; empty if it is the registry's
    /// package of this name.
    fn leads_to(&self, target: &str) -> String {
        let target = target.strip_prefix("npm:").unwrap_or(target);
        let peers = if self.has_old_peers && !target.contains('/') { '_' } else { '(' };
        let target = target.split(peers).next().unwrap_or_default();
        match target.char_indices().skip(1).find(|(_, c)| *c == '@') {
            _ if target.contains([':', '/']) => place_of(target),
            Some((at, _)) if !target.starts_with(['^', '~', '<', '>', '=', '*', '|']) => {
                target[..at].to_owned()
            }
            _ => String::new(),
        }
    }

    /// Adds the facts in a part of a lock file. `value` is the value of `key`. `package` is the
    /// name and version of the package whose entry contains `key`.
    fn add_document(&mut self, value: &Value, key: &str, package: &(&str, &str)) {
        match value {
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                let in_key = name_and_version(key);
                let own = key.rsplit("node_modules/").next().filter(|key| !key.is_empty());
                let own = in_key.map(|(name, _)| name).or(own).or(text("name"));
                let version = text("version").or(in_key.map(|(_, version)| version));
                let own = own.zip(version);
                let package = own.as_ref().unwrap_or(package);
                if package.0.len().max(package.1.len()) > LONGEST_NAME {
                    self.is_incomplete = true;
                    return;
                }
                let lists_targets = own.is_none() && lists_dependencies(key);
                for (key, value) in members {
                    if let (true, Value::String(target)) = (lists_targets, value) {
                        let target = self.leads_to(target);
                        self.insert(key, "", if target == *key { String::new() } else { target });
                    }
                    if own.is_none()
                        || changes_with_version(key)
                        || key == "resolution" && value.is_object()
                    {
                        self.add_document(value, key, package);
                    } else if key == "description" && value.is_object() {
                        // Dart writes here where the package comes from.
                        let name = value["name"].as_str().unwrap_or_default();
                        self.insert(package.0, "", format!("{name} {}", origin(value)));
                    } else if !ABOUT.split_whitespace().any(|known| known == key)
                        && value.as_str() != Some(package.0)
                    {
                        self.add_programs(key, value, package.0);
                        let fact = format!("{key}: {value}").replace(package.1, "*");
                        self.insert(package.0, "", fact);
                    }
                }
                if let Some((name, version)) = own {
                    self.facts.entry((name.to_owned(), version.to_owned())).or_default();
                    self.insert(name, "", self.leads_to(version));
                    // Each package has this fact, so that an alias in its place is seen.
                    self.insert(name, "", String::new());
                }
            }
            Value::Array(items) => {
                let key = if key == "resolved" { key } else { "" };
                items.iter().for_each(|item| self.add_document(item, key, package));
            }
            Value::String(text) => self.add_address(key, package, text),
            _ => {}
        }
    }

    /// Adds the programs that a package installs, so that it is noticed if another package now
    /// installs one of them.
    fn add_programs(&mut self, key: &str, value: &Value, package: &str) {
        if key == "bin" {
            let names = value.as_object().into_iter().flat_map(|programs| programs.keys());
            let paths = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            for program in names.map(String::as_str).chain(paths) {
                self.insert(&format!("bin {}", file_name(program)), "", package.to_owned());
            }
        }
    }

    /// Adds the facts in a lock file of Yarn 1: a line names a package, and the lines below it
    /// describe that package.
    fn add_entries_of_yarn(&mut self, text: &str) {
        let mut package = String::new();
        let mut version = "";
        let mut field = "";
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let text = line.trim();
            let key = text.split([':', ' ']).next().unwrap_or_default();
            if !line.starts_with(' ') && text.ends_with(':') {
                package = first_name(text).unwrap_or_default();
                (version, field) = ("", "");
                self.insert(&package, "", String::new());
            } else if !line.starts_with("   ") {
                field = key;
            }
            if field == "version" && key == field {
                version = text[key.len()..].trim_matches([' ', ':', '"']);
                self.insert(&package, "", self.leads_to(version));
            }
            if package.len().max(version.len()) > LONGEST_NAME {
                self.is_incomplete = true;
                return;
            }
            self.add_addresses(field, &(&package, version), text);
            if !package.is_empty() && !field.is_empty() && !changes_with_version(field) {
                let mut words: Vec<&str> = text.split(is_between_words).collect();
                words.retain(|word| {
                    !(word.contains("://") || word.starts_with("sha") && word.contains('-'))
                });
                self.insert(&package, "", words.join(" ").replace(version, "*"));
            }
        }
    }

    /// Adds the facts in a lock file of Mix, which has lines
    /// `"name": {:hex, :name, "1.0.0", …, [], "hexpm", …},`.
    fn add_entries_of_mix(&mut self, text: &str) {
        // Old versions of Mix begin the first entry in the line of the map.
        let lines = text.lines().map(|line| line.trim().trim_start_matches("%{").trim());
        for line in lines.filter(|line| !["}", ""].contains(line)) {
            match line.split('"').collect::<Vec<_>>()[..] {
                ["", name, kind, _, ..]
                    if kind.starts_with(": {") && line.matches("\":").count() == 1 =>
                {
                    let repository =
                        line.rsplit("], ").next().and_then(|end| end.split('"').nth(1));
                    self.insert(name, "", format!("{kind}{}", repository.unwrap_or_default()));
                    self.add_addresses("", &(name, ""), line);
                }
                _ => self.is_incomplete = true,
            }
        }
    }

    /// Adds the facts in a lock file of Bundler. Gems stand below a heading such as `GEM` and its
    /// `remote:`.
    fn add_gems(&mut self, text: &str) {
        let mut place = String::new();
        for line in text.lines() {
            let name = line.trim_start();
            match line.len() - name.len() {
                0 => place = line.to_owned(),
                2 if name.starts_with("remote:") => place.push_str(name),
                4 => self.insert(&first_name(name).unwrap_or_default(), "", place.clone()),
                _ => {}
            }
            self.add_addresses("", &("", ""), line);
        }
    }

    /// Adds the facts in lines such as `name @ https://…`.
    fn add_requirements(&mut self, text: &str) {
        for line in text.lines() {
            if let Some((name, address)) = line.split_once('@')
                && address.contains("://")
                && !name.contains("://")
            {
                self.insert(name.trim(), "", place_of(address.trim()));
            }
        }
    }

    fn add_addresses(&mut self, key: &str, package: &(&str, &str), line: &str) {
        line.split(is_between_words).for_each(|word| self.add_address(key, package, word));
    }

    fn add_address(&mut self, key: &str, (name, version): &(&str, &str), text: &str) {
        let is_address = text.contains("://") || text.starts_with("file:");
        if is_address || key == "resolved" && text.contains([':', '/']) {
            self.insert(name, version, text.to_owned());
            if !version.is_empty() {
                self.insert(name, "", without_version(text, version));
            }
        }
    }
}

/// Keys whose values describe a package, or are addresses from which nothing is installed.
const ABOUT: &str = "
    abandoned authors category deprecated description funding homepage keywords license
    notification-url support time version";

/// Further keys for which [`changes_with_version`] is true.
const CHANGING: &str = "
    checksum conditions conflict contenthash cpu deprecated dist engines extras files groups hasbin
    hash hashes integrity libc markers os python-versions requested resolved sdist source specifier
    suggest version wheels";

/// True for keys of a lock file whose values may change with the package's version: e.g. its
/// checksum, its address, its platforms and its dependencies.
fn changes_with_version(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    lists_dependencies(&key)
        || ["peer", "optional", "dev", "resolution-"].iter().any(|start| key.starts_with(start))
        || CHANGING.split_whitespace().any(|known| known == key)
}

/// The place that a requirement takes its package from; empty for the default registry.
fn origin(requirement: &Value) -> String {
    const KEYS: &str = "file git hg index package path registry registry-index source svn url";
    match requirement {
        Value::String(text) => place_of(text),
        _ => KEYS
            .split(' ')
            .filter_map(|key| Some(format!("{key} {}\n", requirement.get(key)?.as_str()?)))
            .collect(),
    }
}

/// The origin in the text of a requirement, without a version; empty if the text names no origin.
fn place_of(requirement: &str) -> String {
    if !requirement.contains([':', '/']) {
        return String::new();
    }
    let mut place = requirement;
    while let Some(at) = place.rfind(['@', '#'])
        && !place[at..].contains([':', '/'])
    {
        place = &place[..at];
    }
    without_version(place, "")
}

/// An address without the parts that differ between versions: the archive's name, hashes, and the
/// version.
fn without_version(address: &str, version: &str) -> String {
    let address = address.split('#').next().unwrap_or(address);
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut steps: Vec<&str> = path.split('/').collect();
    for step in &mut steps {
        let is_hash = !step.is_empty() && step.chars().all(|c| c.is_ascii_hexdigit());
        if is_hash || step.trim_start_matches('v') == version.trim_start_matches('v') {
            *step = "*";
        }
    }
    steps.pop_if(|last| last.contains('.') && !last.ends_with(".git"));
    format!("{scheme}://{host}/{}", steps.join("/"))
}

/// The ecosystem of a manifest or a lock file with this name.
pub fn ecosystem_of(name: &str) -> Option<&'static Ecosystem> {
    ALL.iter().copied().find(|e| e.manifest(name).is_some() || e.lock_files.contains(&name))
}

/// True if a line that names a manifest makes a tool install the manifest's packages. The line is a
/// command, or is in a file of the base.
pub fn are_installed_in(line: &str) -> bool {
    let words: Vec<&str> = line.split(is_between_words).collect();
    words.iter().any(|word| {
        ["ci", "install", "restore", "sync"].contains(word)
            || ["-r", "-c"].iter().any(|option| word.starts_with(option) && word.ends_with(".txt"))
    }) || words.windows(2).any(|pair| pair[0] == "-r" && pair[1].ends_with(".txt"))
}

/// True for the characters between the words of a lock file.
fn is_between_words(c: char) -> bool {
    c.is_whitespace() || "\"'`,;=()[]{}<>#?&|^*!".contains(c)
}

/// The mentions of directories of the tree in a manifest or a lock file.
struct Places<'d> {
    is_directory: &'d dyn Fn(&str) -> bool,
    /// The mentions, each with the keys or the lines above it.
    all: BTreeSet<String>,
}

impl Places<'_> {
    /// Adds the mentions in a document; if `counts` is false, only the mentions in its lists of
    /// dependencies.
    fn add_document(&mut self, value: &Value, above: &str, counts: bool) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    // The values of these keys are paths in the package itself.
                    if !matches!(key.as_str(), "autoload" | "autoload-dev" | "bin" | "extra") {
                        let counts = counts || lists_dependencies(key);
                        self.add_document(value, &format!("{above}\n{key}"), counts);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
                    self.add_document(item, &format!("{above}\n{name}"), counts);
                }
            }
            Value::String(text) if counts => self.add(text, above),
            // With `"link": true`, npm takes the package from the tree, whatever address is beside
            // it.
            Value::Bool(true) if counts && above.ends_with("\nlink") => {
                self.all.insert(above.to_owned());
            }
            _ => {}
        }
    }

    /// Adds the mentions in a text whose indented lines belong to the line above them.
    fn add_lines(&mut self, text: &str) {
        let mut above: Vec<(usize, &str)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let depth = line.len() - line.trim_start().len();
            while above.pop_if(|(other, _)| *other >= depth).is_some() {}
            let lines: Vec<&str> = above.iter().map(|(_, line)| *line).collect();
            self.add(line, &lines.join("\n"));
            above.push((depth, line));
        }
    }

    fn add(&mut self, text: &str, above: &str) {
        let mut words = text.split(is_between_words);
        if words.any(|word| self.is_place(word)) {
            self.all.insert(format!("{above}\n{text}"));
        }
    }

    /// True if a word names a directory of the tree. Also true for an absolute path and for an
    /// escape, which may name one, but are not resolved here.
    fn is_place(&self, word: &str) -> bool {
        let is_local = word.contains("file:");
        if word.contains("://") && !is_local {
            return false;
        }
        word.contains('\\')
            || is_local && word.contains('%')
            || word.split([':', '@']).any(|part| part.starts_with('/') || self.is_inside(part))
    }

    fn is_inside(&self, part: &str) -> bool {
        let steps = part.split('/').filter(|step| !matches!(*step, "" | "." | ".."));
        let inside = steps.collect::<Vec<_>>().join("/");
        if inside.is_empty() { part.contains('.') } else { (self.is_directory)(&inside) }
    }
}

/// Adds the packages in a list of dependencies, or in an object with several such lists.
fn add(list: &Value, found: &mut Vec<(String, String)>) {
    let own_name = |item: &Value| first_name(item.get("name")?.as_str()?);
    match list {
        // An object with a `name` describes one package, such as `[package]` in a manifest, and is
        // not a list.
        Value::Object(members) if members.get("name").is_some_and(Value::is_string) => {
            found.extend(of_document(list));
        }
        Value::Object(members) => {
            for (name, value) in members {
                let name = first_name(name.rsplit("node_modules/").next().unwrap_or(name));
                let each = match value {
                    // `name` is a group, e.g. an extra of Python, and the array lists packages.
                    Value::Array(items)
                        if items.iter().any(|i| i.is_string() || own_name(i).is_some()) =>
                    {
                        add(value, found);
                        continue;
                    }
                    // `name` is a package, and the array has its requirement for each platform.
                    Value::Array(items) => items.iter().collect(),
                    value => vec![value],
                };
                found.extend(
                    each.into_iter().filter_map(|value| Some((name.clone()?, origin(value)))),
                );
            }
        }
        Value::Array(items) => found.extend(items.iter().filter_map(|item| {
            let name = item.as_str().map_or_else(|| own_name(item), first_name);
            Some((name?, origin(item)))
        })),
        _ => {}
    }
}

/// The name with which a line or a requirement begins, without a version.
fn first_name(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['"', '\'', '/']);
    // The first character is skipped, because a scope begins with `@`.
    let mut rest = text.char_indices().skip(1);
    let end = rest.find(|(_, c)| c.is_whitespace() || "@:;=<>!~^([{,\"'".contains(*c));
    let name = &text[..end.map_or(text.len(), |(at, _)| at)];
    name.chars().any(char::is_alphanumeric).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> PackageFile<'_> {
        PackageFile::of(path).expect("a manifest or a lock file")
    }

    #[test]
    fn package_with_a_very_long_name_or_version_is_not_compared() {
        let long = "1".repeat(100_000);
        let lines = "  a: b\n".repeat(20_000);
        for (path, text) in [
            ("yarn.lock", format!("# yarn lockfile v1\na@1:\n  version \"{long}\"\n{lines}")),
            (
                "yarn.lock",
                format!("# yarn lockfile v1\n\"@{long}/a@1\":\n  version \"1\"\n{lines}"),
            ),
            (
                "package-lock.json",
                format!("{{\"packages\": {{\"{long}\": {{\"version\": \"1\"}}}}}}"),
            ),
        ] {
            assert!(file(path).moves_package(Some(&text), &text), "{path}");
        }
    }

    #[test]
    fn dependency_that_is_new_is_named_and_another_version_is_not() {
        let cases = [
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n",
                "[package]\nname = \"a\"\nlicense = \"MIT\"\n[dependencies]\nb = \"2\"\nc = { version = \"1\" }\n[target.'cfg(unix)'.dev-dependencies]\nd = \"1\"\n",
                "c d",
            ),
            (
                "x/Cargo.lock",
                "[[package]]\nname = \"b\"\nversion = \"1\"\n",
                "[[package]]\nname = \"b\"\nversion = \"2\"\n[[package]]\nname = \"c\"\n",
                "c",
            ),
            (
                "package.json",
                r#"{"dependencies": {"b": "1"}, "scripts": {"test": "x"}}"#,
                r#"{"dependencies": {"b": "2"}, "devDependencies": {"@s/c": "1"}, "scripts": {"e": "x"}}"#,
                "@s/c",
            ),
            (
                "package-lock.json",
                r#"{"packages": {"": {"name": "a"}, "node_modules/b": {"version": "1"}}}"#,
                r#"{"packages": {"": {"name": "a"}, "node_modules/b": {"version": "2"}, "node_modules/b/node_modules/@s/c": {}}}"#,
                "@s/c",
            ),
            (
                "pyproject.toml",
                "[project]\ndependencies = [\"b>=1\"]\n",
                "[project]\ndependencies = [\"b>=2\", \"c[x]==1\"]\n[project.optional-dependencies]\ntest = [\"d\"]\n",
                "c d",
            ),
            ("go.sum", "a.b/c v1.0 h1:x=\n", "a.b/c v1.1 h1:y=\na.b/d v1.0 h1:z=\n", "a.b/d"),
            (
                "yarn.lock",
                "# yarn lockfile v1\nb@^1:\n  version \"1\"\n",
                "# yarn lockfile v1\nb@^2:\n  version \"2\"\n\n\"@s/c@^1\":\n",
                "@s/c",
            ),
            ("src/a.json", "{}", r#"{"dependencies": {"b": "1"}}"#, ""),
        ];
        for (path, before, after, expected) in cases {
            let found = gained(path, Some(before), after);
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected, "{path}");
            assert!(gained(path, Some(after), after).is_empty(), "{path}");
        }
    }

    #[test]
    fn mention_of_a_directory_is_seen_and_another_version_is_none() {
        let npm = |from: &str| {
            format!(
                "{{\"packages\": {{\"node_modules/b\": {from}, \"lib\": {{\"bin\": \"lib\"}}}}}}"
            )
        };
        let pnpm = |from: &str| format!("importers:\n  .:\n    b:\n      version: {from}\n");
        let poetry = |from: &str| format!("[[package]]\nname = \"b\"\n{from}\n");
        let pairs = |before: String, after: [String; 2]| (before, after);
        let cases = [
            (
                "package-lock.json",
                pairs(
                    npm("{\"version\": \"1\", \"resolved\": \"https://x.org/lib/b.tgz\"}"),
                    [
                        npm("{\"version\": \"2\", \"resolved\": \"https://x.org/lib/b-2.tgz\"}"),
                        npm("{\"resolved\": \"l\\u0069b\", \"link\": true}"),
                    ],
                ),
            ),
            (
                "package-lock.json",
                pairs(
                    npm("{}"),
                    [npm("{\"license\": \"MIT\"}"), npm("{\"resolved\": \"file:/x\"}")],
                ),
            ),
            (
                "package-lock.json",
                pairs(
                    npm("{}"),
                    [npm("{\"link\": false}"), npm("{\"resolved\": \"\", \"link\": true}")],
                ),
            ),
            ("pnpm-lock.yaml", pairs(pnpm("1.0.0"), [pnpm("2.0.0"), pnpm("link:lib/b")])),
            (
                "pnpm-lock.yaml",
                pairs(String::new(), ["  /b/1.0.0:\n".to_owned(), "  b: \"l\\x69b\"\n".to_owned()]),
            ),
            (
                "yarn.lock",
                pairs(
                    "# yarn lockfile v1\nb@^1:\n  resolved \"https://x.org/b\"\n".to_owned(),
                    [
                        "# yarn lockfile v1\nb@^2:\n  resolved \"https://x.org/lib\"\n".to_owned(),
                        "# yarn lockfile v1\nb@^1:\n  resolved \"file:.\"\n".to_owned(),
                    ],
                ),
            ),
            (
                "poetry.lock",
                pairs(
                    poetry(""),
                    [poetry("version = \"2\""), poetry("[package.source]\nurl = \"lib\"")],
                ),
            ),
            (
                "pyproject.toml",
                pairs(
                    "[tool.poetry.dependencies]\nb = \"1\"\n".to_owned(),
                    [
                        "[tool.poetry.dependencies]\nb = \"^2\"\n[tool.x]\ny = \"lib\"\n"
                            .to_owned(),
                        "[tool.poetry.dependencies]\nb = { path = \"./lib\" }\n".to_owned(),
                    ],
                ),
            ),
            (
                "package.json",
                pairs(
                    "{\"dependencies\": {\"b\": \"1\"}, \"main\": \"x\"}".to_owned(),
                    [
                        "{\"dependencies\": {\"b\": \"2\"}, \"main\": \"lib\"}".to_owned(),
                        "{\"dependencies\": {\"b\": \"1\", \"c\": \"file:lib\"}}".to_owned(),
                    ],
                ),
            ),
        ];
        let is_directory = |directory: &str| matches!(directory, "" | "lib" | "lib/b");
        for (path, (before, after)) in cases {
            let leads =
                after.map(|own| file(path).leads_into_tree(Some(&before), &own, &is_directory));
            assert_eq!(leads, [false, true], "{path}: {before}");
            assert!(!file(path).leads_into_tree(Some(&before), &before, &is_directory), "{path}");
        }
        let named = "[dependencies]\nb = { path = \"lib\" }\n";
        assert!(!file("Cargo.toml").leads_into_tree(None, named, &is_directory));
    }
    #[test]
    fn locked_version_from_another_place_is_seen() {
        let npm = |version: &str, url: &str| {
            format!(
                "{{\"packages\": {{\"\": {{}}, \"node_modules/b\": {{\"version\": \"{version}\", \
                 \"resolved\": \"{url}\", \"funding\": {{\"url\": \"https://{version}{url}\"}}}}}}}}"
            )
        };
        let yarn = |version: &str, url: &str| {
            format!(
                "# yarn lockfile v1\nc@1:\n  version \"1\"\n\nb@^1, b@1:\n  version \"{version}\"\n  resolved \"{url}\"\n"
            )
        };
        let pnpm = |version: &str, url: &str| {
            format!(
                "packages:\n\n  b@{version}:\n    resolution: {{integrity: x, tarball: {url}}}\n"
            )
        };
        let poetry = |version: &str, url: &str| {
            format!(
                "[[package]]\nname = \"b\"\nversion = \"{version}\"\n[package.source]\nurl = \"{url}\"\n"
            )
        };
        let composer = |version: &str, url: &str| {
            format!(
                "{{\"packages\": [{{\"name\": \"b\", \"version\": \"{version}\", \"dist\": {{\"url\": \"{url}\"}}}}]}}"
            )
        };
        /// The name of a lock file, and a function that returns its text for a version and an
        /// address of a package.
        type Case<'a> = (&'a str, &'a dyn Fn(&str, &str) -> String);
        let mix = |version: &str, url: &str| {
            format!("%{{\n  \"b\": {{:git, \"{url}\", \"{version}\", []}},\n}}\n")
        };
        let cases: [Case<'_>; 6] = [
            ("package-lock.json", &npm),
            ("yarn.lock", &yarn),
            ("pnpm-lock.yaml", &pnpm),
            ("poetry.lock", &poetry),
            ("composer.lock", &composer),
            ("mix.lock", &mix),
        ];
        for (path, lock) in cases {
            let base = lock("1.0", "https://x.org/b/v1.0/b.tgz");
            let moves = |own: &str| file(path).moves_package(Some(&base), own);
            for version in ["1.0", "2.0"] {
                for url in ["https://y.org/b/v1.0/b.tgz", "https://x.org/c/v1.0/b.tgz"] {
                    assert!(moves(&lock(version, url)), "{path}: {version} {url}");
                }
            }
            if path != "mix.lock" {
                assert!(!moves(&lock("2.0", "https://x.org/b/v2.0/b-2.tgz")), "{path}");
            }
            assert!(!moves(&base), "{path}");
        }
    }

    #[test]
    fn entry_of_a_lock_file_that_is_more_than_a_version_is_seen() {
        let npm = |more: &str| format!("{{\"packages\": {{\"node_modules/b\": {{{more}}}}}}}");
        let berry = |version: &str, resolution: &str, bin: &str| {
            format!(
                "__metadata:\n  version: 8\n\n\"b@npm:^1.0\":\n  version: {version}\n  \
                 resolution: \"{resolution}@npm:{version}\"\n  dependencies:\n    c: \"npm:^{version}\"\n  \
                 bin:\n    b: {bin}.js\n  checksum: {version}\n"
            )
        };
        let pnpm = |version: &str, more: &str| {
            format!(
                "importers:\n\n  .:\n    dependencies:\n      b:\n        specifier: ^{version}\n        \
                 version: {version}\n\npackages:\n\n  b@{version}:\n    resolution: {{integrity: sha512-{version}==}}\n    \
                 engines: {{node: '>={version}'}}\n{more}\nsnapshots:\n\n  b@{version}:\n    dependencies:\n      c: {version}\n"
            )
        };
        let composer = |more: &str| format!("{{\"packages\": [{{\"name\": \"b\", {more}}}]}}");
        let cargo = |source: &str| {
            format!("version = 3\n[[package]]\nname = \"b\"\nversion = \"1\"\n{source}\n")
        };
        let mix = |kind: &str, version: &str| {
            format!(
                "%{{\n  \"b\": {{:hex, :{kind}, \"{version}\", \"x\", [:mix], [], \"hexpm\", \"y\"}},\n}}\n"
            )
        };
        let old_pnpm =
            |to: &str| format!("lockfileVersion: 5.4\ndependencies:\n  b: {to}\npackages: {{}}\n");
        let bun = |from: &str, more: &str| {
            format!(
                "{{\"packages\": {{{more} \"b\": [\"{from}\", \"\", {{\"bin\": {{\"b\": \"b.js\"}}}}, \"sha512-{from}\"],}}}}"
            )
        };
        let dart = |name: &str, version: &str| {
            format!(
                "packages:\n  b:\n    description:\n      name: {name}\n      sha256: \"{version}\"\n      \
                 url: \"https://pub.dev\"\n    source: hosted\n    version: \"{version}\"\n"
            )
        };
        let gems = |place: &str, version: &str| {
            format!(
                "GEM\n  remote: https://x.org/\n  specs:\n    c (1)\n\nGIT\n  remote: https://{place}.org/\n  specs:\n    b ({version})\n\nGIT\n  remote: https://y.org/\n  specs:\n    d (1)\n"
            )
        };
        let base = "\"version\": \"1.0\", \"bin\": {\"b\": \"b.js\"}";
        let cases = [
            (
                "package-lock.json",
                npm(base),
                npm(
                    "\"version\": \"2.0\", \"bin\": {\"b\": \"b.js\"}, \"license\": \"MIT\", \"dependencies\": {\"c\": \"1\"}",
                ),
                false,
            ),
            (
                "package-lock.json",
                npm(base),
                npm("\"version\": \"1.0\", \"bin\": {\"b\": \"c.js\"}"),
                true,
            ),
            (
                "package-lock.json",
                npm(base),
                npm("\"version\": \"1.0\", \"name\": \"c\", \"bin\": {\"b\": \"b.js\"}"),
                true,
            ),
            (
                "package-lock.json",
                npm(base),
                npm(&format!("{base}}}, \"node_modules/c\": {{\"version\": \"1.0\"")),
                false,
            ),
            (
                "package-lock.json",
                npm(base),
                npm(&format!("{base}}}, \"node_modules/c\": {{{base}")),
                true,
            ),
            ("yarn.lock", berry("1.0.0", "b", "b"), berry("1.1.0", "b", "b"), false),
            ("yarn.lock", berry("1.0.0", "b", "b"), berry("1.1.0", "c", "b"), true),
            ("yarn.lock", berry("1.0.0", "b", "b"), berry("1.0.0", "b", "c"), true),
            ("pnpm-lock.yaml", pnpm("1.0.0", ""), pnpm("1.1.0", "    hasBin: true\n"), false),
            ("pnpm-lock.yaml", pnpm("1.0.0", ""), pnpm("1.0.0", "    requiresBuild: true\n"), true),
            ("pnpm-lock.yaml", old_pnpm("1.0.0_c@2.0.0"), old_pnpm("1.1.0_c@2.1.0"), false),
            ("pnpm-lock.yaml", old_pnpm("1.0.0_c@2.0.0"), old_pnpm("/c/2.0.0"), true),
            (
                "pnpm-lock.yaml",
                pnpm("1.0.0", ""),
                pnpm("1.0.0", "").replace(" 1.0.0\n\np", " c@1.0.0\n\np"),
                true,
            ),
            (
                "pnpm-lock.yaml",
                pnpm("1.0.0", ""),
                pnpm("1.0.0", "").replace("c: 1.0.0", "b: d@1.0.0"),
                true,
            ),
            (
                "pnpm-lock.yaml",
                pnpm("1.0.0", ""),
                pnpm("1.0.0", "").replace("c: 1.0.0", "e: f@1.0.0"),
                false,
            ),
            ("bun.lock", bun("b@1.0.0", ""), bun("b@1.1.0", "\"c\": [\"c@2.0.0\"],"), false),
            ("bun.lock", bun("b@1.0.0", ""), bun("c@1.0.0", ""), true),
            ("bun.lock", bun("b@1.0.0", ""), bun("b@https://x.org/b.tgz", ""), true),
            ("bun.lock", bun("b@1.0.0", ""), bun("b@1.0.0", "\"c/b\": [\"c@2.0.0\"],"), true),
            ("bun.lock", bun("b@1.0.0", ""), bun("b@1.0.0", "]"), true),
            ("pubspec.lock", dart("b", "1.0.0"), dart("b", "1.1.0"), false),
            ("pubspec.lock", dart("b", "1.0.0"), dart("c", "1.0.0"), true),
            ("Gemfile.lock", gems("x", "1.0.0"), gems("x", "1.1.0"), false),
            ("Gemfile.lock", gems("x", "1.0.0"), gems("y", "1.0.0"), true),
            ("package-lock.json", npm(base), format!("\u{feff}{}", npm(base)), true),
            (
                "package-lock.json",
                npm(base),
                npm(&format!("{base}, \"x\": {}{}", "[".repeat(1000), "]".repeat(1000))),
                true,
            ),
            (
                "composer.lock",
                composer("\"version\": \"1.0\""),
                composer("\"version\": \"1.1\", \"time\": \"x\""),
                false,
            ),
            (
                "composer.lock",
                composer("\"version\": \"1.0\""),
                composer("\"version\": \"1.0\", \"autoload\": {\"files\": [\"x\"]}"),
                true,
            ),
            (
                "Cargo.lock",
                cargo("source = \"registry+https://x.org/index\""),
                cargo("source = \"git+https://x.org/b#1\""),
                true,
            ),
            (
                "Cargo.lock",
                cargo("source = \"registry+https://x.org/index\""),
                cargo("checksum = \"1\""),
                true,
            ),
            ("mix.lock", mix("b", "1.0"), mix("b", "1.1"), false),
            ("mix.lock", mix("b", "1.0"), mix("c", "1.0"), true),
            ("mix.lock", mix("b", "1.0"), mix("b", "1.0").replace("hexpm", "other"), true),
            ("mix.lock", mix("b", "1.0"), mix("b", "1.0").replace(":hex, ", ":hex,\n"), true),
            ("mix.lock", mix("b", "1.0"), mix("b", "1.0").replace("\"x\"", "halt(1)"), true),
        ];
        for (path, base, own, expected) in cases {
            assert_eq!(file(path).moves_package(Some(&base), &own), expected, "{path}: {own}");
            assert!(!file(path).moves_package(Some(&base), &base), "{path}: {base}");
        }
        assert!(file("bun.lockb").moves_package(Some("b"), ""));
    }

    #[test]
    fn requirement_of_another_place_is_no_version() {
        let npm = |to: &str| format!("{{\"dependencies\": {{\"b\": \"{to}\"}}}}");
        let python = |to: &str| format!("[project]\ndependencies = [\"{to}\"]\n");
        let poetry = |to: &str| format!("[tool.poetry.group.x.dependencies]\nb = {to}\n");
        let cargo = |to: &str| format!("[dev-dependencies]\nb = {to}\n");
        let cfg = |to: &str| format!("[options]\ninstall_requires =\n  {to}\n");
        let deno = |to: &str| format!("{{\"imports\": {{\"b\": \"{to}\"}}}}");
        let cases = [
            ("package.json", npm("^1.0"), npm("~2.0 || 3.x"), false),
            ("package.json", npm("^1.0"), npm("latest"), false),
            ("package.json", npm("^1.0"), npm("npm:c@^1.0"), true),
            ("package.json", npm("npm:c@^1.0"), npm("npm:c@^2.0"), false),
            ("package.json", npm("npm:@s/c@^1.0"), npm("npm:@s/d@^1.0"), true),
            ("package.json", npm("^1.0"), npm("git+https://x.org/b.git"), true),
            (
                "package.json",
                npm("git+ssh://git@x.org/a/b.git#v1"),
                npm("git+ssh://git@x.org/a/b.git#v2"),
                false,
            ),
            ("package.json", npm("git+ssh://git@x.org/a/b.git#v1"), npm("^1.0"), true),
            ("package.json", npm("https://x.org/b/b-1.tgz"), npm("https://x.org/b/b-2.tgz"), false),
            ("package.json", npm("^1.0"), npm("a/b"), true),
            ("package.json", npm("^1.0"), npm("~/b"), true),
            ("package.json", npm("^1.0"), npm("file:b.tgz"), true),
            ("package.json", npm("^1.0"), npm("patch:b@npm%3A1#~/p.patch"), true),
            ("package.json", "{}".to_owned(), npm("^1.0"), false),
            ("package.json", "{}".to_owned(), npm("https://x.org/b.tgz"), true),
            ("pyproject.toml", python("b[x]>=1; python_version < '3'"), python("b[x]>=2"), false),
            ("pyproject.toml", python("b>=1"), python("b @ https://x.org/b.whl"), true),
            (
                "pyproject.toml",
                python("b @ git+https://x.org/b.git@v1"),
                python("b @ git+https://x.org/b.git@v2"),
                false,
            ),
            (
                "pyproject.toml",
                poetry("'^1'"),
                poetry("{ version = '^2', optional = true }"),
                false,
            ),
            ("pyproject.toml", poetry("'^1'"), poetry("{ url = 'https://x.org/b.whl' }"), true),
            (
                "pyproject.toml",
                poetry("'^1'"),
                poetry("[{ version = '1' }, { git = 'https://x.org/b' }]"),
                true,
            ),
            ("pyproject.toml", poetry("'^1'"), poetry("{ version = '^1', source = 'x' }"), true),
            ("setup.cfg", cfg("b>=1"), cfg("b>=2"), false),
            ("setup.cfg", cfg("b>=1"), cfg("b @ https://x.org/b.whl"), true),
            ("Cargo.toml", cargo("'1'"), cargo("{ version = '2', features = ['x'] }"), false),
            ("Cargo.toml", cargo("'1'"), cargo("{ package = 'c', version = '1' }"), true),
            ("Cargo.toml", cargo("{ path = 'b' }"), cargo("{ path = 'fake' }"), true),
            (
                "Cargo.toml",
                cargo("{ path = 'b' }"),
                cargo("{ path = 'fake' }").replace("dev-", ""),
                true,
            ),
            ("Cargo.toml", String::new(), cargo("{ path = 'b' }"), false),
            ("deno.json", deno("jsr:@s/b@1"), deno("jsr:@s/b@2"), false),
            ("deno.json", deno("jsr:@s/b@1"), deno("npm:b@1"), true),
            (
                "composer.json",
                "{\"require\": {\"a/b\": \"^1\"}}".to_owned(),
                "{\"require\": {\"a/b\": \"^2@dev || dev-main\"}}".to_owned(),
                false,
            ),
        ];
        for (path, base, own, expected) in cases {
            assert_eq!(
                file(path).moves_package(Some(&base), &own),
                expected,
                "{path}: {base} {own}"
            );
            assert!(!file(path).moves_package(Some(&base), &base), "{path}: {base}");
        }
    }
}
