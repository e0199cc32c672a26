//! Draws terminal output: ANSI text on standard input, an SVG image on standard output.
//!
//! `make picture` draws the image of the README with it.
#![expect(clippy::print_stdout, reason = "an example answers on stdout")]

use std::io;

use anstyle_svg::{Term, WIN10_CONSOLE};

fn main() -> io::Result<()> {
    let text = io::read_to_string(io::stdin())?;
    let picture = Term::new().palette(WIN10_CONSOLE).min_width_px(640).render_svg(&text);
    // Dimmed text is hard to read on the dark background.
    print!("{}", picture.replace(".dimmed { opacity: 0.4; }", ".dimmed { opacity: 0.65; }"));
    Ok(())
}
