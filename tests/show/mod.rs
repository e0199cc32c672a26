//! Commands that show a run and change nothing.
mod diff;
mod logs;
mod output;
mod report;
mod status;
mod trace;
