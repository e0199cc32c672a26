//! Copies the user's login for an attempt's agent, and writes tokens that the agent has refreshed
//! back to the user's login.
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use rustix::fs::{AtFlags, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::agents::{self, StateVariable};
use crate::error::IfExists;
use crate::fs::directory::{self, DIRECTORY};
use crate::fs::{atomic, regular};
use crate::ops::agent_state::users::UsersState;

/// A larger file is not a login.
const LARGEST: u64 = 1 << 20;

/// A longer string is not a token.
const LONGEST_TOKEN: usize = 64 << 10;

/// A copy of one of the user's login files, in a state directory of an attempt.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CopiedLogin {
    /// The environment variable that names the state directory.
    variable: String,
    /// The path of the copy in the state directory.
    path: String,
    /// The digest of the user's file at the time of the copy.
    digest: String,
}

/// The effect that settling a copy had.
pub(super) enum Settled {
    /// The user's login is unchanged, and the copy is gone.
    Kept,
    /// This file of the user now has new tokens, and the copy is gone.
    GivenBack(PathBuf),
    /// The copy has new tokens, which could not be put into the user's login. So the copy is still
    /// there.
    Left(io::Error),
}

/// The user's logins for one state directory, with their bytes.
pub(super) fn of_user(variable: &StateVariable, users: &UsersState) -> Vec<(CopiedLogin, Vec<u8>)> {
    let Some(known) = variable.known else { return Vec::new() };
    let logins = users.logins(known).into_iter().filter_map(|(file, path)| {
        let bytes = regular::read_at_most(regular::open(&file).ok()?, LARGEST).ok()?;
        let variable = variable.name.clone();
        let path = path.to_owned();
        Some((CopiedLogin { variable, path, digest: digest(&bytes) }, bytes))
    });
    logins.collect()
}

impl CopiedLogin {
    /// The path of the copy; `root` is the parent of the attempt's state directories.
    pub fn in_state(&self, root: &Path) -> PathBuf {
        root.join(&self.variable).join(&self.path)
    }

    /// True if both are copies at the same path.
    pub fn is_at_path_of(&self, other: &CopiedLogin) -> bool {
        (&self.variable, &self.path) == (&other.variable, &other.path)
    }

    /// Writes the copy. Does not follow links that an attempt may have left there.
    pub fn write(&self, root: &Path, bytes: &[u8]) -> io::Result<()> {
        let (above, name) = self.open_above(root)?;
        let mut file = regular::create_own_in(&above, name)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)
    }

    /// Removes the copy. If the agent has refreshed the tokens in the copy, first puts the new
    /// tokens into the user's login, because the service may no longer accept the old ones.
    pub fn settle(&self, root: &Path, users: &UsersState) -> io::Result<Settled> {
        let Some((above, name)) = self.open_above(root).if_exists()? else {
            return Ok(Settled::Kept);
        };
        let opened = regular::open_own_in(&above, name);
        let bytes = opened.and_then(|file| regular::read_at_most(file, LARGEST));
        let given = match bytes {
            Ok(bytes) if digest(&bytes) != self.digest => self.give_back(&bytes, users),
            // The copy is unchanged, it no longer exists (the agent has logged out), or it is not a
            // regular file.
            _ => Ok(None),
        };
        let settled = match given {
            Ok(given) => given.map_or(Settled::Kept, Settled::GivenBack),
            Err(e) => return Ok(Settled::Left(e)),
        };
        rustix::fs::unlinkat(&above, name, AtFlags::empty()).if_exists()?;
        Ok(settled)
    }

    fn open_above(&self, root: &Path) -> io::Result<(OwnedFd, &Path)> {
        let root = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
        let state = directory::open_or_make(&root, self.variable.as_str())?;
        let path = Path::new(&self.path);
        let mut above = state;
        for name in path.parent().into_iter().flatten() {
            above = directory::open_or_make(&above, name)?;
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((above, Path::new(name)))
    }

    /// Puts the tokens in `bytes` into the user's file, if that file has not changed since the copy
    /// was made. Returns the file's path, or `None` if no tokens were put into it.
    fn give_back(&self, bytes: &[u8], users: &UsersState) -> io::Result<Option<PathBuf>> {
        let Some((state, tokens)) = agents::tokens(&self.variable, &self.path) else {
            return Ok(None);
        };
        let mut files = users.logins(state).into_iter();
        let Some((file, _)) = files.find(|(_, path)| *path == self.path) else {
            return Ok(None);
        };
        let Some(real) = file.canonicalize().if_exists()? else {
            // The user has logged out.
            return Ok(None);
        };
        let directory = File::open(real.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        // If the lock is held, do not wait: another process may be writing tokens there, or an
        // attempt may hold the lock for ever on purpose.
        directory.try_lock()?;
        let (before, meta) = regular::read_with_metadata(&real)?;
        if digest(&before) != self.digest {
            return Ok(None);
        }
        let Some(after) = with_tokens(&before, bytes, tokens) else { return Ok(None) };
        atomic::replace(&real, &after, &meta)?;
        Ok(Some(file))
    }
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// The user's login with the tokens of `other`. `None` if the tokens are the same, or if `users` or
/// `other` is not JSON.
///
/// Takes nothing but tokens from `other`, because an attempt can write to `other`. Another value
/// could be harmful: for example, it could name a server from which the user's agent would get its
/// configuration.
fn with_tokens(users: &[u8], other: &[u8], tokens: &[&str]) -> Option<Vec<u8>> {
    let mut login: Value = serde_json::from_slice(users).ok()?;
    let other: Value = serde_json::from_slice(other).ok()?;
    let before = login.clone();
    take_tokens(&mut login, &other, tokens);
    (login != before).then(|| serde_json::to_vec_pretty(&login).ok())?
}

fn take_tokens(login: &mut Value, other: &Value, tokens: &[&str]) {
    match (login, other) {
        (Value::Object(login), Value::Object(other)) => {
            for (key, value) in login {
                match other.get(key) {
                    Some(new) if tokens.contains(&key.as_str()) && is_token(value, new) => {
                        *value = new.clone();
                    }
                    Some(new) => take_tokens(value, new, tokens),
                    None => {}
                }
            }
        }
        (Value::Array(login), Value::Array(other)) if login.len() == other.len() => {
            for (value, new) in login.iter_mut().zip(other) {
                take_tokens(value, new, tokens);
            }
        }
        _ => {}
    }
}

/// True if both values can be tokens (strings), or both can be times (numbers). False if the new
/// token is empty, because the agent has then logged out.
fn is_token(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::String(_), Value::String(new)) => {
            !new.is_empty()
                && new.len() <= LONGEST_TOKEN
                && new.bytes().all(|byte| byte.is_ascii_graphic())
        }
        (Value::Number(_), Value::Number(new)) => new.as_f64().is_some_and(|new| new > 0.0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: &[&str] = &["access", "refresh", "expires"];

    fn taken(users: &str, other: &str) -> Option<Value> {
        let bytes = with_tokens(users.as_bytes(), other.as_bytes(), TOKENS)?;
        serde_json::from_slice(&bytes).ok()
    }

    #[test]
    fn only_the_values_of_tokens_come_back() {
        let users = r#"{"a":{"type":"oauth","access":"1","refresh":"2","expires":3,"url":"mine"}}"#;
        let other = r#"{"a":{"type":"wellknown","access":"9","refresh":"8","expires":7,"url":"theirs","key":"LD_PRELOAD"},
            "https://evil":{"type":"wellknown","key":"PATH","token":"x"}}"#;
        let expected = serde_json::json!({
            "a": {"type": "oauth", "access": "9", "refresh": "8", "expires": 7, "url": "mine"}
        });
        assert_eq!(taken(users, other), Some(expected));
    }

    #[test]
    fn values_that_are_not_tokens_change_nothing() {
        let users = r#"{"a":{"access":"1","expires":3},"access":{"key":"mine"}}"#;
        for other in [
            "",
            "[]",
            "no JSON",
            users,
            r#"{"a":{"access":null,"expires":"soon"},"access":"x"}"#,
            r#"{"a":{"access":"","expires":0}}"#,
            r#"{"a":{"access":"x\ny"}}"#,
            r#"{"a":{"access":{"key":"x"}}}"#,
            r#"{"access":{"key":"theirs"}}"#,
        ] {
            assert_eq!(taken(users, other), None, "{other}");
        }
        assert_eq!(taken("no JSON", r#"{"access":"x"}"#), None);
    }
}
