//! The event log: one JSON object a line, appended with one write, after the thing has happened.
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::error::{IoContext, Result};
use crate::fs::regular;
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
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).context(failed)?;
    }
    let mut log =
        OpenOptions::new().create(true).append(true).read(true).open(file).context(failed)?;
    if !log.metadata().context(failed)?.is_file() {
        // What is written into a pipe is gone.
        return Err(io::Error::from(io::ErrorKind::InvalidData)).context(failed);
    }
    let mut line = format!("{}\n", Value::Object(object));
    if ends_mid_line(&mut log).context(failed)? {
        // Somebody was killed, or the disk was full: keep the torn line to itself.
        line.insert(0, '\n');
    }
    log.write_all(line.as_bytes()).context(failed)
}

/// Reads all events, oldest first. Lines that are no objects (a torn one) are left out.
pub fn read(file: &Path) -> Result<Vec<Map<String, Value>>> {
    let bytes = match regular::read(file) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 8, 4, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(Value::from)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_event_reads_back_whatever_lies_before_it(
            garbage in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'[')], 0..40),
            details in prop::collection::btree_map("[a-z\n\u{1b}]{1,4}_", value(), 0..4),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let log = directory.path().join("events.jsonl");
            fs::write(&log, &garbage).expect("a file");
            let run: Name = "fix".parse().expect("a name");
            let details: Map<String, Value> = details.into_iter().collect();
            for event in ["one", "two"] {
                append(&log, event, &run, Value::Object(details.clone())).expect("appended");
            }
            let read = read(&log).expect("readable");
            let [.., one, two] = read.as_slice() else { panic!("both are there") };
            for (event, word) in [(one, "one"), (two, "two")] {
                prop_assert_eq!((&event["event"], &event["run"]), (&json!(word), &json!("fix")));
                prop_assert!(details.iter().all(|(key, value)| event[key] == *value));
            }
            prop_assert!(fs::read(&log).expect("readable").starts_with(&garbage), "nothing is written over");
        }
    }
}
