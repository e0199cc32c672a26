//! Languages of which only the extensions are known, not the commands and tests.
use crate::ecosystems::ecosystem::Ecosystem;

/// Languages, templates and data descriptions that programs are made from.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &[
        "clj", "cljc", "cljs", "cr", "css", "ejs", "erl", "f90", "frag", "g4", "gleam", "glsl",
        "gql", "graphql", "haml", "hbs", "hlsl", "hrl", "hs", "htm", "html", "j2", "jinja",
        "jinja2", "jl", "less", "lhs", "liquid", "lua", "ml", "mli", "mustache", "nim", "njk",
        "proto", "pug", "R", "r", "sass", "scss", "slim", "sol", "sql", "thrift", "tmpl", "twig",
        "vert", "wgsl",
    ],
    project_files: &["stack.yaml", "rebar.config", "deps.edn"],
    decisive_files: &["Setup.hs"],
    ..Ecosystem::NOTHING
};
