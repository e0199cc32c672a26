//! Templates, styles and descriptions of data that programs are made from.
use crate::ecosystems::ecosystem::Ecosystem;

/// Texts that are no programs by themselves.
pub const ECOSYSTEM: Ecosystem = Ecosystem {
    other_extensions: &[
        "css", "ejs", "frag", "g4", "glsl", "gql", "graphql", "haml", "hbs", "hlsl", "htm", "html",
        "j2", "jinja", "jinja2", "less", "liquid", "mustache", "njk", "proto", "pug", "sass",
        "scss", "slim", "sql", "thrift", "tmpl", "twig", "vert", "wgsl",
    ],
    ..Ecosystem::NOTHING
};
