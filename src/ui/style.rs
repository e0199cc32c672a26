//! Colors by meaning, set per stream. No meaning is shown by color alone.
use clap::ColorChoice;
use owo_colors::Style;

/// The meaning of a cell, which decides its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// Passed, recommended.
    Good,
    /// Failed.
    Bad,
    /// To check.
    Caution,
    /// Less important.
    Dim,
}

/// One style for each meaning; without colors, all are plain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// For passed and recommended.
    pub good: Style,
    /// For failed and refused.
    pub bad: Style,
    /// For things to check.
    pub caution: Style,
    /// For less important text.
    pub dim: Style,
    /// For headings.
    pub strong: Style,
    /// True if these are colors.
    pub colored: bool,
    /// The columns of the terminal; `None` if the output is no terminal, and lines are not cut.
    pub width: Option<usize>,
}

impl Styles {
    /// The styles with colors.
    pub fn colored() -> Styles {
        Styles {
            good: Style::new().green(),
            bad: Style::new().red(),
            caution: Style::new().yellow(),
            dim: Style::new().dimmed(),
            strong: Style::new().bold(),
            colored: true,
            width: None,
        }
    }

    /// The style of a cell with this tone.
    pub fn of(&self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => self.good,
            Tone::Bad => self.bad,
            Tone::Caution => self.caution,
            Tone::Dim => self.dim,
        }
    }
}

/// True if a stream gets colors. Decided by `--color`, then `NO_COLOR`, `CLICOLOR_FORCE`,
/// `TERM=dumb`, the terminal (no-color.org, bixense.com/clicolors).
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
