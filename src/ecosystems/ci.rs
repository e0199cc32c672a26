//! Continuous integration services, Task (taskfile.dev), git hooks, and the settings of git and of
//! git-frites itself.
use crate::ecosystems::ecosystem::Ecosystem;

/// Files that decide what is run in any project, whatever its language.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    decisive_files: ".github/workflows/ .github/actions/ .circleci/ .buildkite/ Jenkinsfile
        Taskfile.* taskfile.* .gitlab-ci.yml .travis.yml azure-pipelines.yml
        .pre-commit-config.yaml .gitattributes .frites.toml",
    ..Ecosystem::NOTHING
};
