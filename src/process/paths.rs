//! Writes paths to JSON and reads them, for `#[serde(with)]`. JSON is UTF-8, but a path need not
//! be. So bytes that are not UTF-8 are escaped (`\xff`). Some other characters, such as backslashes
//! and control characters, are escaped, too.
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use bstr::{ByteSlice, ByteVec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path, or a list of paths.
pub trait Paths: Sized {
    /// The path or the list as text.
    type Text: Serialize + DeserializeOwned;

    /// Escapes the paths.
    fn to_text(&self) -> Self::Text;

    /// Undoes [`Paths::to_text`].
    fn from_text(text: Self::Text) -> Self;
}

impl Paths for PathBuf {
    type Text = String;

    fn to_text(&self) -> String {
        self.as_os_str().as_bytes().escape_bytes().to_string()
    }

    fn from_text(text: String) -> PathBuf {
        OsString::from_vec(Vec::unescape_bytes(text)).into()
    }
}

impl<P: Paths> Paths for Vec<P> {
    type Text = Vec<P::Text>;

    fn to_text(&self) -> Vec<P::Text> {
        self.iter().map(P::to_text).collect()
    }

    fn from_text(text: Vec<P::Text>) -> Vec<P> {
        text.into_iter().map(P::from_text).collect()
    }
}

/// Writes paths as text. Fails if the serializer does.
pub fn serialize<P: Paths, S: Serializer>(paths: &P, to: S) -> Result<S::Ok, S::Error> {
    paths.to_text().serialize(to)
}

/// Reads paths that [`serialize`] wrote. Fails if the data have another form.
pub fn deserialize<'de, P: Paths, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    P::Text::deserialize(from).map(P::from_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_the_same_after_it_was_text() {
        for bytes in [
            &b"/a b/\xc3\xa9"[..],
            b"/\xff/\xc3",
            b"/\\xff\\",
            b"/two\nlines\t\x01\"\xef\xbf\xbd",
            b"",
        ] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            assert_eq!(PathBuf::from_text(path.to_text()), path);
        }
        assert_eq!(PathBuf::from("/a/é").to_text(), "/a/é");
    }
}
