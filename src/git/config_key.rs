//! Keys of git's configuration as text, even those that are not UTF-8.
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// In the text of a key, this character stands for the byte 0, and the next ones for the other
/// bytes. Unicode reserves these characters for private use.
const BYTES: u32 = 0x10_ff00;

/// The key of a setting as text. [`key_bytes`] makes the same bytes from it. git allows any bytes
/// in the name of a filter. A planted filter with such a name must be overridden, too.
pub fn key_text(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.contains(|c| byte_of(c).is_some()) => text.to_owned(),
        _ => {
            let chars = key.iter().map(|&byte| match byte.is_ascii() {
                true => char::from(byte),
                false => char::from_u32(BYTES + u32::from(byte)).unwrap_or_default(),
            });
            chars.collect()
        }
    }
}

/// The bytes of a key whose text is from [`key_text`].
pub fn key_bytes(key: &str) -> OsString {
    let mut bytes = Vec::new();
    for c in key.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

fn byte_of(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(BYTES)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_text_of_its_own_that_leads_back_to_it() {
        let keys = ["x", "é", "\u{10ffe9}", "\u{10ff}"].map(|name| name.as_bytes().to_vec());
        let mut texts = Vec::new();
        for key in keys.into_iter().chain([b"\xe9".to_vec(), b"\xf4\x8f\xbf".to_vec()]) {
            texts.push(key_text(&key));
            assert_eq!(key_bytes(&key_text(&key)).into_vec(), key);
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 6);
    }
}
