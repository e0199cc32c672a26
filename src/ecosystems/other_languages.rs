//! Languages of which only the extensions and the names of tests are known, not the commands.
use crate::ecosystems::ecosystem::Ecosystem;

pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &[
        "clj", "cljc", "cljs", "cr", "erl", "f90", "gleam", "hrl", "hs", "jl", "lhs", "lua", "ml",
        "mli", "nim", "R", "r", "sol",
    ],
    test_words: (&["test"], &["spec", "suite", "test"]),
    project_files: &["stack.yaml", "rebar.config", "deps.edn"],
    decisive_files: "Setup.hs",
    ..Ecosystem::NOTHING
};
