//! Generates the manual: a page for git-frites, a page for each command, and pages on other topics.
//! The pages are made from the definition of the command line, the tables of keys and exit codes,
//! and the hand-written parts in this directory. `man/` contains the pages as they are installed.
mod json;
mod markup;

use std::mem;

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::config::keys::{self, DefaultValue};
use crate::error::exit;

/// The date of the release, at the foot of every page.
const DATE: &str = "2026-11-20";

/// The hand-written parts of these pages, each with the page's short name.
macro_rules! parts {
    ($($name:literal),+ $(,)?) => { &[$(($name, include_str!(concat!($name, ".txt")))),+] };
}

const PARTS: &[(&str, &str)] = parts! {
    "git-frites", "add", "apply", "capture", "clean", "completions", "config", "diff", "doctor",
    "exec", "explain", "judge", "log", "man", "output", "path", "report", "retry", "run",
    "shard", "shard-collect", "shard-judge", "shard-list", "shard-open", "shard-run", "spawn",
    "status", "task",
};

const TUTORIAL: &str = include_str!("tutorial.txt");

/// The text of git-frites-sandbox(7).
const SANDBOX: &str = include_str!("sandbox.txt");

/// The text of git-frites-spread(7).
const SPREAD: &str = include_str!("spread.txt");

/// The two parts of git-frites-agents(7): the skill, which agents load as it is, and how to make an
/// agent load it.
const SKILL: &str = include_str!("../../skills/git-frites/SKILL.md");
const LOADING: &str = include_str!("agents.txt");

/// The pages that are about no command.
const TOPICS: [&str; 5] = ["tutorial", "sandbox", "spread", "agents", "json"];

/// The short names of all pages, as the user types them after `git frites man`.
pub fn names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|(name, _)| *name).chain(TOPICS)
}

/// A page of the manual.
pub struct Page {
    /// The page's name, e.g. `git-frites-judge`.
    pub name: String,
    /// The page's section.
    pub section: u8,
    /// The page's text, as roff.
    pub roff: String,
}

impl Page {
    /// The name of the page's file, e.g. `git-frites-judge.1`.
    pub fn file(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }
}

/// All pages for the command line `cli`. git-frites(1) is the first.
pub fn pages(cli: Command) -> Vec<Page> {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    let mut pages = Vec::new();
    add_pages(&mut pages, &cli, "git-frites");
    let mut by_hand = |name: &str, section, about, text: &str| {
        let mut roff = start(name, section, about);
        markup::add(&mut roff, text);
        pages.push(Page { name: name.to_owned(), section, roff: markup::fill(&roff.render()) });
    };
    by_hand("git-frites-tutorial", 7, "a tutorial for git frites", TUTORIAL);
    by_hand("git-frites-sandbox", 7, "the sealed world in which commands judge", SANDBOX);
    by_hand("git-frites-spread", 7, "judging one run on several machines", SPREAD);
    let skill = SKILL.splitn(3, "---\n").last().unwrap_or_default();
    let agents = format!("{LOADING}\n{}", skill.trim_start());
    by_hand("git-frites-agents", 7, "how coding agents use git frites for their users", &agents);
    by_hand("git-frites-json", 5, "the JSON output of git frites", &json::text());
    pages
}

/// Adds the page of a command, and those of its subcommands.
fn add_pages(pages: &mut Vec<Page>, command: &Command, name: &str) {
    pages.push(of_command(command, name));
    for verb in command.get_subcommands() {
        add_pages(pages, verb, &format!("{name}-{}", verb.get_name()));
    }
}

fn start(name: &str, section: u8, about: &str) -> Roff {
    let mut roff = Roff::new();
    let source = concat!("git-frites ", env!("CARGO_PKG_VERSION"));
    roff.control(
        "TH",
        [&name.to_uppercase(), section.to_string().as_str(), DATE, source, "Git Frites Manual"],
    );
    roff.control("SH", ["NAME"]);
    // This is one line, because `apropos` shows it.
    let about = about.split(';').next().unwrap_or(about);
    let mut letters = about.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    roff.text([roman(format!("{name} - {first}{}", letters.as_str()))]);
    roff
}

fn of_command(command: &Command, name: &str) -> Page {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = start(name, 1, &about).render();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(synopsis(command));
    page.push_str(&roff.to_roff());

    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (status, paragraphs): (Vec<&str>, Vec<&str>) =
        help.split("\n\n").partition(|p| p.starts_with("Exit status: "));
    let short = name.trim_start_matches("git-frites-");
    let hand = PARTS.iter().find(|(part, _)| *part == short).map_or("", |(_, text)| text);
    // If the hand-written text begins with examples, they come before DESCRIPTION.
    let (examples, hand) = match hand.split_once("\n# DESCRIPTION\n") {
        Some((examples, rest)) => (examples, rest),
        None => ("", hand),
    };
    // The rest of the text before the first heading belongs to DESCRIPTION.
    let (description, sections) =
        hand.split_once("# ").map_or((hand, String::new()), |(d, s)| (d, format!("# {s}")));
    let mut roff = Roff::new();
    markup::add(&mut roff, examples);
    markup::add(
        &mut roff,
        &format!("# DESCRIPTION\n{}\n\n{description}", paragraphs.join("\n\n").trim()),
    );
    page.push_str(&roff.to_roff());

    page.push_str(&options(command));
    let mut roff = Roff::new();
    let mut text = String::new();
    for line in sections.lines() {
        if !line.starts_with('@') {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        // This line is a placeholder for a generated table.
        markup::add(&mut roff, &mem::take(&mut text));
        match line {
            "@commands" => commands(&mut roff, command, name),
            "@exits" => exits(&mut roff),
            keys => add_keys(&mut roff, keys.trim_start_matches("@keys")),
        }
    }
    markup::add(&mut roff, &text);
    if let Some(status) = status.first().and_then(|s| s.strip_prefix("Exit status: ")) {
        let status = upper_first(status);
        markup::add(
            &mut roff,
            &format!("# EXIT STATUS\n{status} `git-frites`(1) lists all codes."),
        );
    }
    if name != "git-frites" {
        markup::add(&mut roff, "# SEE ALSO\n`git-frites`(1), `git-frites-tutorial`(7)");
    }
    page.push_str(&roff.to_roff());
    Page { name: name.to_owned(), section: 1, roff: markup::fill(&page) }
}

/// The command line with every option and its value, as in git's own pages. clap's usage line omits
/// the options.
fn synopsis(command: &Command) -> Vec<Inline> {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_default())];
    let shown = |arg: &&Arg| {
        !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version" | "color")
    };
    let value = |arg: &Arg| {
        let takes = arg.get_num_args().is_some_and(|n| n.takes_values());
        let more = arg.get_num_args().is_some_and(|n| n.max_values() > 1)
            || matches!(arg.get_action(), ArgAction::Append);
        let name = if takes { arg.get_value_names().and_then(|names| names.first()) } else { None };
        (name.map(ToString::to_string), if more { "..." } else { "" })
    };
    let mut options: Vec<&Arg> =
        command.get_arguments().filter(shown).filter(|arg| !arg.is_positional()).collect();
    // List the options that all commands share last.
    options.sort_by_key(|option| option.is_global_set());
    for arg in options {
        let names =
            [arg.get_short().map(|s| format!("-{s}")), arg.get_long().map(|l| format!("--{l}"))];
        line.push(roman(" ["));
        for (at, name) in names.into_iter().flatten().enumerate() {
            line.extend([roman(if at == 0 { "" } else { " | " }), bold(name)]);
        }
        if let (Some(name), more) = value(arg) {
            line.extend([roman(" "), italic(name), roman(more)]);
        }
        line.push(roman("]"));
    }
    for arg in command.get_arguments().filter(shown).filter(|arg| arg.is_positional()) {
        let (before, after) = match (arg.is_last_set(), arg.is_required_set()) {
            (true, _) => (" [-- ", "]"),
            (false, true) => (" ", ""),
            (false, false) => (" [", "]"),
        };
        let (name, more) = value(arg);
        line.extend([roman(before), italic(name.unwrap_or_default()), roman(more), roman(after)]);
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND"), roman(" [...]")]);
    }
    line
}

/// The section OPTIONS from clap_mangen, without clap_mangen's preamble, because the page has one
/// already. Literals are bold, as in the rest of the page.
fn options(command: &Command) -> String {
    let mut bytes = Vec::new();
    // The page has all options, even those that `-h` leaves out.
    let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    Man::new(command).render_options_section(&mut bytes).expect("a Vec takes every byte");
    let text = String::from_utf8(bytes).expect("the help texts are UTF-8");
    let text = text.find(".SH").map_or("", |at| &text[at..]).replace("\n.br\n\n.br\n", "\n.sp\n");
    let text = below_one_heading(&text);
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 1 { format!("\\fB{part}\\fR") } else { part.to_owned() })
        .collect()
}

/// Makes the sections for groups of options, which clap_mangen writes in capitals, subsections of
/// the first section, OPTIONS.
fn below_one_heading(sections: &str) -> String {
    let mut lines = sections.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        text.push('\n');
        match line.strip_prefix(".SH ") {
            Some(heading) => {
                let words = heading.trim_matches('"').to_lowercase();
                text.push_str(&format!(".SS \"{}\"", upper_first(&words)));
            }
            None => text.push_str(line),
        }
    }
    text.push('\n');
    text
}

fn commands(roff: &mut Roff, command: &Command, name: &str) {
    for verb in command.get_subcommands() {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        roff.control("TP", []);
        roff.text([bold(format!("{name}-{}", verb.get_name())), roman("(1)")]);
        roff.text(markup::inlines(&format!("{about}.")));
    }
}

fn exits(roff: &mut Roff) {
    for (code, meaning) in exit::TABLE {
        roff.control("TP", []);
        roff.text(markup::inlines(code));
        roff.text(markup::inlines(meaning));
    }
}

/// Adds the configuration keys that begin with one of the prefixes. Without prefixes, adds all
/// keys.
fn add_keys(roff: &mut Roff, prefixes: &str) {
    let prefixes: Vec<&str> = prefixes.split_whitespace().collect();
    for spec in keys::ALL {
        if !prefixes.is_empty() && !prefixes.iter().any(|prefix| spec.name.starts_with(prefix)) {
            continue;
        }
        let (DefaultValue::Is(otherwise) | DefaultValue::Unset(otherwise, _)) = spec.default;
        let name = spec.name.replace('*', "NAME");
        roff.control("TP", []);
        roff.text([bold(name)]);
        let default = if matches!(spec.default, DefaultValue::Is(_)) {
            format!("Default: `{}`.", otherwise.replace('\'', "\""))
        } else {
            format!("Unset: {otherwise}.")
        };
        // The description is translated by itself: a star in it belongs to a pattern, and must not
        // be paired with a star in the rest.
        let mut text = markup::inlines(spec.about);
        text.extend(markup::inlines(&format!(" Takes {}. {default}", spec.takes)));
        roff.text(text);
    }
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
