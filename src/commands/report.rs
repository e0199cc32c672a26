//! `git frites report`: writes a report of a run as an HTML page.
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::ValueHint;

use crate::commands::preflight;
use crate::complete;
use crate::error::{Error, Result, exit};
use crate::fs::atomic;
use crate::model::address::Address;
use crate::ops::report;
use crate::ops::session::Session;
use crate::process;
use crate::store::select::{Matching, Scope};
use crate::ui::report as page;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints the path of the file. It needs no network, and no script to be read. Nothing is captured \
or judged: it shows what `git frites status RUN` shows, and every change.\n\n\
Exit status: 0, whatever the verdict says."
)]
pub struct ReportArgs {
    /// Run to show  [default: the newest run]
    #[arg(value_name = "RUN", add = complete::address(Scope::Run))]
    pub address: Option<Address>,
    /// Write to this file; `-` is standard output  [default: .frites/runs/RUN/report.html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Show the page in your browser
    #[arg(long, conflicts_with = "markdown")]
    pub open: bool,
    /// Print the verdict as text for a pull request instead
    #[arg(long)]
    pub markdown: bool,
}

pub fn run(session: &Session, args: &ReportArgs) -> Result<u8> {
    let run = session.store.select(args.address.as_ref(), Scope::Run, Matching::Prefix)?.run;
    let is_stdout = args.output.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if is_stdout && args.open {
        return Err(Error::usage("--open needs a file, and -o - writes to standard output")
            .hint("leave `-o -` out"));
    }
    if !is_stdout {
        preflight::require_writable(session, "-o", args.output.as_deref())?;
    }
    let report = report::read(session, &run)?;
    let text = if args.markdown { page::markdown(&report) } else { page::html(&report) };
    if is_stdout || (args.markdown && args.output.is_none()) {
        session.ui.answer(text);
        return Ok(exit::OK);
    }
    let file = match &args.output {
        Some(file) => {
            preflight::write(session, "-o", file, text)?;
            file.clone()
        }
        None => {
            let file = session.store.run_dir(&run.run).report();
            atomic::write(&file, text.as_bytes())?;
            file
        }
    };
    session.ui.answer([file.as_os_str().as_bytes(), b"\n"].concat());
    if args.open && !process::show_in_browser(&file) {
        session.ui.warn("no browser could show the report");
        session.ui.hint("open the file yourself, or name a browser in BROWSER");
    }
    Ok(exit::OK)
}
