//! Rings the bell and shows notifications, for a user who does not watch the terminal.
use crate::ui::table::printable;

/// The bell, which every terminal supports.
pub const BELL: &str = "\x07";

/// The values of TERM_PROGRAM for terminals that show OSC 9 as a notification.
const WITH_OSC_9: [&str; 3] = ["iTerm.app", "WezTerm", "ghostty"];

/// The beginnings of TERM for terminals that show OSC 777 as a notification.
const WITH_OSC_777: [&str; 2] = ["foot", "rxvt-unicode"];

/// The sequence that shows a notification, if the environment names a terminal that supports one;
/// otherwise the bell.
pub fn notification(words: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let words = printable(words);
    let term = variable("TERM").unwrap_or_default();
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    // screen and tmux do not pass such sequences on to the terminal.
    let is_inside = ["screen", "tmux"].iter().any(|name| term.starts_with(name));
    if is_inside || variable("TMUX").is_some() {
        return BELL.to_owned();
    }
    if WITH_OSC_9.contains(&program.as_str()) || term == "xterm-kitty" {
        return format!("\x1b]9;git-frites: {words}\x1b\\");
    }
    if WITH_OSC_777.iter().any(|name| term.starts_with(name)) {
        // A semicolon would end the text.
        return format!("\x1b]777;notify;git-frites;{}\x1b\\", words.replace(';', ","));
    }
    BELL.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(variables: &[(&str, &str)]) -> String {
        let find =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        notification("run 1; \x1b]0;evil\x07 done", find)
    }

    #[test]
    fn each_terminal_gets_what_it_knows_and_others_the_bell() {
        assert_eq!(sent(&[("TERM", "xterm-256color")]), BELL);
        assert_eq!(sent(&[]), BELL);
        let osc9 = "\x1b]9;git-frites: run 1; \\u{1b}]0;evil\\u{7} done\x1b\\";
        assert_eq!(sent(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]), osc9);
        assert_eq!(sent(&[("TERM", "xterm-kitty")]), osc9);
        assert_eq!(
            sent(&[("TERM", "foot")]),
            "\x1b]777;notify;git-frites;run 1, \\u{1b}]0,evil\\u{7} done\x1b\\"
        );
        assert_eq!(sent(&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "iTerm.app")]), BELL);
        assert_eq!(sent(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]), BELL);
    }
}
