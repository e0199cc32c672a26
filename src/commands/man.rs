//! `git frites man`: shows a manual page, even if it is not installed.
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use crate::complete::{self, Offers};
use crate::error::{Error, IoContext, Result, exit};
use crate::fs::scratch;
use crate::manual::{self, Page};
use crate::model::nearest::nearest;
use crate::process;

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Command, or `tutorial`  [default: the overview]
    #[arg(value_name = "PAGE", add = complete::by(offered))]
    pub page: Option<String>,
    /// Directory to write all pages to, instead of showing one
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    pub write: Option<PathBuf>,
}

const ELSEWHERE: &str = "write the pages to a directory with `git frites man --write DIR` and read them with another program";

/// Needs no repository. `cli` is the whole command line.
pub fn run(args: &ManArgs, cli: clap::Command) -> Result<u8> {
    let pages = manual::pages(cli);
    if let Some(directory) = &args.write {
        let failed = || format!("could not write to '{}'", directory.display());
        fs::create_dir_all(directory).context(failed)?;
        for page in &pages {
            fs::write(directory.join(page.file()), &page.roff).context(failed)?;
        }
        return Ok(exit::OK);
    }
    let page = find(&pages, args.page.as_deref().unwrap_or("git-frites"))?;
    if !process::on_path(OsStr::new("man")) {
        return Err(Error::fatal("'man' is not on PATH").hint(ELSEWHERE));
    }
    let failed = || "could not show the page".to_owned();
    let directory = scratch::directory()?;
    let file = directory.path().join(page.file());
    fs::write(&file, &page.roff).context(failed)?;
    if process::show_manual(&file).context(failed)? {
        return Ok(exit::OK);
    }
    Err(Error::fatal("'man' could not show the page").hint(ELSEWHERE))
}

/// The pages whose names begin with `typed`, for completion.
fn offered(typed: &str) -> Option<Offers> {
    Some(complete::begun(manual::names().map(str::to_owned), typed))
}

fn find<'a>(pages: &'a [Page], wanted: &str) -> Result<&'a Page> {
    let short = |page: &'a Page| page.name.strip_prefix("git-frites-").unwrap_or(&page.name);
    if let Some(page) = pages.iter().find(|page| page.name == wanted || short(page) == wanted) {
        return Ok(page);
    }
    let names: Vec<&str> = pages.iter().map(short).collect();
    let error = Error::usage(format!("there is no page '{wanted}'"));
    Err(match nearest(names.iter().copied(), wanted) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("the pages are {}", names.join(", "))),
    })
}
