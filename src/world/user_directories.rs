//! The user's directories to which commands write, apart from their checkout. They are the home
//! directory, and the directories in which tools keep downloads, caches and settings.
//!
//! This is the only table of these directories. A sealed world and the world of an attempt lay
//! overlays over the directories that exist. If commands are confined by Landlock, environment
//! variables make tools use other directories.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fs::tree::{is_empty, nearest_real};
use crate::process::world_spec::Mount;

/// A directory of a tool that an environment variable can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserDirectory {
    /// The environment variable that moves the directory.
    pub variable: &'static str,
    /// The option of the variable whose value is the path of the directory. `None` if the variable
    /// has no options: it is a path, or a list of paths separated by colons.
    pub option: Option<&'static str>,
    /// The path of the directory below the home directory if the variable is not set.
    pub default: &'static str,
    /// True if an empty directory can replace this one: the tool often writes to it, and can make
    /// its files again. False if the tool mostly reads the directory, or keeps programs, settings
    /// or logins in it.
    pub is_cache: bool,
}

/// The option that moves Maven's local repository. No variable moves only this directory.
const MAVEN_REPOSITORY: &str = "-Dmaven.repo.local=";

/// The directories of tools that environment variables can move, each as `VARIABLE=DEFAULT`. An
/// empty directory cannot replace one of these. The home directory itself is not in the list. The
/// first four are from the XDG Base Directory Specification. Directories of one language are beside
/// each other.
const KEPT: &str = "
    XDG_CACHE_HOME=.cache XDG_CONFIG_HOME=.config XDG_DATA_HOME=.local/share
    XDG_STATE_HOME=.local/state CARGO_HOME=.cargo RUSTUP_HOME=.rustup GOPATH=go
    GOMODCACHE=go/pkg/mod GRADLE_USER_HOME=.gradle COURSIER_CACHE=.cache/coursier/v1
    PNPM_HOME=.local/share/pnpm YARN_GLOBAL_FOLDER=.yarn/berry BUN_INSTALL=.bun
    DENO_DIR=.cache/deno NVM_DIR=.nvm PLAYWRIGHT_BROWSERS_PATH=.cache/ms-playwright
    PYTHONUSERBASE=.local PYENV_ROOT=.pyenv UV_PYTHON_INSTALL_DIR=.local/share/uv/python
    UV_TOOL_DIR=.local/share/uv/tools PRE_COMMIT_HOME=.cache/pre-commit HF_HOME=.cache/huggingface
    GEM_HOME=.gem BUNDLE_USER_HOME=.bundle BUNDLE_PATH=.bundle BUNDLE_APP_CONFIG=.bundle
    COMPOSER_HOME=.config/composer DOTNET_CLI_HOME=.dotnet NUGET_PACKAGES=.nuget/packages
    MIX_HOME=.mix HEX_HOME=.hex STACK_ROOT=.stack CABAL_DIR=.cabal OPAMROOT=.opam
    CONAN_HOME=.conan2 PUB_CACHE=.pub-cache JULIA_DEPOT_PATH=.julia ASDF_DATA_DIR=.asdf
    MISE_DATA_DIR=.local/share/mise";

/// The directories of tools that are caches, in the form of [`KEPT`].
const CACHES: &str = "
    SCCACHE_DIR=.cache/sccache GOCACHE=.cache/go-build MAVEN_OPTS=.m2/repository
    MAVEN_ARGS=.m2/repository npm_config_cache=.npm NPM_CONFIG_CACHE=.npm
    npm_config_store_dir=.local/share/pnpm/store NPM_CONFIG_STORE_DIR=.local/share/pnpm/store
    YARN_CACHE_FOLDER=.cache/yarn BUN_INSTALL_CACHE_DIR=.bun/install/cache
    PIP_CACHE_DIR=.cache/pip UV_CACHE_DIR=.cache/uv POETRY_CACHE_DIR=.cache/pypoetry
    PIPENV_CACHE_DIR=.cache/pipenv COMPOSER_CACHE_DIR=.cache/composer CCACHE_DIR=.cache/ccache
    ZIG_GLOBAL_CACHE_DIR=.cache/zig";

/// The directories of tools that environment variables can move.
pub fn user_directories() -> impl Iterator<Item = UserDirectory> {
    [(KEPT, false), (CACHES, true)].into_iter().flat_map(|(list, is_cache)| {
        list.split_whitespace().filter_map(move |entry| {
            let (variable, default) = entry.split_once('=')?;
            let option = variable.starts_with("MAVEN_").then_some(MAVEN_REPOSITORY);
            Some(UserDirectory { variable, option, default, is_cache })
        })
    })
}

impl UserDirectory {
    /// The absolute paths in the variable; empty if the variable is not set.
    pub fn named(&self) -> Vec<PathBuf> {
        let value = std::env::var_os(self.variable).unwrap_or_default();
        self.named_in(&value)
    }

    fn named_in(&self, value: &OsStr) -> Vec<PathBuf> {
        let paths: Vec<&[u8]> = match self.option {
            None => value.as_bytes().split(|byte| *byte == b':').collect(),
            Some(option) => {
                let words = value.as_bytes().split(u8::is_ascii_whitespace);
                words.filter_map(|word| word.strip_prefix(option.as_bytes())).collect()
            }
        };
        let paths = paths.into_iter().map(|path| PathBuf::from(OsStr::from_bytes(path)));
        paths.filter(|path| path.is_absolute()).collect()
    }

    /// The value for the variable that makes the tool use `dir`. Options in the current value are
    /// kept: a tool uses the last option that names the directory.
    pub fn leading_to(&self, dir: &Path) -> OsString {
        let value = std::env::var_os(self.variable).unwrap_or_default();
        self.leading_from(value, dir)
    }

    fn leading_from(&self, value: OsString, dir: &Path) -> OsString {
        let Some(option) = self.option else { return dir.as_os_str().to_owned() };
        let mut words = value.into_vec();
        if !words.is_empty() {
            words.push(b' ');
        }
        words.extend([option.as_bytes(), dir.as_os_str().as_bytes()].concat());
        OsString::from_vec(words)
    }
}

/// The path in an environment variable; `None` if it is not set, or not absolute.
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The real path of the user's home directory; `None` if there is no such directory.
pub fn user_home() -> Option<PathBuf> {
    variable("HOME").map(|path| nearest_real(&path)).filter(|path| path.is_dir())
}

/// A configured path in which `~` is replaced by the home directory; `None` if there is no home
/// directory, or if the path begins with the home of another user.
pub fn with_home(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        None => Some(path.into()),
        Some("") => Some(home?.to_owned()),
        Some(rest) => Some(home?.join(rest.strip_prefix('/')?.trim_start_matches('/'))),
    }
}

/// The existing directories of the user to which commands write, apart from their checkout. They
/// are the home directories in HOME and in the password file, and the directories of tools. The
/// paths are real, and no directory lies below another one.
pub fn written_by_commands() -> Vec<PathBuf> {
    let homes = variable("HOME").into_iter().chain(home_of_password_file());
    let named = user_directories().flat_map(|directory| directory.named());
    let found = homes.chain(named).map(|path| nearest_real(&path));
    without_inner(found.filter(|path| path.is_dir() && path.parent().is_some()).collect())
}

/// The home directory of this user in the password file. Some programs ignore HOME and use this
/// directory.
fn home_of_password_file() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??;
    Some(user.dir).filter(|path| path.is_absolute())
}

/// Sorts the paths, and removes those that are below another one.
fn without_inner(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    // In the sorted list, all paths below a path come directly after it.
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

/// The mounts that lay an overlay over each of these directories. Writes of commands go to the
/// upper layers in `room`, which [`make_room`] has made. Below them are the layers of earlier
/// commands, from the rooms in `left`, the topmost first. The lowest layer is the user's own
/// directory.
///
/// If the system refuses an overlay, the directory becomes read-only, unless it contains HOME.
pub fn overlays(directories: &[PathBuf], room: &Path, left: &[PathBuf]) -> Vec<Mount> {
    let home = user_home();
    let overlay = |at: &PathBuf| {
        let name = name_in_room(at);
        let left = left.iter().map(|room| room.join(&name));
        // Empty layers are left out. Each lower layer takes time, and the lowest one may need its
        // own overlay.
        let left = left.filter(|layer| layer.is_dir() && !is_empty(layer));
        let lower = left.chain([at.clone()]).collect();
        let upper = room.join(&name);
        let work = work_of(room).join(&name);
        let is_optional = !home.as_ref().is_some_and(|home| home.starts_with(at));
        Mount::Overlay { at: at.clone(), lower, upper, work, is_optional }
    };
    directories.iter().map(overlay).collect()
}

/// Makes the upper layers for overlays over these directories in `room`. Existing layers stay as
/// they are. Fails if a layer cannot be made, or if the mode of a directory cannot be read.
pub fn make_room(directories: &[PathBuf], room: &Path) -> io::Result<()> {
    fs::create_dir_all(room)?;
    for at in directories {
        let name = name_in_room(at);
        let upper = room.join(&name);
        fs::create_dir_all(work_of(room).join(&name))?;
        if !upper.is_dir() {
            fs::create_dir(&upper)?;
            // In the overlay, the directory has the mode of the upper layer.
            let mode = fs::metadata(at)?.permissions().mode() & 0o7777;
            fs::set_permissions(&upper, fs::Permissions::from_mode(mode | 0o700))?;
        }
    }
    Ok(())
}

/// The directory with the work directories that overlayfs needs for the layers of a room.
pub fn work_of(room: &Path) -> PathBuf {
    room.with_extension("work")
}

/// The name of a directory's layer in a room. It has the last part of the directory's path, for
/// people. It also has a digest of the path, because several directories may have the same last
/// part.
fn name_in_room(directory: &Path) -> OsString {
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{}", data_encoding::HEXLOWER.encode(&digest[..4])));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(variable: &str) -> UserDirectory {
        let found = user_directories().find(|directory| directory.variable == variable);
        found.expect("the table has it")
    }

    #[test]
    fn no_variable_is_in_the_table_twice() {
        let mut names: Vec<&str> = user_directories().map(|one| one.variable).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_variable_names_one_path_or_a_list_or_has_it_in_an_option() {
        let named = |variable: &str, value: &str| directory(variable).named_in(OsStr::new(value));
        assert_eq!(named("CARGO_HOME", "/usr/local/cargo"), [Path::new("/usr/local/cargo")]);
        assert_eq!(named("GOPATH", "/go:relative:/more"), [Path::new("/go"), Path::new("/more")]);
        assert_eq!(named("MAVEN_OPTS", "-Xmx1g -Dmaven.repo.local=/m2 -B"), [Path::new("/m2")]);
        assert!(named("MAVEN_OPTS", "-Xmx1g /m2").is_empty());
        assert!(named("CARGO_HOME", "").is_empty());
    }

    #[test]
    fn a_variable_leads_to_another_directory_and_keeps_its_options() {
        let leading = |variable: &str, value: &str| {
            directory(variable).leading_from(value.into(), Path::new("/own"))
        };
        assert_eq!(leading("GOCACHE", "/old"), "/own");
        assert_eq!(leading("MAVEN_OPTS", ""), "-Dmaven.repo.local=/own");
        assert_eq!(leading("MAVEN_OPTS", "-Xmx1g"), "-Xmx1g -Dmaven.repo.local=/own");
    }

    #[test]
    fn paths_below_others_are_left_out() {
        let paths = ["/home/a/.cargo", "/home/a", "/home/a-b", "/go", "/home/a"];
        let found = without_inner(paths.iter().map(PathBuf::from).collect());
        assert_eq!(found, ["/go", "/home/a", "/home/a-b"].map(Path::new));
    }
}
