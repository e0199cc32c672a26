//! The rules of docs/DESIGN.md §5 about the source: the order of the rooms, no cycles, unique type
//! names, and one room each for git and for printing.
//!
//! A room is a directory or a file directly in src/. Test modules and comments do not count.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The rooms of the line "Direction" in docs/DESIGN.md, from top to bottom. Rooms on one level do
/// not import each other.
fn levels() -> BTreeMap<&'static str, usize> {
    let design = include_str!("../docs/DESIGN.md");
    let (_, rest) = design.split_once("\nDirection: `").unwrap();
    let (line, _) = rest.split_once('`').unwrap();
    let mut levels = BTreeMap::new();
    for (level, rooms) in line.split('→').enumerate() {
        for room in rooms.split(|c: char| !is_word(c)).filter(|room| !room.is_empty()) {
            levels.insert(room, level);
        }
    }
    levels
}

/// A source file without its test module and its comment lines.
struct Source {
    /// The path below src/ without `.rs`; a directory's `mod.rs` has the directory's name.
    module: String,
    lines: Vec<String>,
    /// The lines of doc comments, without their marks.
    doc_lines: Vec<String>,
}

impl Source {
    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

fn room_of(module: &str) -> &str {
    module.split('/').next().unwrap()
}

fn sources() -> Vec<Source> {
    fn collect(directory: &Path, prefix: &str, found: &mut Vec<Source>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                collect(&path, &format!("{prefix}{stem}/"), found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let module = if stem == "mod" {
                    prefix.trim_end_matches('/').to_owned()
                } else {
                    format!("{prefix}{stem}")
                };
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
                let is_comment = |line: &&str| line.trim_start().starts_with("//");
                let lines = code.lines().filter(|l| !is_comment(l)).map(str::to_owned).collect();
                let docs = code.lines().map(str::trim_start);
                let docs = docs.filter_map(|l| l.strip_prefix("///").or(l.strip_prefix("//!")));
                let doc_lines = docs.map(|l| l.trim_start().to_owned()).collect();
                found.push(Source { module, lines, doc_lines });
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    found.sort_by(|a, b| a.module.cmp(&b.module));
    found
}

/// The paths of a use tree, or of a path in an expression, that starts here: `a::{b, c::D}` gives
/// `a/b` and `a/c/D`.
fn use_tree(text: &str, prefix: &str, found: &mut Vec<String>) {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let mut depth = 1;
        let mut start = 0;
        for (at, c) in group.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 || (depth == 1 && c == ',') {
                use_tree(&group[start..at], prefix, found);
                start = at + 1;
            }
            if depth == 0 {
                return;
            }
        }
        return;
    }
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return;
    }
    let path = if word == "self" { prefix.to_owned() } else { join(prefix, word) };
    match rest.strip_prefix("::") {
        Some(rest) => use_tree(rest, &path, found),
        None => found.push(path),
    }
}

fn join(prefix: &str, word: &str) -> String {
    if prefix.is_empty() { word.to_owned() } else { format!("{prefix}/{word}") }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text after each occurrence of a word that is not part of a longer word or path.
fn after_each<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let starts_path = |at: usize| !text[..at].ends_with(|c: char| is_word(c) || c == ':');
    text.match_indices(word)
        .filter(|(at, _)| starts_path(*at))
        .map(|(at, _)| &text[at + word.len()..])
        .collect()
}

/// Every import between files, from importing module to imported module.
fn imports(sources: &[Source]) -> BTreeSet<(&str, &str)> {
    let modules: BTreeSet<&str> = sources.iter().map(|s| s.module.as_str()).collect();
    let mut found = BTreeSet::new();
    for source in sources {
        let text = source.text();
        let mut paths = Vec::new();
        for rest in after_each(&text, "crate::") {
            use_tree(rest, "", &mut paths);
        }
        let parent = source.module.rsplit_once('/').map_or("", |(parent, _)| parent);
        for rest in after_each(&text, "super::") {
            use_tree(rest, parent, &mut paths);
        }
        // A module names its children without `crate::`.
        let prefix = if source.module == "lib" { "" } else { &source.module };
        for child in after_each(&text, "mod ") {
            let name: String = child.chars().take_while(|c| is_word(*c)).collect();
            for rest in after_each(&text, &format!("{name}::")) {
                use_tree(rest, &join(prefix, &name), &mut paths);
            }
        }
        for path in &paths {
            let target = path
                .match_indices('/')
                .map(|(at, _)| &path[..at])
                .chain([path.as_str()])
                .rev()
                .find_map(|part| modules.get(part).copied());
            if let Some(target) = target
                && target != source.module
            {
                found.insert((source.module.as_str(), target));
            }
        }
    }
    found
}

/// The groups of files that import each other, directly or through others.
fn cycles<'s>(imports: &BTreeSet<(&'s str, &'s str)>) -> Vec<BTreeSet<&'s str>> {
    let mut targets: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
    for (from, to) in imports {
        targets.entry(from).or_default().push(to);
    }
    let reachable = |start: &'s str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            for target in targets.get(module).into_iter().flatten() {
                if seen.insert(*target) {
                    open.push(target);
                }
            }
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&'s str>> =
        imports.iter().map(|(from, _)| (*from, reachable(from))).collect();
    let mut found: Vec<BTreeSet<&'s str>> = Vec::new();
    for (module, below) in &all {
        let group: BTreeSet<&'s str> = below
            .iter()
            .copied()
            .filter(|other| all.get(other).is_some_and(|back| back.contains(module)))
            .collect();
        if group.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

fn assert_none(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}\n", offenders.join("\n  "));
}

#[test]
fn a_room_imports_only_from_rooms_below_it() {
    let sources = sources();
    let levels = levels();
    let level = |module: &str| levels.get(room_of(module));
    let mut offenders: Vec<String> = sources
        .iter()
        .filter(|source| level(&source.module).is_none())
        .map(|source| format!("src/{} has no place in the order", source.module))
        .collect();
    for (from, to) in imports(&sources) {
        if room_of(from) != room_of(to) && level(from) >= level(to) {
            offenders.push(format!("src/{from} imports src/{to}"));
        }
    }
    assert_none(&offenders, "imports must follow the order in docs/DESIGN.md §5, \"Direction\"");
}

#[test]
fn no_files_import_each_other() {
    let sources = sources();
    let offenders: Vec<String> = cycles(&imports(&sources))
        .iter()
        .map(|group| group.iter().copied().collect::<Vec<_>>().join(", "))
        .collect();
    assert_none(&offenders, "these files import each other, directly or through others");
}

/// The rooms of src/git/ are its files and directories.
#[test]
fn no_rooms_of_git_import_each_other() {
    let sources = sources();
    let imports = imports(&sources);
    let inner = |module| {
        let rest: Option<&str> = str::strip_prefix(module, "git/");
        rest.map(|rest| rest.split('/').next().unwrap())
    };
    let between: BTreeSet<(&str, &str)> = imports
        .iter()
        .filter_map(|(from, to)| Some((inner(from)?, inner(to)?)))
        .filter(|(from, to)| from != to)
        .collect();
    let offenders: Vec<String> = cycles(&between)
        .iter()
        .map(|group| group.iter().copied().collect::<Vec<_>>().join(", "))
        .collect();
    assert_none(&offenders, "these rooms of src/git import each other");
}

/// What two of them need is a room of its own in src/ops/, below them; what needs two of them is
/// one above, as src/ops/shard is.
#[test]
fn judging_spawning_and_landing_do_not_import_each_other() {
    /// The imports that are left. This number only falls.
    const CEILING: usize = 1;
    let rooms = ["ops/judge", "ops/spawn", "ops/land"];
    let room = |module: &str| rooms.into_iter().find(|room| Path::new(module).starts_with(room));
    let sources = sources();
    let found: Vec<String> = imports(&sources)
        .iter()
        .filter(|(from, to)| room(from).is_some() && room(to).is_some() && room(from) != room(to))
        .map(|(from, to)| format!("src/{from} imports src/{to}"))
        .collect();
    let all = found.join("\n  ");
    assert!(found.len() <= CEILING, "more than {CEILING} imports between {rooms:?}:\n  {all}");
}

/// Counts closures that are bound by `let` and named once after that, before the next function.
fn closures_used_once(text: &str) -> usize {
    let functions: Vec<&str> = text.split("fn ").collect();
    let used_once = |function: &&str| {
        let lets = function.match_indices("let ").filter_map(|(at, _)| {
            let rest = &function[at + 4..];
            let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
            let value = rest.split_once(" = ")?.1;
            let is_closure = value.starts_with('|') || value.starts_with("move |");
            (is_closure && !name.is_empty()).then_some((name, rest))
        });
        lets.filter(|(name, rest)| after_each(rest, name).len() <= 2).count()
    };
    functions.iter().map(used_once).sum()
}

/// Counts tuples of names that are bound to tuples of values.
fn parallel_lets(text: &str) -> usize {
    let is_parallel = |(at, _): &(usize, &str)| {
        let rest = &text[at + 5..];
        let Some((names, value)) = rest.split_once(')') else { return false };
        names.chars().all(|c| is_word(c) || c == ',' || c.is_whitespace())
            && value.trim_start().strip_prefix('=').is_some_and(|v| v.trim_start().starts_with('('))
    };
    text.match_indices("let (").filter(is_parallel).count()
}

/// What hides the code from its reader: DESIGN §5 forbids it. These numbers only fall: whoever
/// takes one away lowers its number here.
#[test]
fn idioms_that_hide_the_code_become_fewer() {
    let sources = sources();
    let count =
        |of: fn(&str) -> usize| -> usize { sources.iter().map(|source| of(&source.text())).sum() };
    let filters_as_ifs = |text: &str| text.matches(".filter(|_|").count();
    let found = [count(closures_used_once), count(parallel_lets), count(filters_as_ifs)];
    let ceilings = [136, 24, 13];
    let what = "closures used once, parallel lets, `.filter(|_|` as an if";
    assert!(
        found.iter().zip(ceilings).all(|(found, ceiling)| *found <= ceiling),
        "{what}: {found:?}, and at most {ceilings:?} are allowed"
    );
}

/// A sentence is understood at first reading if its subject has a name.
#[test]
fn comments_do_not_begin_with_a_relative_clause() {
    const RIDDLES: [&str; 5] = ["What ", "Whatever ", "Those ", "That of ", "All that "];
    let mut found = Vec::new();
    for source in sources() {
        let riddles = source.doc_lines.iter().filter(|l| RIDDLES.iter().any(|r| l.starts_with(r)));
        found.extend(riddles.map(|line| format!("src/{}: {line}", source.module)));
    }
    assert_none(&found, "the subject of a sentence has a name");
}

/// The contract is to be read by somebody who did not write it.
#[test]
fn the_design_is_short() {
    let design = include_str!("../docs/DESIGN.md");
    let words = design.split_whitespace().count();
    assert!(words <= 8_000, "docs/DESIGN.md has {words} words: leave details to the manual");
    let wide = design.lines().filter(|line| line.chars().count() > 120);
    let wide: Vec<String> = wide.map(str::to_owned).collect();
    assert_none(&wide, "a line of docs/DESIGN.md has at most 120 columns");
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources() {
        for line in &source.lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [public, kind, name, ..] = words[..] else { continue };
            if public.starts_with("pub")
                && ["struct", "enum", "trait", "type", "union"].contains(&kind)
            {
                let name = name.chars().take_while(|c| is_word(*c)).collect();
                owners.entry(name).or_default().insert(format!("src/{}", source.module));
            }
        }
    }
    let offenders: Vec<String> = owners
        .into_iter()
        .filter(|(_, modules)| modules.len() > 1)
        .map(|(name, modules)| {
            format!("{name}: {}", modules.into_iter().collect::<Vec<_>>().join(", "))
        })
        .collect();
    assert_none(&offenders, "a public type's name must be unique in the crate");
}

/// The lines outside `room` that hold one of these texts.
fn lines_outside(room: &str, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources() {
        if room_of(&source.module) == room {
            continue;
        }
        for line in &source.lines {
            if texts.iter().any(|text| !after_each(line, text).is_empty()) {
                found.push(format!("src/{}: {}", source.module, line.trim()));
            }
        }
    }
    found
}

#[test]
fn only_git_touches_gix_and_starts_git() {
    let starts = ["gix::", "cmd!(\"git\"", "cmd(\"git\"", "Command::new(\"git\")"];
    assert_none(&lines_outside("git", &starts), "only src/git uses gix and starts git");
}

/// The names of files and directories that src/model/layout.rs spells and that cannot mean anything
/// else: a plain word such as `index` is a name in git, too.
fn names_of_the_state() -> Vec<String> {
    let all = sources();
    let layout = all.iter().find(|source| source.module == "model/layout").unwrap();
    let text = layout.text();
    let quoted = text.split('"').skip(1).step_by(2);
    let is_own = |name: &&str| {
        let inner = name.trim_start_matches(['.', '@']);
        !name.contains('{') && inner.contains(['.', '-', '/']) && *name != ".gitignore"
    };
    quoted.filter(is_own).map(|name| format!("\"{name}\"")).collect()
}

#[test]
fn only_the_layout_spells_a_path_of_the_state() {
    let names = names_of_the_state();
    assert!(names.len() > 15, "{names:?}");
    let mut offenders = Vec::new();
    for source in sources().iter().filter(|source| source.module != "model/layout") {
        for line in &source.lines {
            if names.iter().any(|name| line.contains(name)) || line.contains("{}.log\"") {
                offenders.push(format!("src/{}: {}", source.module, line.trim()));
            }
        }
        let text: String = source.text().split_whitespace().collect();
        let makers = ["directory()", "_dir(", "dir()", "base()", "landed_trees()", "base_tests()"];
        for (at, _) in text.match_indices(".path().join(") {
            let before = &text[..at];
            let call = &before[before.rfind([';', '{', '=', ',']).map_or(0, |at| at + 1)..];
            if makers.iter().any(|maker| call.contains(maker)) {
                offenders.push(format!("src/{}: {call}.path().join(", source.module));
            }
        }
    }
    assert_none(&offenders, "only src/model/layout.rs joins names to a path of the state");
}

/// Code that is judged must not read the refs of other candidates.
#[test]
fn the_list_of_refs_that_worlds_hide_is_complete() {
    let text = sources().iter().map(Source::text).collect::<Vec<_>>().join("\n");
    let (_, list) = text.split_once("const OUR_REFS: [&str; 4] = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    let value_of = |name: &str| {
        let (_, rest) =
            text.split_once(&format!("pub const {name}: &str = ")).unwrap_or(("", name));
        rest.split('"').nth(1).unwrap().to_owned()
    };
    let hidden: BTreeSet<String> = list.split(',').map(|item| value_of(item.trim())).collect();
    let mut spelled = BTreeSet::new();
    for start in ["refs/frites", "refs/heads/frites"] {
        for rest in text.split(start).skip(1) {
            let more = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap();
            spelled.insert(format!("{start}{more}/"));
        }
    }
    assert_eq!(spelled, hidden, "OUR_REFS in src/git/refs.rs names every directory of our refs");
}

/// Where the system keeps temporary files, attempts that still run can replace them. Tests of a
/// file expect that a directory can be made.
#[test]
fn temporary_directories_are_made_in_the_state_directory() {
    let makes_one = |text: &str| {
        ["tempfile::tempdir()", "NamedTempFile::new()"]
            .iter()
            .any(|call| after_each(text, call).iter().any(|rest| !rest.starts_with(".expect(")))
    };
    let sources = sources();
    let others = sources.iter().filter(|source| source.module != "fs/scratch");
    let offenders: Vec<String> = others
        .filter(|source| makes_one(&source.text()))
        .map(|source| format!("src/{}", source.module))
        .collect();
    assert_none(&offenders, "fs::scratch makes temporary directories");
}

#[test]
fn only_ui_prints() {
    let mut offenders = lines_outside(
        "ui",
        &[
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "stdout()",
            "stderr()",
            "io::stdout()",
            "io::stderr()",
        ],
    );
    // The supervisor's standard output is a pipe to the process that it reports to, and the
    // standard error of a world's first process is the log of its command.
    let pipes = ["src/process/supervisor: ", "src/world/init: "];
    offenders.retain(|line| !pipes.iter().any(|file| line.starts_with(file)));
    assert_none(&offenders, "only src/ui prints");
}

#[test]
fn every_test_that_the_comparison_names_exists() {
    let page = include_str!("../docs/PARITY.md");
    let named = page.split('`').skip(1).step_by(2).filter_map(|code| code.rsplit_once("::"));
    let missing: Vec<String> = named
        .filter(|(file, test)| {
            let file = format!("tests/{}.rs", file.replace("::", "/"));
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read_to_string(path).unwrap_or_default();
            !text.contains(&format!("#[test]\nfn {test}()"))
        })
        .map(|(file, test)| format!("{file}::{test}"))
        .collect();
    assert_none(&missing, "docs/PARITY.md names tests that exist");
    // Each row of a behaviour has a test.
    let (_, tables) = page.split_once("\n## frites\n").unwrap();
    let rows = tables.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| behaviour"));
    let without: Vec<String> = rows.filter(|row| !row.contains("::")).map(str::to_owned).collect();
    assert_none(&without, "each behaviour in docs/PARITY.md has a test");
}
