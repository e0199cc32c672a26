//! The trees of a candidate's second judging. The first tree has the candidate's source, documents
//! and lists of dependencies, and all other files as in the base. Each further tree also has a
//! combination of the doubtful files.
//!
//! A changed file is doubtful if it decides which commands run, or if the effect of its change is
//! not known. The effect is not known if the file is neither source, a document, a list of
//! dependencies nor a test, or if its mode changes. A new file is not doubtful if it can only be
//! the setting of a tool.
use std::collections::{BTreeMap, BTreeSet};

use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::dependencies;
use crate::ecosystems::documents::is_document_by_name;
use crate::ecosystems::languages::{language_of, modules_declared_by};
use crate::ecosystems::paths::place_of_word;
use crate::ecosystems::put_back::{
    PutBack, begins_project, declares_new_module, is_read_as_text, is_setting_at_most, put_back,
    tests_are_named_by_modules,
};
use crate::ecosystems::touched::is_test_path;
use crate::error::Result;
use crate::git::protect::{self, Restore, RestoredTree};
use crate::git::repo::Repo;
use crate::model::base_tests::{
    BaseTests, BaseTestsResult, MODE_OF, PART_OF, SUBMODULE, TreeBeside,
};
use crate::model::changed_file::{ChangedFile, FileContent};
use crate::model::count::some_of;
use crate::model::oid::Oid;
use crate::model::oracle::OracleCommand;
use crate::model::outcome::Results;
use crate::model::path::TreePath;
use crate::model::terms::Terms;
use crate::ops::judge::changed_file::changed_files;
use crate::ops::session::Session;

/// At most this many groups of doubtful files are judged in all combinations.
const MOST_BESIDE: usize = 3;

/// The reason why a candidate that changes no source is not verified.
const NO_SOURCE: &str = "it changes only tests and files that decide what is run, so the base's own \
                         tests and files say nothing about it";

/// At most this many new files count as settings of tools. If a candidate adds more such files,
/// none of them counts. It would take too long to search for each name in all other changed files.
const MOST_SETTINGS: usize = 64;

/// The second judging that a tree needs, without results; `None` if the tree needs no second
/// judging. `changes` are the changes from the base to the tree.
pub fn plan(
    repo: &Repo,
    base: &Oid,
    tree: &Oid,
    changes: &[ChangedFile],
    project: &BaseProject<'_>,
    mode: BaseTests,
) -> Result<Option<BaseTestsResult>> {
    let choices = Choices::of(changes, project, mode)?;
    let others = choices.paths(PutBack::is_unknown);
    // Judge the doubtful files in all combinations. A doubtful file may hide that another one is
    // broken. The base's version of a doubtful file may hide that the source is broken. No line of
    // the base names a new setting, but a test may find one when it walks a directory. So up to two
    // further trees have all new settings: one has no doubtful file, and one has all of them.
    let mut doubtful = choices.paths(|choice| choice.decides() || choice.is_unknown());
    let settings = choices.new_settings()?;
    doubtful.retain(|path| !settings.contains(path));
    let doubtful = choices.in_groups(doubtful);
    let restored = choices.restore(repo, base, tree, &|_, _| false)?;
    let submodules: Vec<&TreePath> =
        changes.iter().filter(|file| file.is_submodule).map(|file| &file.path).collect();
    let described = |path: &TreePath| {
        let word = match choices.all.get(path) {
            Some(PutBack::Mode) => MODE_OF,
            Some(PutBack::Other) if submodules.contains(&path) => SUBMODULE,
            _ => "",
        };
        format!("{word}{}", path.quoted())
    };
    let inseparable = choices.why_inseparable();
    if inseparable.is_none() && restored.tree == *tree {
        return Ok(None);
    }
    let is_only_tests = choices.all.values().all(PutBack::is_added_test);
    let only_commands = inseparable.is_none()
        && choices.is_only_commands(&settings)
        && is_only_documents(repo, base, &restored.tree)?;
    let first = inseparable.is_none().then_some(restored.tree);
    let problem = inseparable
        .or_else(|| (only_commands && !choices.is_only_scripts()).then(|| NO_SOURCE.to_owned()))
        .or_else(|| why_too_many(&doubtful));
    let mut alone = Vec::new();
    let judged = if problem.is_none() { doubtful.as_slice() } else { &[] };
    let mut beside: Vec<Vec<&TreePath>> = combinations(judged).collect();
    if problem.is_none() && !settings.is_empty() {
        let settings: Vec<&TreePath> = settings.iter().copied().collect();
        beside.extend((!judged.is_empty()).then(|| [judged.concat(), settings.clone()].concat()));
        beside.push(settings);
    }
    // If no file were put back, the tree would be the candidate's own tree, which is judged anyway.
    for kept in beside.into_iter().filter(|kept| kept.len() < choices.all.len()) {
        // An added test may hide that a kept file is broken, so the test is taken out. But it stays
        // if a kept build file lists it, because the build would fail without it.
        let deciders =
            kept.iter().filter(|path| choices.all.get(**path).is_some_and(PutBack::decides));
        let texts: Vec<String> = deciders.filter_map(|path| choices.text_of(path)).collect();
        let keeps = |path: &TreePath, choice: &PutBack| {
            kept.contains(&path) || choice.is_added_test() && is_named_in(path, &texts)
        };
        let names: Vec<String> = kept.iter().map(|path| described(path)).collect();
        let path = if names.len() > MOST_BESIDE { some_of(&names) } else { names.join(", ") };
        alone.push(TreeBeside { path, tree: choices.restore(repo, base, tree, &keeps)?.tree });
    }
    let inner = choices.paths(|choice| matches!(choice, PutBack::AddedInnerTests(_)));
    let put_back = restored.put_back.iter().filter(|path| !inner.contains(path));
    let tests_in = inner.iter().map(|path| format!("the tests in {}", path.quoted()));
    Ok(Some(BaseTestsResult {
        tree: first,
        put_back: put_back
            .map(|path| {
                let file = changes.iter().find(|file| file.path == *path);
                let base = file.and_then(|file| file.before.bytes());
                match choices.all.get(path) {
                    Some(PutBack::Part(text)) if base != Some(text.as_bytes()) => {
                        format!("{PART_OF}{}", path.quoted())
                    }
                    _ => described(path),
                }
            })
            .collect(),
        taken_out: restored.taken_out.iter().map(|path| path.quoted()).chain(tests_in).collect(),
        no_source: others.into_iter().map(described).collect(),
        alone,
        only_commands,
        if_first: mode != BaseTests::Always && is_only_tests && choices.all.len() < changes.len(),
        problem,
        results: Results::default(),
    }))
}

/// True if only documents differ between the base and a tree.
fn is_only_documents(repo: &Repo, base: &Oid, tree: &Oid) -> Result<bool> {
    let changes = changed_files(repo, base, tree)?;
    Ok(changes.iter().all(|file| is_document_by_name(&file.path.lossy())))
}

/// True if one of the texts has the file's name, without its extension, as a word: for the file
/// `test_a.c`, a build file may list `test_a.o`.
fn is_named_in(path: &TreePath, texts: &[String]) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).into_owned();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    !stem.is_empty() && texts.iter().any(|text| place_of_word(text, stem).is_some())
}

/// A copy of the tree in which tests, and files that decide which commands run, are as in the base.
/// All other files stay, because they may be data. Changed modes stay as well.
pub fn without_tests(repo: &Repo, base: &Oid, tree: &Oid, terms: &Terms) -> Result<Oid> {
    let project = BaseProject::of(repo, base, &terms.oracle, &terms.settings.source)?;
    let changes = changed_files(repo, base, tree)?;
    let choices = Choices::of(&changes, &project, BaseTests::Always)?;
    Ok(choices.restore(repo, base, tree, &|_, choice| choice.is_unknown())?.tree)
}

/// The paths of each combination of these groups, except the empty one.
fn combinations<'p>(groups: &[Vec<&'p TreePath>]) -> impl Iterator<Item = Vec<&'p TreePath>> {
    (1..1_usize << groups.len()).map(|bits| {
        let kept = groups.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        kept.flat_map(|(_, group)| group.iter().copied()).collect()
    })
}

/// The reason why doubtful files are not judged beside the source: there are too many groups of
/// them for all combinations.
fn why_too_many(doubtful: &[Vec<&TreePath>]) -> Option<String> {
    let names: Vec<String> = doubtful.iter().flatten().map(|path| path.quoted()).collect();
    (doubtful.len() > MOST_BESIDE).then(|| {
        format!(
            "{} are not known to be source, or can decide what is run, and at most {MOST_BESIDE} such \
             files are judged beside the source, in each combination (all documents count as one, \
             and so do all tests: that makes {})",
            some_of(&names),
            doubtful.len()
        )
    })
}

/// How the changed files of a candidate are put back.
pub(super) struct Choices<'c, 'p> {
    changes: &'c [ChangedFile],
    project: &'c BaseProject<'p>,
    /// The choice for each changed path. Paths that are not put back are left out.
    pub(super) all: BTreeMap<TreePath, PutBack>,
}

impl<'c, 'p> Choices<'c, 'p> {
    /// Chooses how the changed files are put back.
    pub(super) fn of(
        changes: &'c [ChangedFile],
        project: &'c BaseProject<'p>,
        mode: BaseTests,
    ) -> Result<Choices<'c, 'p>> {
        let mut choices = Choices { changes, project, all: BTreeMap::new() };
        if mode == BaseTests::Never {
            return Ok(choices);
        }
        project.look_for(changes.iter().map(|file| {
            let is_in_one_tree =
                file.before.bytes().is_none() || file.after.bytes().is_none_or(<[u8]>::is_empty);
            (file.path.lossy(), is_in_one_tree)
        }))?;
        for file in changes {
            let name = file.path.lossy();
            let choice = match put_back(file, &name, project)? {
                // A link gives other files a new name: it can put source in the place of a test or
                // a script.
                PutBack::Keep
                | PutBack::Part(_)
                | PutBack::InnerTests(_)
                | PutBack::AddedInnerTests(_)
                | PutBack::Inseparable(_)
                    if file.is_submodule || file.is_link =>
                {
                    // If the base's version of a source file were put back here, the second judging
                    // would not run the code that lands.
                    if file.is_link && file.before.bytes().is_some() && language_of(&name).is_some()
                    {
                        PutBack::Inseparable(
                            "a symbolic link takes its place, or it takes the place of one",
                        )
                    } else {
                        PutBack::Other
                    }
                }
                // The content was not read, so it is not known whether it is source, or a list of
                // dependencies.
                PutBack::Keep
                    if (file.before.is_unread() || file.after.is_unread())
                        && is_read_as_text(&name) =>
                {
                    PutBack::Other
                }
                PutBack::Keep if project.declares_type_of_a_test(file, &name)? => {
                    PutBack::Inseparable("it declares a type that a test declares")
                }
                PutBack::Keep if declares_new_module(file, &name) => {
                    PutBack::Inseparable("it declares a module that tests may load")
                }
                choice => choice,
            };
            choices.all.insert(file.path.clone(), choice);
        }
        choices.keep_moved();
        choices.put_hiding_back()?;
        choices.put_lone_manifests_back()?;
        choices.put_redirected_back()?;
        for file in changes.iter().filter(|file| file.changes_mode) {
            // A script may run all executable files, so a changed mode is put back.
            choices.all.entry(file.path.clone()).and_modify(|choice| {
                if *choice == PutBack::Keep {
                    *choice = PutBack::Mode;
                }
            });
        }
        choices.all.retain(|_, choice| *choice != PutBack::Keep);
        Ok(choices)
    }

    /// Doubtful files in groups that are kept or put back together. The documents are one group: the
    /// tests that read one of them judge it with the base's version of all documents, and as it lands.
    /// So are the tests that the commands name, because each other group is judged by the base's
    /// version of all of them. Each other file is a group.
    fn in_groups<'d>(&self, doubtful: Vec<&'d TreePath>) -> Vec<Vec<&'d TreePath>> {
        let (documents, others): (Vec<_>, Vec<_>) =
            doubtful.into_iter().partition(|path| is_document_by_name(&path.lossy()));
        let (tests, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|path| {
            is_test_path(&path.lossy()) && self.all.get(*path).is_some_and(PutBack::decides)
        });
        let mut groups: Vec<Vec<&TreePath>> = others.into_iter().map(|path| vec![path]).collect();
        groups.extend([tests, documents].into_iter().filter(|group| !group.is_empty()));
        groups
    }

    /// True if at least one file is put back, and each is a test of the base or decides which
    /// commands run. Added tests, and new files that can only be `settings` of tools, are not
    /// looked at.
    fn is_only_commands(&self, settings: &BTreeSet<&TreePath>) -> bool {
        let left = self.all.iter().filter(|(path, _)| !settings.contains(path));
        let mut left = left.map(|(_, choice)| choice).filter(|choice| !choice.is_added_test());
        left.next().is_some_and(|first| !first.is_unknown())
            && left.all(|choice| !choice.is_unknown())
    }

    /// True if each file that is put back is a script that the commands run. Such a script may be
    /// the program under test. So the base's tests judge it, too, beside the source.
    fn is_only_scripts(&self) -> bool {
        self.all
            .iter()
            .all(|(path, choice)| *choice == PutBack::Deciding && self.project.runs(&path.lossy()))
    }

    /// Keeps source files that contain tests and that were only moved, because moving them adds or
    /// removes no test. This is certain only in a language whose modules name the files with tests.
    /// In other languages, a test runner searches certain directories.
    ///
    /// A moved file is not kept if the second judging would take out the whole file at its new
    /// path, e.g. because it is the path of a test. If two old files have the same text, a new file
    /// counts as the new place of only one of them.
    fn keep_moved(&mut self) {
        let gone = self.changes.iter().filter(|file| file.after.bytes().is_none());
        for gone in gone.filter(|file| tests_are_named_by_modules(&file.path.lossy())) {
            let new = self.changes.iter().filter(|file| file.before.bytes().is_none());
            let moved = new.filter(|new| new.after.bytes() == gone.before.bytes()).find(|new| {
                [gone, new].iter().all(|file| {
                    let choice = self.all.get(&file.path);
                    matches!(choice, Some(PutBack::Inseparable(_) | PutBack::AddedInnerTests(_)))
                })
            });
            for file in moved.into_iter().flat_map(|new| [gone, new]) {
                self.all.insert(file.path.clone(), PutBack::Keep);
            }
        }
    }

    /// Puts back new files that hide a module of the base, unless the attempt removes that module:
    /// then the new file takes its place.
    fn put_hiding_back(&mut self) -> Result<()> {
        let gone = self.kept(|file| file.after.bytes().is_none());
        let gone: BTreeSet<String> = gone.iter().map(|file| file.path.lossy()).collect();
        for file in self.kept(|file| file.before.bytes().is_none()) {
            let path = file.path.lossy();
            let declared = modules_declared_by(&path);
            let mut replaced = self.project.code()?.replaced_by(&path, &declared);
            replaced.retain(|path| !gone.contains(&**path));
            if !replaced.is_empty() {
                self.all.insert(file.path.clone(), PutBack::Other);
            }
        }
        Ok(())
    }

    /// Takes out a new manifest in a new directory if the attempt adds no source below this
    /// directory. With source, the directory begins a new project. Without source, the attempt may
    /// have made the directory only because a test or a build looks for a directory of this name.
    fn put_lone_manifests_back(&mut self) -> Result<()> {
        let kept = self.kept(|_| true);
        let mut source: Vec<String> = kept.iter().map(|file| file.path.lossy()).collect();
        source.retain(|path| language_of(path).is_some());
        let source: BTreeSet<&str> = source.iter().map(String::as_str).collect();
        for file in self.kept(|file| file.before.bytes().is_none()) {
            let name = file.path.lossy();
            let directory = &name[..name.rfind('/').map_or(0, |slash| slash + 1)];
            if begins_project(&name, self.project)? && !has_below(&source, directory) {
                self.all.insert(file.path.clone(), PutBack::Other);
            }
        }
        Ok(())
    }

    /// Marks a changed manifest or lock file to be put back in four cases:
    /// * tests read it as data;
    /// * it takes a package from a directory of the tree, and the base's file does not;
    /// * it changes the origin of a package;
    /// * it drops a package that is then found in a directory of the tree.
    fn put_redirected_back(&mut self) -> Result<()> {
        let Choices { changes, project, .. } = *self;
        let paths: Vec<String> = changes.iter().map(|file| file.path.lossy()).collect();
        let code = project.code()?;
        let sorted: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        let is_directory = |directory: &str| {
            code.has_directory(directory) || has_below(&sorted, &format!("{directory}/"))
        };
        for (file, path) in changes.iter().zip(&paths) {
            let text = |content: &FileContent| {
                content.bytes().map(|text| String::from_utf8_lossy(text).into_owned())
            };
            let (own, instead) = match self.all.get(&file.path) {
                Some(PutBack::Keep) => (text(&file.after), PutBack::Other),
                Some(PutBack::Part(part)) => (Some(part.clone()), PutBack::Deciding),
                _ => continue,
            };
            let base = text(&file.before);
            if project.is_manifest_as_data(path)?
                || own.is_some_and(|own| {
                    dependencies::redirects(path, base.as_deref(), &own, &is_directory)
                })
            {
                self.all.insert(file.path.clone(), instead);
            }
        }
        Ok(())
    }

    /// The files for which `matches` returns true and that are not put back, according to the
    /// choices so far.
    fn kept(&self, matches: impl Fn(&ChangedFile) -> bool) -> Vec<&'c ChangedFile> {
        let matching = self.changes.iter().filter(|file| matches(file));
        matching.filter(|file| self.all.get(&file.path) == Some(&PutBack::Keep)).collect()
    }

    /// The new files of unknown kind that can only be settings of tools. No line of the base can
    /// read them. Among the other changed files, only documents and files of this kind may name
    /// them.
    fn new_settings(&self) -> Result<BTreeSet<&'c TreePath>> {
        let Choices { changes, project, .. } = *self;
        let mut found = BTreeSet::new();
        for file in changes {
            if file.before == FileContent::Missing
                && self.all.get(&file.path) == Some(&PutBack::Other)
                && !(file.is_link || file.is_submodule)
                && is_setting_at_most(&file.path.lossy(), project)?
            {
                found.insert(&file.path);
            }
        }
        if found.len() > MOST_SETTINGS {
            return Ok(BTreeSet::new());
        }
        loop {
            let others = changes.iter().filter(|other| !found.contains(&other.path));
            let others = others.filter(|other| !is_document_by_name(&other.path.lossy()));
            let texts: Vec<String> = others
                .filter_map(|other| other.after.bytes())
                .map(|text| String::from_utf8_lossy(text).into_owned())
                .collect();
            let is_named = |path: &&TreePath| {
                let path = path.lossy();
                path.split('/').any(|part| texts.iter().any(|text| text.contains(part)))
            };
            let named: Vec<&TreePath> = found.iter().copied().filter(is_named).collect();
            if named.is_empty() {
                return Ok(found);
            }
            found.retain(|path| !named.contains(path));
        }
    }

    /// The reason why there can be no second judging: a change cannot be put back. `None` if there
    /// can be one.
    fn why_inseparable(&self) -> Option<String> {
        self.all.iter().find_map(|(path, choice)| match choice {
            PutBack::Inseparable(why) => {
                Some(format!("'{}' cannot be put back by itself: {why}", path.quoted()))
            }
            _ => None,
        })
    }

    /// Makes a copy of the tree in which each changed path is put back as the choices say. Paths
    /// for which `keeps` is true stay.
    fn restore(
        &self,
        repo: &Repo,
        base: &Oid,
        tree: &Oid,
        keeps: &dyn Fn(&TreePath, &PutBack) -> bool,
    ) -> Result<RestoredTree> {
        protect::put_back(repo, base, tree, |path| match self.all.get(path) {
            Some(choice) if keeps(path, choice) => Restore::Keep,
            Some(
                PutBack::Part(text) | PutBack::InnerTests(text) | PutBack::AddedInnerTests(text),
            ) => Restore::Text(text.clone().into_bytes()),
            Some(PutBack::Mode) => Restore::Mode,
            Some(PutBack::Inseparable(_) | PutBack::Keep) | None => Restore::Keep,
            Some(_) => Restore::Base,
        })
    }

    /// The paths for whose choice `matches` returns true.
    fn paths(&self, matches: impl Fn(&PutBack) -> bool) -> Vec<&TreePath> {
        self.all.iter().filter(|(_, choice)| matches(choice)).map(|(path, _)| path).collect()
    }

    /// The text that a changed file has in the candidate; `None` if it has none.
    fn text_of(&self, path: &TreePath) -> Option<String> {
        let file = self.changes.iter().find(|file| file.path == *path)?;
        Some(String::from_utf8_lossy(file.after.bytes()?).into_owned())
    }
}

/// As [`plan`], but reads the changes from the commit `base` to `tree` itself.
pub fn plan_for(
    session: &Session,
    base: &Oid,
    tree: &Oid,
    terms: &Terms,
) -> Result<Option<BaseTestsResult>> {
    let repo = &session.repo;
    let files = changed_files(repo, base, tree)?;
    let project = session.project(base, terms)?;
    plan(repo, base, tree, &files, &project, terms.settings.base_tests)
}

/// True if git-frites knows no language of the base, so that it cannot tell source from other
/// files.
pub fn is_source_unknown(repo: &Repo, base: &Oid, oracle: &[OracleCommand]) -> Result<bool> {
    Ok(!BaseProject::of(repo, base, oracle, &[])?.code()?.is_known)
}

/// True if one of these paths begins with `directory`, which ends with a slash or is empty.
fn has_below(paths: &BTreeSet<&str>, directory: &str) -> bool {
    paths.range(directory..).next().is_some_and(|path| path.starts_with(directory))
}
