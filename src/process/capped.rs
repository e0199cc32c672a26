//! A log that cannot fill the disk: it keeps the head and the tail of what was written.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How much of the beginning is kept, and how much of the end: 8 MiB in all.
const PART: u64 = 4 << 20;

/// A log file being written. Memory does not grow with it: the tail is a ring in the file itself.
pub struct Capped {
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
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)?;
        Ok(Capped { file, path: path.to_owned(), part, total: 0 })
    }

    /// Takes more output.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // The head first; then round and round in the part behind it.
            let (at, room) = if self.total < self.part {
                (self.total, self.part - self.total)
            } else {
                let place = (self.total - self.part) % self.part;
                (self.part + place, self.part - place)
            };
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.file.seek(SeekFrom::Start(at))?;
            self.file.write_all(now)?;
            self.total += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Puts the ring in order, with a line that says how much is missing before it.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(lost) = self.total.checked_sub(2 * self.part).filter(|lost| *lost > 0) else { return Ok(()) };
        let oldest = self.part + lost % self.part;
        let ordered = self.path.with_extension("ordered");
        let mut out = File::create(&ordered)?;
        self.copy(&mut out, 0, self.part)?;
        write!(out, "\n[git-frites: {lost} bytes are left out here]\n")?;
        self.copy(&mut out, oldest, 2 * self.part - oldest)?;
        self.copy(&mut out, self.part, oldest - self.part)?;
        fs::rename(&ordered, &self.path)
    }

    fn copy(&mut self, out: &mut File, from: u64, len: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(from))?;
        io::copy(&mut (&self.file).take(len), out).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left in the log after these writes, with parts of 8 bytes.
    fn logged(writes: &[&str]) -> String {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("agent.log");
        let mut log = Capped::with_part(&path, 8).expect("a log");
        for text in writes {
            log.write(text.as_bytes()).expect("written");
        }
        log.finish().expect("in order");
        fs::read_to_string(path).expect("UTF-8")
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
