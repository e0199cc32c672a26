//! Removes credentials from the settings of npm (`.npmrc`), which pnpm and others also read.
//! Commands in a sealed world see only the remaining settings.
use std::path::Path;

use crate::fs::regular;

/// A setting whose name contains one of these words is a credential.
const SECRET_PARTS: [&str; 5] = ["auth", "password", "token", "secret", "otp"];

/// The names of further settings that belong to a login.
const OF_LOGINS: [&str; 6] = ["username", "email", "cert", "key", "certfile", "keyfile"];

/// The settings in a file, without credentials; empty if the file cannot be read.
pub fn shown_of(file: &Path) -> String {
    without_credentials(&regular::read_text(file).unwrap_or_default())
}

/// True if [`shown_of`] leaves anything out.
pub fn has_credentials(file: &Path) -> bool {
    regular::read_text(file).is_ok_and(|text| without_credentials(&text) != text)
}

fn without_credentials(text: &str) -> String {
    let shown = text.split_inclusive('\n').filter(|line| !is_credential(line));
    shown.map(without_logins_in_urls).collect()
}

/// True for a line that may show a credential:
/// * a setting whose name belongs to a credential or a login;
/// * a setting of one registry (`//host/:name`);
/// * a setting with a variable in its value, because the variable may contain a token;
/// * a comment.
fn is_credential(line: &str) -> bool {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        // Comments are left out, because a setting with its token may be commented out.
        return !line.is_empty();
    }
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim().trim_end_matches("[]").to_lowercase();
    let name = name.trim_matches(['"', '\'']);
    name.starts_with("//")
        || name.starts_with('_')
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || OF_LOGINS.contains(&name)
        || value.contains("${")
}

/// The line without user names and passwords in URLs (`https://user:password@host`).
fn without_logins_in_urls(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let ends = |c: char| c.is_whitespace() || "/?#\"'".contains(c);
        let host = &after[..after.find(ends).unwrap_or(after.len())];
        rest = host.rfind('@').map_or(after, |login| &after[login + 1..]);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_without_credentials() {
        let text = "registry=https://npm.example.com/\n\
                    @team:registry = https://me:secret@npm.example.com/team/\n\
                    //npm.example.com/:_authToken=npm_secret\n\
                    //npm.example.com/:certfile=/secret\n\
                    _auth=c2VjcmV0\n\
                    \"_password\" = secret\n\
                    always-auth=true\n\
                    email=secret@example.com\n\
                    username=secret\n\
                    key=\"secret\"\n\
                    ca[]=\"-----BEGIN CERTIFICATE-----\"\n\
                    cafile=/etc/ssl/x.pem\n\
                    strict-ssl=false\n\
                    # //npm.example.com/:_authToken=secret\n\
                    proxy=http://user:secret@proxy:8080\n\
                    https-proxy=http://a@b:secret@proxy:8080/?x\n\
                    //x/:_authToken=${SECRET}\n\
                    cache=${SECRET}/x\n\
                    save-exact\n\
                    store-dir=~/store";
        let shown = without_credentials(text);
        let expected = "registry=https://npm.example.com/\n\
                        @team:registry = https://npm.example.com/team/\n\
                        ca[]=\"-----BEGIN CERTIFICATE-----\"\n\
                        cafile=/etc/ssl/x.pem\n\
                        strict-ssl=false\n\
                        proxy=http://proxy:8080\n\
                        https-proxy=http://proxy:8080/?x\n\
                        save-exact\n\
                        store-dir=~/store";
        assert_eq!(shown, expected);
    }
}
