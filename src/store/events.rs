//! The event log: one JSON object a line, appended with one write, after the thing has happened.
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::error::{IoContext, Result};
use crate::model::name::Name;

/// Appends one event. Writers need no lock: a line is one `write` to a file opened for appending,
/// which no other writer can tear (GIT-FACTS, "Processes").
pub fn append(file: &Path, event: &str, run: &Name, details: Value) -> Result<()> {
    let mut object = Map::new();
    object.insert("version".into(), json!(crate::model::FORMAT));
    object.insert("time".into(), json!(jiff::Timestamp::now().to_string()));
    object.insert("event".into(), json!(event));
    object.insert("run".into(), json!(run));
    if let Value::Object(details) = details {
        object.extend(details);
    }
    let failed = || format!("could not write '{}'", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).context(failed)?;
    }
    let mut log = OpenOptions::new().create(true).append(true).read(true).open(file).context(failed)?;
    let mut line = format!("{}\n", Value::Object(object));
    if ends_mid_line(&mut log).context(failed)? {
        // Somebody was killed, or the disk was full: keep the torn line to itself.
        line.insert(0, '\n');
    }
    log.write_all(line.as_bytes()).context(failed)
}

/// Reads all events, oldest first. Lines that are no objects (a torn one) are left out.
pub fn read(file: &Path) -> Result<Vec<Map<String, Value>>> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).context(|| format!("could not read '{}'", file.display())),
    };
    Ok(bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn ends_mid_line(log: &mut fs::File) -> io::Result<bool> {
    if log.metadata()?.len() == 0 {
        return Ok(false);
    }
    log.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    log.read_exact(&mut last)?;
    Ok(last[0] != b'\n')
}
