//! Colors by meaning, set per stream. No meaning is shown by color alone.
use owo_colors::Style;

/// The choice of when to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorMode {
    /// On a terminal, unless NO_COLOR or TERM=dumb is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

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

/// A style, or none.
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

    /// Appends the text in this style to a line.
    pub fn paint_onto(&self, line: &mut String, text: &str) {
        match self.0 {
            Some(_) => line.push_str(&self.paint(text)),
            None => line.push_str(text),
        }
    }
}

/// One style for each meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// For passed and recommended.
    pub good: Paint,
    /// For failed and refused.
    pub bad: Paint,
    /// For things to check.
    pub caution: Paint,
    /// For less important text.
    pub dim: Paint,
    /// For headings.
    pub strong: Paint,
    /// True if these are colors.
    pub colored: bool,
    /// The number of columns of the terminal; `None` elsewhere, and nothing is cut.
    pub width: Option<usize>,
}

impl Styles {
    /// The styles with colors.
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

    /// The style of a cell with this tone.
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

/// True if a stream gets colors. Decided by `--color`, then `NO_COLOR`, `CLICOLOR_FORCE`,
/// `TERM=dumb`, the terminal (no-color.org, bixense.com/clicolors).
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
