//! Judging and attempts on several machines.
mod attempts;
mod machines;
mod replay;
mod shares;
