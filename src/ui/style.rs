//! Colors, each of which stands for a meaning. An output stream has colors or none. Every meaning
//! is also shown in another way than by its color.
use clap::ColorChoice;
use owo_colors::Style;

/// The meaning of a cell, which decides its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Tone {
    /// The cell has no special meaning.
    Plain,
    /// The cell shows something good, e.g. that a candidate passed or is recommended.
    Good,
    /// The cell shows something bad, e.g. that a candidate failed.
    Bad,
    /// A person should look at the cell.
    Caution,
    /// The cell is less important.
    Dim,
    /// The cell is a heading.
    Strong,
}

/// The styles of an output stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// True if the stream has colors. Without colors, all styles are plain.
    pub colored: bool,
    /// The number of columns of the terminal; `None` if the output is no terminal, so that lines
    /// are not cut.
    pub width: Option<usize>,
}

impl Styles {
    /// The style of a text with this tone.
    pub fn of(&self, tone: Tone) -> Style {
        match tone {
            _ if !self.colored => Style::new(),
            Tone::Plain => Style::new(),
            Tone::Good => Style::new().green(),
            Tone::Bad => Style::new().red(),
            Tone::Caution => Style::new().yellow(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        }
    }
}

/// True if a stream gets colors. `--color` decides first, then `NO_COLOR`, `CLICOLOR_FORCE` and
/// `TERM=dumb`, and then whether the stream is a terminal (no-color.org, bixense.com/clicolors).
pub fn wanted(choice: ColorChoice, is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto => is_terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
    }
}
