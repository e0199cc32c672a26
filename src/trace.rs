//! Tracing, for finding faults. It is switched on by `FRITES_LOG`, `FRITES_LOG_FILE`, `-v`, and
//! git's own `GIT_TRACE*`.
//!
//! Events go to a file, or to standard error through [`Ui`], above the progress lines. Standard
//! output never changes. If tracing is not switched on, the process has no subscriber, and an event
//! costs almost nothing.
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::error::{Error, IoContext, Result};
use crate::git::{cli, trace_file};
use crate::process::environment::{LOG, LOG_FILE};
use crate::ui::Ui;

/// Starts tracing if the environment or `-v` asks for it. Fails if `FRITES_LOG` is not a valid
/// filter, or if the file that `FRITES_LOG_FILE` names cannot be written.
pub fn start(verbose: bool, ui: &Ui) -> Result<()> {
    let file = std::env::var_os(LOG_FILE).filter(|path| !path.is_empty());
    let filter = std::env::var(LOG).ok().filter(|text| !text.is_empty());
    // If a log file is named, a log is wanted even without a filter.
    let filter = filter.or_else(|| file.is_some().then(|| "debug".to_owned()));
    let traces = trace_file::traces_to_stderr();
    if filter.is_none() && !verbose && !traces {
        return Ok(());
    }
    // A log on standard error shows git calls already, unless its filter says otherwise.
    let shows_calls = verbose && (filter.is_none() || file.is_some());
    let calls = shows_calls.then(|| bare_lines(ui, cli::CALLS, LevelFilter::DEBUG));
    let traces = traces.then(|| bare_lines(ui, trace_file::TRACES, LevelFilter::INFO));
    let log = match filter {
        Some(filter) => Some(log(&filter, file, ui)?),
        None => None,
    };
    tracing_subscriber::registry().with(log).with(calls).with(traces).init();
    Ok(())
}

/// The log: every event that the filter lets pass, with time, level, spans and target.
fn log<S>(filter: &str, file: Option<OsString>, ui: &Ui) -> Result<impl Layer<S> + use<S>>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let filter = filter
        .parse::<Targets>()
        .map_err(|e| {
            Error::usage(format!("{LOG} is not a valid filter: {e}"))
                .hint(format!("try `{LOG}=debug`, or `{LOG}=git_frites::git=debug`"))
        })?
        // git's own traces are not part of the log. If they are asked for, `start` prints them as
        // git writes them.
        .with_target(trace_file::TRACES, LevelFilter::OFF);
    let writer = match file {
        Some(path) => Destination::File(Arc::new(
            File::options()
                .create(true)
                .append(true)
                .open(&path)
                .context(|| format!("could not open '{}'", Path::new(&path).display()))?,
        )),
        None => Destination::Stderr(ui.clone()),
    };
    Ok(fmt::layer().with_ansi(false).with_writer(writer).with_filter(filter))
}

/// A layer that prints the events of one target to standard error: their messages and fields alone.
fn bare_lines<S>(ui: &Ui, target: &str, level: LevelFilter) -> impl Layer<S> + use<S>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fmt::layer()
        .with_ansi(false)
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_writer(Destination::Stderr(ui.clone()))
        .with_filter(Targets::new().with_target(target, level))
}

/// Where a layer writes its events. Each write is one event.
#[derive(Clone)]
enum Destination {
    Stderr(Ui),
    File(Arc<File>),
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Destination::Stderr(ui) => {
                ui.log(bytes);
                Ok(bytes.len())
            }
            Destination::File(file) => (&**file).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Destination {
    type Writer = Destination;

    fn make_writer(&self) -> Destination {
        self.clone()
    }
}
