//! A terminal that a test can type into: util-linux' `script` makes it.
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{World, poll};

/// A program on a terminal of its own.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    /// Where the program says what it was told to, for [`Terminal::dump`].
    pub file: PathBuf,
}

impl Terminal {
    /// Starts a shell line on a terminal in the user's checkout. `DUMP` names [`Terminal::file`].
    pub fn start(world: &World, line: &str) -> Terminal {
        let file = world.home().join("dump");
        let mut command = world.command(&world.repo, "script", ["-qec", line, "/dev/null"]);
        command
            .env("DUMP", &file)
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut chunk) {
                seen.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        });
        Terminal { child, keys, shown, file }
    }

    /// All that was shown so far.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// What a terminal of this size shows now, line by line, without blanks at the ends.
    pub fn lines(&self, rows: u16, columns: u16) -> Vec<String> {
        let size = |n: u16| NonZero::new(n).unwrap();
        let mut screen = vt100::Parser::new(size(rows), size(columns), 0);
        screen.process(&self.shown.lock().unwrap());
        screen.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until a terminal of this size shows what is wanted; gives its lines.
    #[track_caller]
    pub fn wait_for_lines(
        &self,
        (rows, columns): (u16, u16),
        wanted: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        poll(|| {
            lines = self.lines(rows, columns);
            wanted(&lines)
        });
        lines
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until something is shown.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        poll(|| self.screen().contains(text));
    }

    /// Presses keys, the last of which make the program write a line to [`Terminal::file`]; gives
    /// that line.
    #[track_caller]
    pub fn dump(&mut self, keys: &str) -> String {
        let _ = std::fs::remove_file(&self.file);
        self.press(keys);
        let mut text = String::new();
        poll(|| {
            text = std::fs::read_to_string(&self.file).unwrap_or_default();
            text.ends_with('\n')
        });
        text.trim_end_matches('\n').to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the terminal showed: {:?}", self.screen());
        }
        // `script` hands the end of its input on as the end of the terminal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
