//! The report about one run: an HTML page that can be read without network and without scripts, or
//! text for a pull request.
//!
//! All text in a report can be hostile, because attempts wrote the names, patches, logs and
//! reasons. maud escapes this text, and [`wording::visible`] makes hidden characters visible. If
//! something still gets through, the page's content security policy forbids every style and script
//! except the page's own.
mod candidate;
pub mod content;
mod difference;
mod markdown;
mod overview;
mod pairs;
mod timeline;
mod wording;

use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::ui::report::content::Report;

pub use markdown::markdown;

/// The only style and script of the page. The content security policy has their digests.
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The report as one HTML file.
pub fn html(report: &Report) -> String {
    page(report).into_string()
}

fn page(report: &Report) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "git frites: run " (report.run.run) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (overview::heading(report)) }
                main {
                    (overview::verdict(report))
                    (overview::comparison(report))
                    (overview::warnings(report))
                    (candidate::all(report))
                    (pairs::all(report))
                    (overview::tests(report))
                    (overview::agreement(report))
                    (timeline::all(report))
                }
                footer {
                    p { "Keys: " kbd { "j" } " and " kbd { "k" } " go to the next candidate and back, "
                        kbd { "1" } " to " kbd { "9" } " to the candidate of that number, " kbd { "d" }
                        " opens and closes its change." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The page's content security policy: nothing is loaded, and no style or script has an effect
/// except [`STYLE`] and [`SCRIPT`].
fn policy() -> String {
    let digest = |text: &str| BASE64.encode(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest(STYLE),
        digest(SCRIPT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_end_where_they_should() {
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("</") && !text.contains("<!--"));
        }
    }
}
