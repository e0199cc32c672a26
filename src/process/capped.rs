//! Writes and reads the logs of commands. A log has only the head and the tail of the output. So it
//! cannot fill the disk.
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::IfExists;
use crate::fs::regular;
use crate::model::agent_output::{self, LEFT_OUT};
use crate::model::plain;

/// The largest size of the head, and of the tail, in bytes.
const PART: u64 = 4 << 20;

/// A log file that is being written. The output is not kept in memory.
///
/// The head is written to the log file itself, and later output to the file [`tail`] beside it.
/// When that file has `part` bytes, it is renamed to [`older`], and a new one begins. So the last
/// `part` bytes of the output are always in [`tail`] and [`older`].
pub struct Capped {
    /// The file that is written now: the log file, or [`tail`].
    file: File,
    path: PathBuf,
    part: u64,
    total: u64,
    /// The first error, if output could not be stored.
    stored: io::Result<()>,
}

impl Capped {
    /// Makes an empty log.
    pub fn create(path: &Path) -> io::Result<Capped> {
        Capped::with_part(path, PART)
    }

    fn with_part(path: &Path, part: u64) -> io::Result<Capped> {
        for beside in [tail(path), older(path)] {
            let _ = fs::remove_file(beside); // from a supervisor that was killed
        }
        let file = regular::create_own(path)?;
        Ok(Capped { file, path: path.to_owned(), part, total: 0, stored: Ok(()) })
    }

    /// Appends output. If that fails, [`Capped::finish`] returns the error.
    pub fn write(&mut self, bytes: &[u8]) {
        let written = self.append(bytes);
        if self.stored.is_ok() {
            self.stored = written;
        }
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
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

    /// Appends the tail to the head. If bytes between them are left out, a line says how many.
    pub fn finish(self) -> io::Result<()> {
        let joined = self.join();
        self.stored.and(joined)
    }

    fn join(&self) -> io::Result<()> {
        if self.total <= self.part {
            return Ok(());
        }
        let mut log = regular::open_own_to_write(&self.path, true)?;
        if let Some(lost) = self.total.checked_sub(2 * self.part).filter(|lost| *lost > 0) {
            write!(log, "\n{LEFT_OUT}{lost} bytes are left out here]\n")?;
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

/// Reads a log from its beginning, while it is being written or later.
pub struct Follower {
    log: PathBuf,
    part: u64,
    /// The file that is read now; `None` before the log exists.
    file: Option<File>,
    /// The number of bytes that were read from `file`.
    read: u64,
}

impl Follower {
    /// A reader at the beginning of a log, which need not exist yet.
    pub fn new(log: &Path) -> Follower {
        Follower { log: log.to_owned(), part: PART, file: None, read: 0 }
    }

    /// Reads the output since the last call. If the log no longer has all of that output, a line
    /// says that output is left out.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let file = match &mut self.file {
                Some(file) => file,
                None => match regular::open_own(&self.log).if_exists()? {
                    Some(file) => self.file.insert(file),
                    None => return Ok(bytes),
                },
            };
            self.read += file.read_to_end(&mut bytes)? as u64;
            // If `part` bytes of the file were read, the output goes on in a new file. The
            // exception is a finished log, to whose file the rest was appended.
            let is_whole = self.read > 0 && self.read.is_multiple_of(self.part);
            match regular::open_own(&tail(&self.log)) {
                Ok(next) if is_whole && inode(&next)? != inode(file)? => {
                    let before = regular::open_own(&older(&self.log)).ok();
                    let is_next = match &before {
                        Some(before) => inode(before)? == inode(file)?,
                        None => true,
                    };
                    if !is_next {
                        bytes.extend_from_slice(
                            format!("\n{LEFT_OUT}output is left out here]\n").as_bytes(),
                        );
                    }
                    (self.file, self.read) = (Some(next), 0);
                }
                _ => return Ok(bytes),
            }
        }
    }
}

fn inode(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.ino())
}

fn beside(log: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(log);
    name.push(ending);
    name.into()
}

/// The file with the newest output after the head.
fn tail(log: &Path) -> PathBuf {
    beside(log, ".tail")
}

/// The file with the output before [`tail`].
fn older(log: &Path) -> PathBuf {
    beside(log, ".older")
}

/// The last lines of a log that are not empty, at most `count`, each as [`plain::line`] shows it.
/// The log may still be written. Returns no lines if the log cannot be read.
pub fn last_lines(log: &Path, count: usize) -> Vec<String> {
    let Ok(end) = end_of(log, (count as u64).saturating_mul(4096)) else { return Vec::new() };
    last_of(String::from_utf8_lossy(&end).rsplit('\n'), count)
}

/// The last `count` lines that are not empty, as [`plain::line`] shows them. `reverse` has the
/// lines from the last to the first. The result has them in the order of the text.
fn last_of<'t>(reverse: impl Iterator<Item = &'t str>, count: usize) -> Vec<String> {
    let lines = reverse.map(|line| plain::line(line).trim_end().to_owned());
    let mut last: Vec<String> = lines.filter(|line| !line.is_empty()).take(count).collect();
    last.reverse();
    last
}

/// The lines of a log from the first one for which `is_first` returns true: at most `count` lines
/// that are not empty, as [`plain::line`] shows them. The log must be complete.
pub fn lines_from(log: &Path, is_first: fn(&str) -> bool, count: usize) -> Vec<String> {
    let text = whole_log(log);
    let lines = text.lines().map(|line| plain::line(line).trim_end().to_owned());
    let from_first = lines.skip_while(|line| !is_first(line));
    from_first.filter(|line| !line.is_empty()).take(count).collect()
}

/// Does the same as [`last_lines`] for the log of an attempt's command. If the command prints JSON,
/// returns the words in the JSON.
pub fn last_words(log: &Path, count: usize) -> Vec<String> {
    words_within(log, count, 1 << 20)
}

/// The last line of [`last_words`]. It is called often while the log is written, so it reads fewer
/// bytes.
pub(super) fn last_word_line(log: &Path) -> Option<String> {
    words_within(log, 1, 64 << 10).pop()
}

/// Does the same as [`last_words`], but reads only this many bytes at the end of the log.
fn words_within(log: &Path, count: usize, bytes: u64) -> Vec<String> {
    let Ok(end) = end_of(log, bytes) else { return Vec::new() };
    let text = String::from_utf8_lossy(&end);
    // The first line may be incomplete, because its beginning was not read.
    let is_cut = end.len() as u64 == bytes;
    let whole = if is_cut { text.split_once('\n') } else { None };
    let lines = agent_output::readable(whole.map_or(text.as_ref(), |(_, rest)| rest));
    last_of(lines.iter().rev().map(String::as_str), count)
}

/// The whole text of a complete log. Empty if the log cannot be read. A log has at most two parts
/// and a line. So bytes beyond three parts are not from git-frites, and are not read.
pub fn whole_log(log: &Path) -> String {
    let mut bytes = Vec::new();
    let read = regular::open_own(log).and_then(|file| file.take(3 * PART).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

/// The last `bytes` bytes of a log, or fewer if the log or its newest file is shorter.
fn end_of(log: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = regular::open_own(&tail(log)).or_else(|_| regular::open_own(log))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut end = Vec::new();
    file.take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a log with parts of 8 bytes after these writes.
    fn logged(writes: &[&str]) -> String {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        let mut log = Capped::with_part(&path, 8).expect("a log");
        for text in writes {
            log.write(text.as_bytes());
        }
        log.finish().expect("in order");
        fs::read_to_string(path).expect("UTF-8")
    }

    #[test]
    fn the_last_line_is_what_a_terminal_would_show() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        let last_line = |path: &Path| last_lines(path, 1).pop();
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
        fs::write(&path, "1\n10%\r20%\n\n  3\n").expect("written");
        assert_eq!(last_lines(&path, 2), ["20%", "  3"]);
        assert_eq!(last_lines(&path, 9), ["1", "20%", "  3"]);
        let mut log = Capped::with_part(&path, 8).expect("a log");
        log.write(b"0123456789\nlast");
        assert_eq!(last_line(&path).as_deref(), Some("last"), "it is in the tail");
    }

    #[test]
    fn a_follower_reads_everything_while_it_is_written() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        let mut follower = Follower { part: 8, ..Follower::new(&path) };
        assert_eq!(follower.read().expect("nothing yet"), b"");
        let mut log = Capped::with_part(&path, 8).expect("a log");
        let mut seen = Vec::new();
        let mut written = Vec::new();
        for byte in b"0123456789abcdefghijklmnopqrstuvwxyz" {
            log.write(&[*byte]);
            written.push(*byte);
            seen.extend(follower.read().expect("read"));
            assert_eq!(seen, written);
        }
        log.finish().expect("in order");
        assert_eq!(follower.read().expect("read"), b"");
        let mut late = Follower { part: 8, ..Follower::new(&path) };
        assert_eq!(late.read().expect("read"), fs::read(&path).expect("the log"));
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
