//! Languages whose commands and tests are not known: their source files alone.
use crate::ecosystems::ecosystem::Ecosystem;

/// Languages, templates and descriptions of data of which programs are made.
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
