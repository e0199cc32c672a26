//! `--junit FILE`: a verdict as a CI reads it.
use std::fs;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;
use serde_json::Value;

use crate::common::World;
use crate::common::edits::SMALL;

/// An element of a document.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// The elements of a document; fails if it is not well-formed.
fn elements(document: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(document);
    let mut found: Vec<Element> = Vec::new();
    let mut open = 0;
    loop {
        let event = reader.read_event().unwrap();
        open += i32::from(matches!(event, Event::Start(_)));
        open -= i32::from(matches!(event, Event::End(_)));
        let text = match event {
            Event::Start(element) | Event::Empty(element) => {
                let attributes = element.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let value = unescape(&attribute.value).unwrap().into_owned();
                    (attribute.key.0.to_owned(), value)
                });
                let (name, attributes) = (element.name().0.to_owned(), attributes.collect());
                found.push(Element { name, attributes, text: String::new() });
                continue;
            }
            Event::Text(text) => unescape(&text).unwrap().into_owned(),
            Event::GeneralRef(name) => unescape(&format!("&{};", &*name)).unwrap().into_owned(),
            Event::Eof => break,
            _ => continue,
        };
        found.iter_mut().last().into_iter().for_each(|last| last.text.push_str(&text));
    }
    assert_eq!(open, 0, "{document}");
    found
}

/// What Python's own reader finds of each case: suite, name and the kind of its end.
const CASES: &str = "
import sys, xml.etree.ElementTree as tree
for suite in tree.parse(sys.argv[1]).getroot().iter('testsuite'):
    for case in suite.iter('testcase'):
        print(suite.get('name'), case.get('name'), *[end.tag for end in case], sep='|')
";

#[test]
fn verdict_is_written_for_a_ci_with_reasons_and_log_tails() {
    let world = World::new();
    let file = world.home().join("verdict.xml");
    let path = file.to_str().unwrap();
    let hostile = "printf '<failure>&]]>\\033[31mred\\033[0m \\001\\342\\200\\256 \\377 \"quoted\"\\n'; \
        printf 'FAILED t.py::<b>&\"x\\n= 1 failed, 1 passed in 0.10s =\\n'";
    world.attempts(&[SMALL, "echo > bad", "true > empty; rm empty"]);
    let test = format!("test ! -e bad || {{ {hostile}; exit 1; }}");
    world.frites(["judge", "--junit", path, "--build", "true", "--test", &test]).expect(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{1}', '\u{202e}']), "{text}");
    let all = elements(&text);
    let suites: Vec<&str> =
        all.iter().filter(|e| e.name == "testsuite").map(|e| e.attribute("name")).collect();
    assert_eq!(suites, ["1", "1/c1", "1/c2", "1/c3"], "{text}");
    assert_eq!(all[0].attribute("failures"), "2", "{text}");
    assert_eq!(all[0].attribute("errors"), "1", "{text}");
    let failures: Vec<_> = all.iter().filter(|e| e.name == "failure").collect();
    assert_eq!(failures[0].attribute("message"), "test: exit 1");
    assert!(failures[0].text.contains("<failure>&]]>red "), "{text}");
    assert!(failures[0].text.contains("FAILED t.py::<b>&\"x"), "the end of the log: {text}");
    let cases = world.sh(&world.repo, &format!("python3 - {path} <<'E'\n{CASES}\nE"));
    if cases.code != 127 {
        let expected = "1|verdict\n1/c1|build\n1/c1|test\n1/c2|build\n1/c2|test|failure\n\
            1/c2|test t.py::<b>&\"x|failure\n1/c3|attempt|error\n";
        assert_eq!(cases.expect(0).out(), expected);
    }
    // The same without running anything, and from a run.
    let again = world.home().join("again.xml");
    world.frites(["judge", "--replay", "--junit", again.to_str().unwrap()]).expect(0);
    assert_eq!(fs::read_to_string(&again).unwrap(), text);
    let run = ["run", "-n", "1", "--junit", path, "--test", "false", "--", "sh", "-c", SMALL];
    world.frites(run).expect(1);
    let all = elements(&fs::read_to_string(&file).unwrap());
    let verdict = all.iter().position(|e| e.attribute("name") == "verdict").unwrap();
    assert!(all[verdict + 1].attribute("message").starts_with("near-miss: "), "{all:?}");
    world.assert_clean();
}

#[test]
fn attempt_that_failed_or_is_at_its_limit_is_shown_with_the_cause() {
    let world = World::new();
    world.git(["config", "frites.agents.limited.limit", "at its limit"]);
    let commands = [
        ("failed", "exit 3"),
        ("killed", "kill -9 $$"),
        ("limited", "echo at its limit, try again in 2 hours; exit 1"),
        ("works", "echo more >> README"),
    ];
    let mut spawn = vec!["spawn", "-p", "x"];
    for (agent, command) in commands {
        let key = format!("frites.agents.{agent}.command");
        world.git(["config", &key, &format!("sh -c '{command}'")]);
        spawn.extend(["--agent", agent]);
    }
    world.frites(spawn).expect(0);
    let file = world.home().join("verdict.xml");
    let path = file.to_str().unwrap();
    let judged = world.frites(["judge", "--junit", path, "--test", "true"]).expect(0).out();
    let all = elements(&fs::read_to_string(&file).unwrap());
    let errors: Vec<&str> =
        all.iter().filter(|e| e.name == "error").map(|e| e.attribute("message")).collect();
    let expected = [
        "failed-1 failed (exit 3)",
        "killed-1 failed (signal 9)",
        "limited-1 is at the limit of its agent (resets in 2 hours)",
    ];
    assert_eq!(errors, expected);
    for cause in ["failed (exit 3)", "failed (signal 9)", "limited (resets in 2 hours)"] {
        assert!(judged.contains(cause), "{judged}");
    }
    let verdict = world.frites(["judge", "--replay", "--json"]).expect(0).json();
    let of = |at: usize, key: &str| verdict["candidates"][at][key].clone();
    assert_eq!((of(0, "exit_code"), of(1, "signal")), (3.into(), 9.into()));
    assert_eq!((of(1, "exit_code"), of(2, "resets")), (Value::Null, "in 2 hours".into()));
    world.assert_clean();
}

#[test]
fn junit_file_that_cannot_be_written_is_refused_before_anything_runs() {
    let world = World::new();
    world.attempts(&[SMALL]);
    let touch = format!("touch {}", world.home().join("ran").display());
    for file in ["none/verdict.xml", "."] {
        world
            .frites(["judge", "--junit", file, "--test", &touch])
            .refuses(2, "--junit cannot write");
    }
    assert!(!world.home().join("ran").exists());
    world.frites(["judge", "--junit", "x", "--candidate", "c1"]).refuses(2, "cannot be used with");
    world.assert_clean();
}

/// An attempt can make a link that lands, such as one to the user's shell profile.
#[test]
fn files_are_not_written_through_links_of_the_checkout() {
    let world = World::new();
    let profile = world.home().join("profile");
    fs::write(&profile, "mine\n").unwrap();
    let link = format!(
        "ln -s {} verdict.xml && ln -s {} reports && {SMALL}",
        profile.display(),
        world.home().display()
    );
    world.attempts(&[&link]);
    world.frites(["judge", "--test", "true"]).expect(0);
    world.frites(["apply", "--commit"]).expect(0);
    world
        .frites(["judge", "--junit", "verdict.xml", "--test", "true"])
        .refuses(2, "is a symbolic link in your checkout");
    world
        .frites(["report", "-o", "reports/profile"])
        .refuses(2, "is a symbolic link in your checkout");
    assert_eq!(fs::read_to_string(&profile).unwrap(), "mine\n");
    world.assert_clean();
}

#[test]
fn file_is_not_written_through_a_link_that_a_command_has_just_made() {
    crate::common::in_the_open_world();
    let world = World::new();
    world.attempts(&[SMALL]);
    let profile = world.home().join("profile");
    let link = world.repo.join("late.xml");
    let test = format!("ln -sf {} {}", profile.display(), link.display());
    let judged = world.frites(["judge", "--junit", "late.xml", "--test", &test]);
    judged.refuses(2, "is a symbolic link in your checkout");
    assert!(!profile.exists());
    world.assert_clean();
}
