//! The JSON output of agents: their usage of tokens and money, and their texts for people.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::usage::Usage;

/// The most tokens and the highest cost of one command. A report with more is broken.
const MOST_TOKENS: u64 = 1_000_000_000_000;
const HIGHEST_COST: f64 = 1e6;

/// The beginning of the line that replaces left-out output in a log.
pub const LEFT_OUT: &str = "[git-frites: ";

/// Where an agent reports its usage in its JSON output.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum UsageFormat {
    /// Nowhere.
    Off,
    /// `claude -p --output-format json` or `stream-json`. The object of the type `result` has
    /// `total_cost_usd` and `usage`. `usage.input_tokens` does not include cached tokens. Source:
    /// code.claude.com/docs/en/agent-sdk/cost-tracking, “Track cost and usage”.
    Claude,
    /// `codex exec --json`. Each `turn.completed` has the `usage` of the thread so far. Its
    /// `input_tokens` include cached tokens. There is no cost. Source: openai/codex,
    /// codex-rs/exec/src/exec_events.rs, `TurnCompletedEvent`.
    Codex,
    /// `gemini`. With `--output-format stream-json`, the object of the type `result` has `stats`.
    /// With `--output-format json`, `stats.models` has the tokens of each model. There is no cost.
    /// Source: geminicli.com/docs/cli/headless; google-gemini/gemini-cli,
    /// packages/core/src/output/types.ts.
    Gemini,
    /// `opencode run --format json`. Each `step_finish` has a `part` with the `cost` and the
    /// `tokens` of a step. `input` does not include cached tokens, and `output` does not include
    /// `reasoning`. Source: anomalyco/opencode, issue 26855 and
    /// packages/opencode/src/session/message-v2.ts.
    OpenCode,
    /// JSON pointers. They are applied to the last object in which one of them finds a value. This
    /// object must report the total, not the usage of a single step.
    #[strum(disabled)]
    Pointers(UsagePointers),
}

/// JSON pointers (RFC 6901) to the numbers in an agent's report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePointers {
    tokens_in: Option<String>,
    tokens_out: Option<String>,
    cost: Option<String>,
}

impl UsageFormat {
    /// Reads the name of a format, or some of `in=POINTER`, `out=POINTER` and `cost=POINTER`;
    /// `None` for anything else.
    pub fn parse(words: &[String]) -> Option<UsageFormat> {
        if let [name] = words
            && !name.contains('=')
        {
            return name.parse().ok();
        }
        let mut pointers = UsagePointers::default();
        for word in words {
            let (name, pointer) = word.split_once('=')?;
            let place = match name.trim() {
                "in" => &mut pointers.tokens_in,
                "out" => &mut pointers.tokens_out,
                "cost" => &mut pointers.cost,
                _ => return None,
            };
            let pointer = pointer.trim().to_owned();
            if !pointer.starts_with('/') || place.replace(pointer).is_some() {
                return None;
            }
        }
        (!words.is_empty()).then_some(UsageFormat::Pointers(pointers))
    }

    /// The usage that an agent reports in its whole output. If the report is missing or broken, the
    /// usage is unknown. A command may start its agent several times. So the last reports of all
    /// sessions are added.
    pub fn usage(&self, output: &str) -> Usage {
        let objects = objects(output);
        match self {
            UsageFormat::Off => Usage::default(),
            UsageFormat::Claude => sessions(&objects, claude),
            UsageFormat::Codex => sessions(&objects, |object| {
                let usage = of_type(object, "turn.completed")?.get("usage")?;
                Some(Usage { cost: None, ..inputs_and_outputs(usage) })
            }),
            UsageFormat::Gemini => sessions(&objects, gemini),
            // The sum is unknown if the log lacks some of the steps.
            UsageFormat::OpenCode if output.lines().any(|line| line.starts_with(LEFT_OUT)) => {
                Usage::default()
            }
            UsageFormat::OpenCode => {
                let steps =
                    objects.iter().filter_map(|object| of_type(object, "step_finish")?.get("part"));
                all(steps.map(open_code_step))
            }
            UsageFormat::Pointers(UsagePointers { tokens_in, tokens_out, cost }) => {
                let last = objects.iter().rev().find_map(|object| {
                    let at = |pointer: &Option<String>| object.pointer(pointer.as_ref()?);
                    let found = [at(tokens_in), at(tokens_out), at(cost)];
                    found.iter().any(Option::is_some).then(|| Usage {
                        tokens_in: found[0].and_then(tokens),
                        tokens_out: found[1].and_then(tokens),
                        cost: found[2].and_then(money),
                    })
                });
                last.unwrap_or_default()
            }
        }
    }
}

fn of_type<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    (object.get("type")?.as_str()? == name).then_some(object)
}

fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number <= MOST_TOKENS)
}

fn money(value: &Value) -> Option<f64> {
    value.as_f64().filter(|amount| (0.0..=HIGHEST_COST).contains(amount))
}

/// The sum of the numbers of tokens at these JSON pointers. A missing `optional` number counts as
/// 0. Returns `None` if a `needed` number is missing, or if any number is broken.
fn sum(object: &Value, needed: &[&str], optional: &[&str]) -> Option<u64> {
    let needed = needed.iter().map(|pointer| tokens(object.pointer(pointer)?));
    let optional = optional.iter().map(|pointer| object.pointer(pointer).map_or(Some(0), tokens));
    needed.chain(optional).sum()
}

fn inputs_and_outputs(usage: &Value) -> Usage {
    Usage {
        tokens_in: sum(usage, &["/input_tokens"], &[]),
        tokens_out: sum(usage, &["/output_tokens"], &[]),
        cost: None,
    }
}

fn claude(object: &Value) -> Option<Usage> {
    let result = of_type(object, "result")?;
    let cached = ["/usage/cache_creation_input_tokens", "/usage/cache_read_input_tokens"];
    Some(Usage {
        tokens_in: sum(result, &["/usage/input_tokens"], &cached),
        tokens_out: sum(result, &["/usage/output_tokens"], &[]),
        cost: result.get("total_cost_usd").and_then(money),
    })
}

fn gemini(object: &Value) -> Option<Usage> {
    let stats = object.get("stats")?;
    if of_type(object, "result").is_some() {
        return Some(inputs_and_outputs(stats));
    }
    let models = stats.get("models")?.as_object()?.values();
    Some(all(models.map(|model| Usage {
        tokens_in: sum(model, &["/tokens/prompt"], &[]),
        tokens_out: sum(model, &["/tokens/candidates"], &["/tokens/thoughts"]),
        cost: None,
    })))
}

fn open_code_step(part: &Value) -> Usage {
    let cached = ["/tokens/cache/read", "/tokens/cache/write"];
    Usage {
        tokens_in: sum(part, &["/tokens/input"], &cached),
        tokens_out: sum(part, &["/tokens/output"], &["/tokens/reasoning"]),
        cost: part.get("cost").and_then(money),
    }
}

/// The sum over the last report of each session. An object without the id of a session belongs to
/// the same session as the object before it.
fn sessions(objects: &[Value], report: impl Fn(&Value) -> Option<Usage>) -> Usage {
    let mut session = "";
    let mut last: BTreeMap<&str, Usage> = BTreeMap::new();
    for object in objects {
        let id = object.get("session_id").or_else(|| object.get("thread_id"));
        session = id.and_then(Value::as_str).unwrap_or(session);
        last.extend(report(object).map(|usage| (session, usage)));
    }
    all(last.into_values())
}

/// The sum over all parts. A number that is unknown in one part is unknown in the sum.
fn all(parts: impl Iterator<Item = Usage>) -> Usage {
    let sum = parts.reduce(|sum, part| Usage {
        tokens_in: sum.tokens_in.zip(part.tokens_in).map(|(a, b)| a.saturating_add(b)),
        tokens_out: sum.tokens_out.zip(part.tokens_out).map(|(a, b)| a.saturating_add(b)),
        cost: sum.cost.zip(part.cost).map(|(a, b)| a + b),
    });
    let Usage { tokens_in, tokens_out, cost } = sum.unwrap_or_default();
    Usage {
        tokens_in: tokens_in.filter(|number| *number <= MOST_TOKENS),
        tokens_out: tokens_out.filter(|number| *number <= MOST_TOKENS),
        cost: cost.filter(|amount| *amount <= HIGHEST_COST),
    }
}

/// If a line begins with other text, a JSON object is looked for at no more than this number of
/// places in the line.
const MOST_PLACES: usize = 16;

/// The JSON objects of an output, in order. An object can be on a line of its own, after other text
/// in a line, or in an array on one line. The last object can have several lines.
fn objects(output: &str) -> Vec<Value> {
    let of_line = |line| match objects_of_line(line) {
        none if none.is_empty() => Vec::from_iter(object_behind_text(line)),
        found => found,
    };
    let mut found: Vec<Value> = output.lines().flat_map(of_line).collect();
    if let Some(at) =
        output.rfind("\n{\n").map(|at| at + 1).or(output.starts_with("{\n").then_some(0))
    {
        let spread = serde_json::Deserializer::from_str(&output[at..]).into_iter().next();
        found.extend(spread.and_then(Result::ok));
    }
    found
}

fn objects_of_line(line: &str) -> Vec<Value> {
    let line = line.trim();
    if !line.starts_with(['{', '[']) {
        return Vec::new();
    }
    match serde_json::from_str(line) {
        Ok(Value::Array(items)) => items.into_iter().filter(Value::is_object).collect(),
        Ok(object @ Value::Object(_)) => vec![object],
        _ => Vec::new(),
    }
}

/// The first object in a line that begins with other text, e.g. the text of a background program
/// that writes to the same log.
fn object_behind_text(line: &str) -> Option<Value> {
    let places = line.match_indices("{\"").map(|(at, _)| at).take(MOST_PLACES);
    let mut found = places
        .filter_map(|at| serde_json::Deserializer::from_str(&line[at..]).into_iter().next()?.ok());
    found.find(Value::is_object)
}

/// The places in an agent's JSON output that can have text for people.
const WORDS: [&str; 9] = [
    "/result",
    "/error/message",
    "/error/data/message",
    "/errors/0",
    "/message",
    "/item/text",
    "/part/text",
    "/response",
    "/content",
];

/// The lines of an agent's output for a person: all lines that are not JSON, and the agent's words
/// in place of JSON. If no text is left, this is the whole output.
pub fn readable(output: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for line in output.lines() {
        let objects = objects_of_line(line);
        if objects.is_empty() {
            shown.push(line.to_owned());
        }
        for object in objects {
            // Gemini repeats the prompt as a message of the user.
            if object.get("role").is_some_and(|role| role == "user") {
                continue;
            }
            let words = WORDS.iter().find_map(|place| object.pointer(place)?.as_str());
            shown.extend(words.into_iter().flat_map(str::lines).map(str::to_owned));
        }
    }
    if shown.iter().all(|line| line.trim().is_empty()) {
        return output.lines().map(str::to_owned).collect();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(format: &str, output: &str) -> (Option<u64>, Option<u64>, Option<f64>) {
        let words: Vec<String> = format.split(',').map(str::to_owned).collect();
        let usage = UsageFormat::parse(&words).expect("a format").usage(output);
        (usage.tokens_in, usage.tokens_out, usage.cost)
    }

    /// The forms are taken from the pages that [`UsageFormat`] names.
    const CLAUDE: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":4021,"num_turns":3,"result":"Fixed.\nDone.","session_id":"6f","total_cost_usd":0.0723,"usage":{"input_tokens":12,"cache_creation_input_tokens":5000,"cache_read_input_tokens":20000,"output_tokens":340,"service_tier":"standard"}}"#;
    const CODEX: &str = r#"{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I fixed it."}}
{"type":"turn.completed","usage":{"input_tokens":26549,"cached_input_tokens":22272,"output_tokens":1590}}"#;
    const GEMINI_STREAM: &str = r#"{"type":"init","timestamp":"2026-01-01T00:00:00Z","session_id":"a","model":"m"}
{"type":"message","timestamp":"2026-01-01T00:00:01Z","role":"assistant","content":"Done.","delta":true}
{"type":"result","timestamp":"2026-01-01T00:00:02Z","status":"success","stats":{"total_tokens":150,"input_tokens":100,"output_tokens":20,"cached":0,"input":100,"duration_ms":9,"tool_calls":1}}"#;
    const GEMINI: &str = "Loaded.\n{\n  \"response\": \"Done.\",\n  \"stats\": {\n    \"models\": {\n      \"pro\": {\"tokens\": {\"prompt\": 24939, \"candidates\": 20, \"total\": 25113, \"cached\": 21263, \"thoughts\": 154}},\n      \"flash\": {\"tokens\": {\"prompt\": 1, \"candidates\": 1}}\n    }\n  }\n}\n";
    const OPENCODE: &str = r#"{"type":"step_start","timestamp":1,"sessionID":"s","part":{"type":"step-start"}}
{"type":"step_finish","timestamp":2,"sessionID":"s","part":{"type":"step-finish","reason":"tool-calls","cost":0.01,"tokens":{"total":19362,"input":209,"output":209,"reasoning":5,"cache":{"write":0,"read":18944}}}}
{"type":"text","timestamp":3,"sessionID":"s","part":{"type":"text","text":"Done."}}
{"type":"step_finish","timestamp":4,"sessionID":"s","part":{"type":"step-finish","reason":"stop","cost":0.02,"tokens":{"input":1,"output":2}}}"#;

    #[test]
    fn each_format_is_read_as_its_agent_prints_it() {
        let claude = (Some(25_012), Some(340), Some(0.0723));
        assert_eq!(used("claude", &format!("warning\n{CLAUDE}\n")), claude);
        assert_eq!(used("claude", &format!("[{{\"type\":\"system\"}},{CLAUDE}]")), claude);
        assert_eq!(used("codex", CODEX), (Some(26_549), Some(1590), None));
        assert_eq!(used("gemini", GEMINI_STREAM), (Some(100), Some(20), None));
        assert_eq!(used("gemini", GEMINI), (Some(24_940), Some(175), None));
        assert_eq!(used("opencode", OPENCODE), (Some(19_154), Some(216), Some(0.03)));
        let own = "in=/n/in,cost=/usd";
        assert_eq!(
            used(own, "{\"n\":{\"in\":7},\"usd\":1}\n{\"x\":1}"),
            (Some(7), None, Some(1.0))
        );
    }

    #[test]
    fn a_report_counts_behind_other_text_on_its_line() {
        let claude = (Some(25_012), Some(340), Some(0.0723));
        assert_eq!(used("claude", &format!("npm notice {CLAUDE}\n")), claude);
        assert_eq!(used("claude", &format!("50 % {{\"half\": {CLAUDE} done\n")), claude);
        let codex =
            CODEX.replace("{\"type\":\"turn.completed\"", "done: {\"type\":\"turn.completed\"");
        assert_eq!(used("codex", &codex), (Some(26_549), Some(1590), None));
        assert_eq!(used("in=/a", "total: {\"a\": 3}"), (Some(3), None, None));
    }

    #[test]
    fn the_last_report_of_each_session_counts() {
        let other = CLAUDE.replace("\"6f\"", "\"70\"");
        let both = (Some(50_024), Some(680), Some(0.1446));
        assert_eq!(used("claude", &format!("{CLAUDE}\n{other}\n")), both);
        assert_eq!(used("claude", &format!("{CLAUDE}\n{CLAUDE}\n{other}\n")), both);
        let turns = format!("{CODEX}\n{}", CODEX.replace("26549", "30000"));
        assert_eq!(used("codex", &turns), (Some(30_000), Some(1590), None));
        let threads = format!("{CODEX}\n{}", CODEX.replace("0199", "0200"));
        assert_eq!(used("codex", &threads), (Some(53_098), Some(3180), None));
        let broken = other.replace("0.0723", "-1");
        assert_eq!(used("claude", &format!("{CLAUDE}\n{broken}")), (Some(50_024), Some(680), None));
        assert_eq!(used("in=/a", "{\"a\": 3}\n{\"a\": 4}"), (Some(4), None, None));
    }

    #[test]
    fn a_report_that_is_missing_broken_or_cut_is_unknown() {
        let nothing = (None, None, None);
        for format in ["off", "claude", "codex", "gemini", "opencode", "in=/a,out=/b,cost=/c"] {
            let deep = "[".repeat(100_000);
            for output in [
                "",
                "text",
                "{",
                "[1,2]",
                "{\"type\":1,\"stats\":[]}",
                "{\"type\":\"result\"}",
                &deep,
            ] {
                assert_eq!(used(format, output), nothing, "{format}: {output:.30}");
            }
        }
        let broken = CLAUDE.replace("0.0723", "-1").replace("5000", "\"many\"");
        assert_eq!(used("claude", &broken), (None, Some(340), None));
        assert_eq!(used("claude", &CLAUDE.replace("0.0723", "1e300")).2, None);
        let cut = format!("{OPENCODE}\n[git-frites: 12 bytes are left out here]\n");
        assert_eq!(used("opencode", &cut), nothing);
    }

    #[test]
    fn a_format_is_a_name_or_pointers() {
        let parse = |text: &str| {
            UsageFormat::parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(parse("codex"), Some(UsageFormat::Codex));
        assert!(matches!(parse("in=/a,out=/b"), Some(UsageFormat::Pointers(_))));
        for wrong in ["", "cursor", "in=a", "in=/a,in=/b", "tokens=/a", "claude,codex"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(UsageFormat::parse(&[]), None);
    }

    #[test]
    fn people_read_the_words_in_json_and_all_other_lines() {
        let limit = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#;
        assert_eq!(
            readable(&format!("{CODEX}\nno JSON {{\n{limit}")),
            ["I fixed it.", "no JSON {", "You've hit your usage limit."]
        );
        assert_eq!(readable(CLAUDE), ["Fixed.", "Done."]);
        assert_eq!(readable(OPENCODE), ["Done."]);
        assert_eq!(
            readable("{\"x\":1}\n{\"y\":2}"),
            ["{\"x\":1}", "{\"y\":2}"],
            "nothing else is there"
        );
    }
}
