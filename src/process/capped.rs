//! Logs that cannot fill the disk: they keep the head and the tail of the output.
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::fs::regular;

/// The size of the head and of the tail: 8 MiB in all.
const PART: u64 = 4 << 20;

/// A log file that is being written. Its size does not count in memory.
///
/// The file itself takes the head. Later output goes to a file beside it, which is renamed when it
/// is as long as a part: so the last part of the output is always in those two.
pub struct Capped {
    /// The file that is written now: the log, or the tail beside it.
    file: File,
    path: PathBuf,
    part: u64,
    total: u64,
}

impl Capped {
    /// Begins the log, empty.
    pub fn create(path: &Path) -> io::Result<Capped> {
        Capped::with_part(path, PART)
    }

    fn with_part(path: &Path, part: u64) -> io::Result<Capped> {
        for beside in [tail(path), older(path)] {
            let _ = fs::remove_file(beside); // of one that was killed
        }
        Ok(Capped { file: regular::create_own(path)?, path: path.to_owned(), part, total: 0 })
    }

    /// Appends output.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.total % self.part;
            if written == 0 && self.total > 0 {
                if self.total > self.part {
                    fs::rename(tail(&self.path), older(&self.path))?;
                }
                self.file = regular::create_own(&tail(&self.path))?;
            }
            let room = usize::try_from(self.part - written).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(bytes.len().min(room));
            self.file.write_all(now)?;
            self.total += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Appends the tail to the head, with a line between them that says how many bytes are left
    /// out.
    pub fn finish(self) -> io::Result<()> {
        if self.total <= self.part {
            return Ok(());
        }
        let mut log = regular::open_own_to_write(&self.path, true)?;
        if let Some(lost) = self.total.checked_sub(2 * self.part).filter(|lost| *lost > 0) {
            write!(log, "\n[git-frites: {lost} bytes are left out here]\n")?;
        }
        let newest = fs::metadata(tail(&self.path))?.len();
        if self.total > 2 * self.part {
            let mut file = regular::open_own(&older(&self.path))?;
            file.seek(SeekFrom::Start(newest))?;
            io::copy(&mut file, &mut log)?;
        }
        io::copy(&mut regular::open_own(&tail(&self.path))?, &mut log)?;
        let _ = fs::remove_file(older(&self.path));
        fs::remove_file(tail(&self.path))
    }
}

fn beside(log: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(log);
    name.push(ending);
    name.into()
}

/// The file for output after the head.
fn tail(log: &Path) -> PathBuf {
    beside(log, ".tail")
}

/// The part before [`tail`].
fn older(log: &Path) -> PathBuf {
    beside(log, ".older")
}

/// The last line of a log that is being written, other than empty ones; none without such a line.
///
/// The line is given as a terminal would show it: a carriage return begins the line again, and
/// colours and other control characters are left out.
pub fn last_line(log: &Path) -> Option<String> {
    const ENOUGH: u64 = 4096;
    let mut file = regular::open_own(&tail(log)).or_else(|_| regular::open_own(log)).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH))).ok()?;
    let mut end = Vec::new();
    file.take(ENOUGH).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end);
    let plain = |line: &str| {
        console::strip_ansi_codes(line).chars().filter(|c| !c.is_control()).collect::<String>()
    };
    text.rsplit(['\n', '\r'])
        .map(plain)
        .map(|line| line.trim().to_owned())
        .find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the log after these writes, with parts of 8 bytes.
    fn logged(writes: &[&str]) -> String {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        let mut log = Capped::with_part(&path, 8).expect("a log");
        for text in writes {
            log.write(text.as_bytes()).expect("written");
        }
        log.finish().expect("in order");
        fs::read_to_string(path).expect("UTF-8")
    }

    #[test]
    fn the_last_line_is_what_a_terminal_would_show() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        assert_eq!(last_line(&path), None);
        let cases = [
            ("", None),
            ("\n \n", None),
            ("one\ntwo\n\n", Some("two")),
            ("one\nhalf", Some("half")),
            ("10%\r20%\r", Some("20%")),
            ("\x1b[1;32mgreen\x1b[0m \u{7}\n\x1b[2K\n", Some("green")),
        ];
        for (text, expected) in cases {
            fs::write(&path, text).expect("written");
            assert_eq!(last_line(&path).as_deref(), expected, "{text:?}");
        }
        let mut log = Capped::with_part(&path, 8).expect("a log");
        log.write(b"0123456789\nlast").expect("written");
        assert_eq!(last_line(&path).as_deref(), Some("last"), "it is in the tail");
    }

    #[test]
    fn all_is_kept_up_to_the_cap_and_head_and_tail_beyond_it() {
        let digits = "0123456789abcdefghijklmnopqrstuvwxyz";
        for len in 0..=16 {
            assert_eq!(logged(&[&digits[..len]]), &digits[..len]);
        }
        for len in 17..digits.len() {
            let gap = format!("\n[git-frites: {} bytes are left out here]\n", len - 16);
            let expected = format!("{}{gap}{}", &digits[..8], &digits[len - 8..len]);
            assert_eq!(logged(&[&digits[..len]]), expected, "in one write of {len}");
            let singles: Vec<&str> = (0..len).map(|i| &digits[i..=i]).collect();
            assert_eq!(logged(&singles), expected, "byte by byte");
        }
    }
}
