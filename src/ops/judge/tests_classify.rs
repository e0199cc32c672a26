//! Computes the numbers of `eval/classify.sh`: how commits of other projects would be judged. Runs
//! none of their commands.
use std::fmt::Write as _;
use std::path::Path;

use crate::ecosystems::base_project::BaseProject;
use crate::ecosystems::detect::detect;
use crate::ecosystems::put_back::PutBack;
use crate::ecosystems::touched::is_test_path;
use crate::git::diff;
use crate::git::repo::Repo;
use crate::model::base_tests::BaseTests;
use crate::model::changed_file::ChangedFile;
use crate::ops::judge::base_tests::Choices;
use crate::ops::judge::changed_file::changed_file;

/// Reads revisions of the repository `$CLASSIFY_REPOSITORY` from the file `$CLASSIFY_REVISIONS`,
/// and writes a line for each to `$CLASSIFY_LINES`. The line has, in this order:
/// * the revision, the number of its changed files, and the number of test files among them;
/// * how the revision is judged, and the number of files that are not kept;
/// * of the files that are not kept, the paths of those that are neither source nor tests;
/// * of the files that are not kept, the paths of those that decide which commands run;
/// * of the files that are not kept, the paths of those that cannot be put back by themselves.
#[test]
#[ignore = "it needs a repository of another project: eval/classify.sh"]
fn commits_of_another_project_are_classified() {
    let variable =
        |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("${name} is not set"));
    let repo = Repo::open(Path::new(&variable("CLASSIFY_REPOSITORY"))).expect("a repository");
    let revisions = std::fs::read_to_string(variable("CLASSIFY_REVISIONS")).expect("revisions");
    let mut lines = String::new();
    for revision in revisions.lines() {
        let commit = repo.resolve_commit(revision).expect("a commit");
        let found = repo.commit(&commit).expect("a commit");
        let Some(base) = found.parents.first() else { continue };
        let Ok(changes) = diff::since(&repo, base, &found.tree).changes() else { continue };
        let files: Vec<ChangedFile> = changes.iter().map(|c| changed_file(&repo, c)).collect();
        let oracle = detect(&repo, base).unwrap_or_default().commands;
        let project = BaseProject::of(&repo, base, &oracle, &[]).expect("a base");
        let choices = Choices::of(&files, &project, BaseTests::Changed).expect("choices").all;
        let names = |is_meant: &dyn Fn(&PutBack) -> bool| -> Vec<String> {
            let meant = choices.iter().filter(|(_, choice)| is_meant(choice));
            meant.map(|(path, _)| path.lossy()).collect()
        };
        let others = names(&|choice| *choice == PutBack::Other);
        let decides = names(&PutBack::decides);
        let inseparable = names(&|choice| matches!(choice, PutBack::Inseparable(_)));
        let kind = match () {
            () if choices.is_empty() => "once",
            () if choices.values().all(PutBack::is_added_test) => "if-first",
            () => "twice",
        };
        let tests = files.iter().filter(|file| is_test_path(&file.path.lossy())).count();
        let lists = [others, decides, inseparable].map(|paths| paths.join(" "));
        let _ = writeln!(
            lines,
            "{revision}\t{}\t{tests}\t{kind}\t{}\t{}",
            files.len(),
            choices.len(),
            lists.join("\t")
        );
    }
    std::fs::write(variable("CLASSIFY_LINES"), lines).expect("the lines are written");
}
