//! The command line as a whole: arguments, configuration, manual, and places where it works.
mod bad_input;
mod complete;
mod config;
mod doctor;
mod exec;
mod fuzzed_input;
mod hooks;
mod hostile_config;
mod man;
mod places;
mod readme;
mod schema;
mod scripts;
mod task;
