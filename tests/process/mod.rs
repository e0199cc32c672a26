//! Users' commands as processes.
mod environment;
mod supervision;
