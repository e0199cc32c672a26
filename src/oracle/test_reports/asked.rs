//! Asks pytest and gotestsum, by an environment variable, to write a JUnit file for git-frites.
//! This changes neither their exit codes nor their output, except that pytest prints one more line,
//! which is removed from the log.
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::fs::{atomic, regular, scratch};
use crate::model::env;
use crate::model::oracle::CommandLine;
use crate::process::environment::Policy;
use crate::process::world_spec::{Confinement, Mount};

/// The name of the report in the command's directory for temporary files.
const NAME: &str = "git-frites-tests.xml";

/// A test runner that writes a JUnit file if an environment variable asks for one.
struct AskableRunner {
    programs: &'static [&'static str],
    variable: &'static str,
    /// The option before the path, if the variable contains options; `None` if the variable is the
    /// path alone.
    option: Option<&'static str>,
    /// The files that configure the runner.
    settings: &'static str,
}

const RUNNERS: [AskableRunner; 2] = [
    AskableRunner {
        programs: &["pytest", "py.test"],
        variable: "PYTEST_ADDOPTS",
        option: Some("--junitxml="),
        settings: "pytest.ini .pytest.ini pytest.toml .pytest.toml pyproject.toml tox.ini
            setup.cfg",
    },
    AskableRunner {
        programs: &["gotestsum"],
        variable: "GOTESTSUM_JUNITFILE",
        option: None,
        settings: "",
    },
];

/// The largest settings file of a runner that is read, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// A report that is requested from a test runner.
pub struct AskedReport {
    /// The path of the report file, as the command sees it.
    inside: PathBuf,
    /// The path of the report file, as git-frites sees it.
    pub file: PathBuf,
    /// The environment variable that requests the report.
    pub variable: (String, OsString),
    /// The directory of the file, which is made here if the command has no private directory for
    /// temporary files.
    _own: Option<TempDir>,
}

impl AskedReport {
    /// The report to request from the runner that the command starts. `None` unless the command
    /// names one of the known runners exactly once. Also `None` if the project has its own settings
    /// for a JUnit file. In that case, the command, the environment or the runner's settings in the
    /// checkout at `dir` mention JUnit.
    pub fn of(
        command: &CommandLine,
        dir: &Path,
        confinement: Option<&Confinement>,
        policy: &Policy,
    ) -> Option<AskedReport> {
        let runner = RUNNERS.iter().find(|runner| {
            let is_its = |word: &&String| runner.programs.contains(&word.as_str());
            command.words().iter().filter(is_its).count() == 1
        })?;
        let environment = policy.environment(&env::ALL, &[]);
        let before = environment.get(&OsString::from(runner.variable)).cloned().unwrap_or_default();
        let is_named = speaks_of_junit(command.to_string().as_bytes())
            || speaks_of_junit(before.as_encoded_bytes())
            || (runner.option.is_none() && !before.is_empty())
            || runner.settings.split_whitespace().any(|name| is_named_in(dir, name, confinement));
        if is_named {
            return None;
        }
        let (place, own) = match confinement {
            Some(Confinement::Landlock(restriction)) => {
                ((restriction.temporary.clone(), restriction.temporary.clone()), None)
            }
            Some(Confinement::Sealed(world)) => {
                let temporary = world.mounts.iter().find_map(|mount| match mount {
                    Mount::Directory { at, from } if at != dir => Some((at.clone(), from.clone())),
                    _ => None,
                });
                (temporary?, None)
            }
            None => {
                // If the directory cannot be made, no report is requested.
                let own = scratch::directory().ok()?;
                let own_path = own.path().to_owned();
                ((own_path.clone(), own_path), Some(own))
            }
        };
        let (inside, file) = (place.0.join(NAME), place.1.join(NAME));
        // pytest splits the variable as a shell would.
        let path = inside.to_str().filter(|path| !path.contains(char::is_whitespace))?;
        let mut value = before;
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(runner.option.unwrap_or_default());
        value.push(path);
        Some(AskedReport { inside, file, variable: (runner.variable.to_owned(), value), _own: own })
    }

    /// Removes from a log the line in which pytest names the report file.
    pub fn hide_in(&self, log: &Path) {
        let Ok(text) = regular::read_own(log) else { return };
        let named = format!("generated xml file: {}", self.inside.display());
        let is_named =
            |line: &&[u8]| line.windows(named.len()).any(|part| part == named.as_bytes());
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let (hidden, kept): (Vec<&[u8]>, Vec<&[u8]>) = lines.partition(is_named);
        if !hidden.is_empty() {
            // If this fails, the log keeps this line, which does no harm.
            let _ = atomic::write(log, &kept.concat());
        }
    }
}

fn speaks_of_junit(text: &[u8]) -> bool {
    text.windows(5).any(|part| part.eq_ignore_ascii_case(b"junit"))
}

/// True if a file in the root of the checkout mentions JUnit, cannot be read, or is too large to be
/// read.
fn is_named_in(dir: &Path, name: &str, confinement: Option<&Confinement>) -> bool {
    let Some(file) = find(dir, name, confinement) else { return false };
    let is_large = fs::symlink_metadata(&file).is_ok_and(|meta| meta.len() > LARGEST_SETTINGS);
    is_large || regular::read_own(&file).map_or(true, |text| speaks_of_junit(&text))
}

/// The real path of a file in the root of the checkout; `None` if commands do not see such a file.
fn find(dir: &Path, name: &str, confinement: Option<&Confinement>) -> Option<PathBuf> {
    let roots = match confinement {
        Some(Confinement::Sealed(world)) => world.mounts.iter().find_map(|mount| match mount {
            Mount::Directory { at, from } if at == dir => Some(vec![from.clone()]),
            Mount::Overlay { at, lower, upper, .. } if at == dir => {
                Some([std::slice::from_ref(upper), lower].concat())
            }
            _ => None,
        })?,
        _ => vec![dir.to_owned()],
    };
    let mut there = roots.iter().filter_map(|root| {
        let path = root.join(name);
        fs::symlink_metadata(&path).ok().map(|meta| (path, meta))
    });
    // If the topmost entry is a device (a whiteout), the file of the lower layers was deleted.
    let (path, meta) = there.next()?;
    (meta.is_file() || meta.is_symlink()).then_some(path)
}
