//! Colours by meaning. Plain by default, coloured per stream; never the only carrier of a meaning.
use owo_colors::Style;

use crate::ui::ColorMode;
use crate::ui::table::Tone;

/// A style that may be no style.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint(Option<Style>);

impl Paint {
    /// The text in this style.
    pub fn paint(&self, text: &str) -> String {
        match self.0 {
            Some(style) => style.style(text).to_string(),
            None => text.to_owned(),
        }
    }
}

/// The meanings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// Passed, recommended.
    pub good: Paint,
    /// Failed, refused.
    pub bad: Paint,
    /// To be looked at.
    pub caution: Paint,
    /// Less important.
    pub dim: Paint,
    /// Headings.
    pub strong: Paint,
    /// Whether any of these is a colour.
    pub colored: bool,
    /// How many columns there are, on a terminal; elsewhere nothing is cut.
    pub width: Option<usize>,
}

impl Styles {
    /// The coloured ones.
    pub fn colored() -> Styles {
        let paint = |style: Style| Paint(Some(style));
        Styles {
            good: paint(Style::new().green()),
            bad: paint(Style::new().red()),
            caution: paint(Style::new().yellow()),
            dim: paint(Style::new().dimmed()),
            strong: paint(Style::new().bold()),
            colored: true,
            width: None,
        }
    }

    /// The style for what a cell means.
    pub fn of(&self, tone: Tone) -> Paint {
        match tone {
            Tone::Plain => Paint::default(),
            Tone::Good => self.good,
            Tone::Bad => self.bad,
            Tone::Caution => self.caution,
            Tone::Dim => self.dim,
        }
    }
}

/// Whether to colour a stream: `--color`, then `NO_COLOR`, `CLICOLOR_FORCE`, `TERM=dumb`, the terminal
/// (no-color.org, bixense.com/clicolors).
pub fn wanted(choice: ColorMode, is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    match choice {
        ColorMode::Always => true,
        ColorMode::Never => false,
        ColorMode::Auto if set("NO_COLOR") => false,
        ColorMode::Auto
            if set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE") != Some("0".into()) =>
        {
            true
        }
        ColorMode::Auto => is_terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
    }
}
