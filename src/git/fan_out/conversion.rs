//! Converts blobs to files, as the attributes of the paths say.
//!
//! Our worktrees are checked out without `core.autocrlf` and with native line ends. So only a few
//! attributes change a file. `eol=crlf` is applied here, because gix applies it as git does. Files
//! with a filter, an encoding or `ident` are left to git.
//!
//! The attributes of the paths come from `git check-attr`, because gix expands macros in another
//! order.
use gix::bstr::ByteSlice;
use gix::filter::plumbing::eol::{self, AttributesDigest, Configuration};
use gix::index::entry::Mode;

use crate::error::{Error, IoContext, Result};
use crate::fs::regular;
use crate::git::cli::{Git, nul_separated};
use crate::model::oid::Oid;
use crate::model::path::file_name;

/// The words of attributes that can change a checked-out file. An attributes file without any of
/// them changes nothing. Beside each word are the attributes whose values git is asked for. `crlf`
/// is a value of `eol`, and an old name of `text`.
const WORDS: [(&str, &[&str]); 4] = [
    ("crlf", &["eol", "text", "crlf"]),
    ("filter", &["filter"]),
    ("ident", &["ident"]),
    ("working-tree-encoding", &["working-tree-encoding"]),
];

/// If an attributes file has one of these values, git must write the files. For example,
/// `git check-attr` prints the same for `text=set` as for `text`.
const AMBIGUOUS: [&str; 3] = ["=set", "=unset", "=unspecified"];

/// How a blob becomes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The file has the bytes of the blob.
    Verbatim,
    /// Lines end in CRLF in the file.
    Crlf(AttributesDigest),
    /// git must convert it.
    ByGit,
}

impl Conversion {
    /// The conversions of the entries of `index`, which has all or some files of `all`. Empty if
    /// all are verbatim. The attributes are those of `commit`, and `all` has its attributes files.
    ///
    /// Fails if git may understand an attributes file in another way than this module.
    pub fn of_some(
        git: &Git,
        gix: &gix::Repository,
        all: &gix::index::State,
        index: &gix::index::State,
        commit: &Oid,
    ) -> Result<Vec<Conversion>> {
        let names = decisive_attributes(gix, all)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut paths = Vec::new();
        for entry in index.entries() {
            paths.extend_from_slice(entry.path(index));
            paths.push(0);
        }
        let call = git.call("check-attr").args(["-z", "--stdin", "--source", commit.as_str()]);
        let answer = call.args(&names).stdin(paths).bytes()?;
        // The answer has three fields for each path and attribute: the path, the attribute, and its
        // value.
        let values: Vec<&[u8]> = nul_separated(&answer).skip(2).step_by(3).collect();
        if values.len() != index.entries().len() * names.len() {
            return Err(Error::internal("git did not answer for every attribute"));
        }
        let value = |of_path: &[&[u8]], name: &str| -> String {
            let at = names.iter().position(|n| *n == name);
            let value = at.map_or(&b"unspecified"[..], |at| of_path[at]);
            value.to_str_lossy().into_owned()
        };
        let each = values.chunks(names.len());
        Ok(each.map(|of_path| Conversion::of(|name| value(of_path, name))).collect())
    }

    /// The conversion of a file; `value` returns the value of an attribute.
    fn of(value: impl Fn(&str) -> String) -> Conversion {
        let is_off = |name| matches!(value(name).as_str(), "unset" | "unspecified");
        if !(is_off("filter") && is_off("ident") && is_off("working-tree-encoding")) {
            return Conversion::ByGit;
        }
        if value("eol") != "crlf" {
            return Conversion::Verbatim;
        }
        // `crlf` is an old name of `text`. git ignores a value that it does not know.
        let text = [value("text"), value("crlf")]
            .into_iter()
            .find(|value| matches!(value.as_str(), "set" | "unset" | "auto" | "input"));
        match text.as_deref() {
            Some("unset") => Conversion::Verbatim,
            Some("auto") => Conversion::Crlf(AttributesDigest::TextAutoCrlf),
            _ => Conversion::Crlf(AttributesDigest::TextCrlf),
        }
    }

    /// The bytes of the file for a blob. A conversion by git is not done here: the caller leaves
    /// such a file to git. `buffer` is overwritten.
    pub fn apply<'a>(self, blob: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let Conversion::Crlf(digest) = self else { return Ok(blob) };
        let changed = eol::convert_to_worktree(blob, digest, buffer, Configuration::default());
        Ok(if changed.map_err(|e| unreadable(&e))? { buffer } else { blob })
    }
}

/// The attributes that may change a file. Each belongs to a word of [`WORDS`] that stands in an
/// attributes file. This can be a file of the tree, the user, the system or the repository.
fn decisive_attributes(
    gix: &gix::Repository,
    index: &gix::index::State,
) -> Result<Vec<&'static str>> {
    let mut texts = Vec::new();
    let mut outside = gix.attribute_global_paths().map_err(|e| unreadable(&e))?;
    outside.push(gix.common_dir().join("info/attributes"));
    for path in outside.iter().filter(|path| path.is_file()) {
        texts.push(regular::read(path).could_not("read", path)?);
    }
    let own = index.entries().iter().filter(|e| file_name(e.path(index)) == b".gitattributes");
    for entry in own {
        // git does not follow links when it reads attributes.
        if !matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) {
            return Err(Error::internal("a '.gitattributes' is not a regular file"));
        }
        texts.push(gix.find_blob(entry.id).map_err(|e| unreadable(&e))?.take_data());
    }
    let has = |word: &str| texts.iter().any(|text| text.find(word).is_some());
    let names: Vec<&str> =
        WORDS.iter().filter(|(word, _)| has(word)).flat_map(|(_, names)| *names).copied().collect();
    match AMBIGUOUS.into_iter().find(|value| !names.is_empty() && has(value)) {
        Some(value) => Err(Error::internal(format!("an attribute has the value '{value}'"))),
        None => Ok(names),
    }
}

fn unreadable(e: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("the attributes cannot be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crlf_is_converted_here_and_every_program_is_left_to_git() {
        let crlf = Conversion::Crlf(AttributesDigest::TextCrlf);
        let auto = Conversion::Crlf(AttributesDigest::TextAutoCrlf);
        for (attributes, expected) in [
            ("", Conversion::Verbatim),
            ("text=set eol=lf", Conversion::Verbatim),
            ("eol=crlf", crlf),
            ("text=set eol=crlf", crlf),
            ("text=auto eol=crlf", auto),
            ("text=unset eol=crlf", Conversion::Verbatim),
            ("text=unset crlf=set eol=crlf", Conversion::Verbatim),
            ("crlf=unset eol=crlf", Conversion::Verbatim),
            ("crlf=auto eol=crlf", auto),
            ("text=input eol=crlf", crlf),
            ("text=other crlf=auto eol=crlf", auto),
            ("filter=lfs", Conversion::ByGit),
            ("filter=unset ident=set", Conversion::ByGit),
            ("working-tree-encoding=UTF-16", Conversion::ByGit),
        ] {
            let value = |name: &str| {
                let set =
                    attributes.split(' ').find_map(|a| a.strip_prefix(name)?.strip_prefix('='));
                set.unwrap_or("unspecified").to_owned()
            };
            assert_eq!(Conversion::of(value), expected, "{attributes}");
        }
    }
}
