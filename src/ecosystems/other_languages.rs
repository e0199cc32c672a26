//! Languages whose commands and tests are not known: their source files alone.
use crate::ecosystems::ecosystem::Ecosystem;

/// Languages, templates and descriptions of data of which programs are made.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &[
        "clj", "cljc", "cljs", "cr", "css", "ejs", "erl", "f90", "frag", "g4", "gleam", "glsl",
        "gql", "graphql", "haml", "hbs", "hlsl", "hrl", "hs", "htm", "html", "j2", "jinja",
        "jinja2", "jl", "less", "lhs", "liquid", "lua", "ml", "mli", "mustache", "nim", "njk",
        "proto", "pug", "R", "r", "sass", "scss", "slim", "sol", "sql", "swift", "thrift", "tmpl",
        "twig", "vert", "wgsl", "zig",
    ],
    test_directories: &["Tests"],
    project_files: &["Package.swift", "stack.yaml", "build.zig", "rebar.config", "deps.edn"],
    lock_files: &["Package.resolved"],
    decisive_files: &["Package*.swift", "Setup.hs", "build.zig"],
    ..Ecosystem::NOTHING
};
