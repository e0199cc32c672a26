//! The report in a real browser: nothing that an attempt wrote runs, and the page's own script
//! does.
use std::fs;
use std::path::Path;

use crate::common::World;
use crate::tool::{CHROMIUM, trials};

trials! {
    nothing_that_attempts_wrote_runs: [CHROMIUM];
    policy_stops_what_would_run_all_the_same: [CHROMIUM];
    keys_go_from_candidate_to_candidate: [CHROMIUM];
    lists_choose_the_two_that_stand_side_by_side: [CHROMIUM];
    phone_shows_the_page_without_scrolling_sideways_or_breaking_words: [CHROMIUM];
    many_candidates_and_a_large_patch_are_quick_to_write_and_to_open: [CHROMIUM];
}

/// What a page would do if it could: each leaves a trace in the document.
const ATTACK: &str = r#"</script></style></title></textarea>--><script>document.title="owned"</script><img src=x onerror="document.title='owned'"><svg onload="document.title='owned'"><a id=owned href="javascript:document.title='owned'">x</a>]]>'"><b id=owned>{{7*7}}${7*7}"#;

/// The page in the browser, once it has settled, and what the console says.
fn shown(world: &World, file: &Path) -> (String, String) {
    let url = format!("file://{}", file.display());
    let options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=2000",
        "--dump-dom",
        &url,
    ];
    let answer = world.run(&world.home(), "chromium", options).expect(0);
    let console = answer.stderr.lines().filter(|line| line.contains("CONSOLE"));
    (answer.out(), console.map(|line| format!("{line}\n")).collect())
}

/// A world whose names, texts and messages are all attacks, and a report of it.
fn attacked() -> (World, String) {
    let world = World::new();
    let quoted = ATTACK.replace('\'', r"'\''");
    let named =
        r#"<∕script><script>document.title="owned"<∕script><img src=x onerror="document.title=1">"#;
    // More than markup: control characters, directions, ends of lines, bytes that are no text.
    let bytes = r"printf '\033[31m\033]0;owned\007\000\342\200\250\342\200\251\342\200\256\377\376\302\205\r\n'";
    let attempt = format!(
        "text='{quoted}'\nprintf '%s\\n' \"$text\"; {bytes}\nprintf '%s\\n' \"$text\" >>src/lib.txt\n\
         {bytes} | tr -d '\\0' >>src/lib.txt\nprintf x >'{named}'\nprintf y >\"$(printf 'a\\377\\033\\nb\\342\\200\\256')\"\n\
         {bytes} >binary\nprintf '%s' \"$text\" >>README\n"
    );
    world.write("attempt", attempt);
    let junit = format!(
        "<testsuite><testcase name=\"{}\"><failure/></testcase></testsuite>",
        ATTACK.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
    );
    world.write("result.xml", junit);
    let test = format!("cp result.xml junit.xml; printf '%s\\n' '{quoted}'; {bytes}; exit 1");
    world.write("check", test);
    world.commit(ATTACK);
    let junit = [
        "-c",
        "frites.oracle.junit=junit.xml",
        "frites",
        "run",
        "-q",
        "-n",
        "2",
        "--task",
        "<b id=owned>",
    ];
    let rest = ["-p", ATTACK, "--test", "sh check", "--", "sh", "attempt", ATTACK];
    let answer = world.run(&world.repo, "git", junit.into_iter().chain(rest));
    answer.expect(1);
    let file = world.frites(["report"]).expect(0).out().trim_end().to_owned();
    (world, file)
}

fn nothing_that_attempts_wrote_runs() {
    let (world, file) = attacked();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("<script").count(), 1, "only ours");
    assert!(text.matches("{{7*7}}").count() >= 9, "the attacks are there to be seen: {text}");
    let is_shown = |c: char| !c.is_control() || c == '\n' || c == '\t';
    assert!(text.chars().all(is_shown), "no control character is left");
    assert!(!text.contains(['\u{202e}', '\u{2028}', '\u{2029}']), "nothing turns the writing");
    let (dom, console) = shown(&world, Path::new(&file));
    assert!(dom.contains("<title>git frites: run 1</title>"), "{dom}");
    for trace in ["id=\"owned\"", "<img", "<svg onload", "<a id", "<b "] {
        assert!(!dom.contains(trace), "{trace}: {dom}");
    }
    assert!(dom.contains("<html lang=\"en\" class=\"js\">"), "its own script runs: {dom}");
    assert_eq!(console, "", "nothing is refused or fails");
}

fn policy_stops_what_would_run_all_the_same() {
    let (world, file) = attacked();
    let text = fs::read_to_string(&file).unwrap();
    // As if escaping had failed.
    let open = text.replacen("<main>", &format!("<main>{ATTACK}"), 1);
    let page = world.home().join("open.html");
    fs::write(&page, &open).unwrap();
    let (dom, console) = shown(&world, &page);
    assert!(
        dom.contains("id=\"owned\"") && dom.contains("<title>git frites: run 1</title>"),
        "{dom}"
    );
    assert!(console.contains("Content Security Policy"), "{console}");
    // Without the policy the same text does run: the trace is one.
    fs::write(&page, without_policy(&open)).unwrap();
    assert!(shown(&world, &page).0.contains("<title>owned</title>"));
}

fn keys_go_from_candidate_to_candidate() {
    let world = World::new();
    world.judged("grep -q good README", &["echo bad >README", "echo good >README"]);
    let file = world.frites(["report"]).expect(0).out().trim_end().to_owned();
    let text = fs::read_to_string(&file).unwrap();
    // Presses keys, and says after each which candidate is marked, and whether its change is open.
    let script = r#"<script>
        const seen = [...'jjjk7d1d'].map((key) => {
            document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            const here = document.querySelector('.candidate.here');
            return key + ':' + here.querySelector('h3').firstChild.textContent.trim() + (here.querySelector('.change').open ? '+' : '-');
        });
        document.title = seen.join(' ');
        </script></body>"#;
    let page = world.home().join("pressed.html");
    fs::write(&page, without_policy(&text).replace("</body>", script)).unwrap();
    let (dom, console) = shown(&world, &page);
    // The recommended candidate comes first, and its change is open; 7 is none.
    let expected = "<title>j:c2+ j:c1- j:c1- k:c2+ 7:c2+ d:c2- 1:c1- d:c1+</title>";
    assert!(dom.contains(expected), "{dom}");
    assert_eq!(console, "");
}

fn lists_choose_the_two_that_stand_side_by_side() {
    let world = World::new();
    world.judged("true", &["echo one >new", "echo two >new", "echo three >new"]);
    let file = world.frites(["report"]).expect(0).out().trim_end().to_owned();
    let text = fs::read_to_string(&file).unwrap();
    // One pair is taken out, as where there are too many. Says which pairs are shown, and what
    // else.
    let script = r#"<script>
        document.getElementById('p-2-3').remove();
        const seen = [['1', '2'], ['3', '1'], ['2', '3']].map(([one, other]) => {
            [left.value, right.value] = [one, other];
            right.dispatchEvent(new Event('change'));
            const pairs = [...document.querySelectorAll('.pair[open]:not([hidden])')].map((pair) => pair.id);
            const rest = document.getElementById('no-pair');
            return pairs.join('+') + (rest.hidden ? '' : rest.querySelector('code').textContent)
                + [...document.querySelectorAll('#beside > .change[open] .add .t')].map((line) => ' ' + line.textContent);
        });
        document.title = seen.join('; ');
        </script></body>"#;
    let page = world.home().join("chosen.html");
    fs::write(&page, without_policy(&text).replace("</body>", script)).unwrap();
    let (dom, console) = shown(&world, &page);
    let expected = "<title>p-1-2; p-1-3; git frites diff 1/c2 c3 two, three</title>";
    assert!(dom.contains(expected), "{dom}");
    assert_eq!(console, "");
}

/// The processor time of a shell command and of all that it starts, in seconds.
fn processor_time(world: &World, command: &str) -> f64 {
    let script = format!("TIMEFORMAT='%U %S'; time {command} >/dev/null 2>/dev/null");
    let answer = world.run(&world.repo, "bash", ["-c", &script]).expect(0);
    let last = answer.stderr.lines().last().unwrap();
    last.split(' ').map(|seconds| seconds.parse::<f64>().unwrap()).sum()
}

fn many_candidates_and_a_large_patch_are_quick_to_write_and_to_open() {
    let world = World::new();
    let lines = |word: &str, count: usize| -> String {
        (0..count)
            .map(|n| format!("line {n} of a text, {word} and then more of it: {}\n", n % 97))
            .collect()
    };
    world.write("src/small.txt", lines("before", 300));
    world.write("src/large.txt", lines("before", 100_000));
    world.commit("texts");
    let small =
        "sed -i.bak '7~20s/before/after/' src/small.txt; rm src/*.bak; basename \"$PWD\" >own";
    let large = "sed -i.bak s/before/after/ src/large.txt; rm src/*.bak";
    let attempts: Vec<&str> = (0..64).map(|n| if n == 7 { large } else { small }).collect();
    world.attempts(&attempts);
    world.frites(["judge", "-q", "--test", "true"]).expect(0);
    let patch = world.frites(["diff", "1/c8"]).expect(0).stdout.len();
    assert!(patch > 10_000_000, "{patch}");
    let written = processor_time(&world, "git-frites report -o page.html");
    assert!(written < 15.0, "{written} s, in a debug build");
    let text = fs::read_to_string(world.repo.join("page.html")).unwrap();
    assert!(text.contains("more changed lines") && text.contains("id=\"c-64\""));
    let open = |page: &Path| {
        let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --dump-dom";
        processor_time(&world, &format!("chromium {options} 'file://{}'", page.display()))
    };
    let empty = world.home().join("empty.html");
    fs::write(&empty, "<p>nothing").unwrap();
    let opened = open(&world.repo.join("page.html")) - open(&empty);
    assert!(opened < 2.0, "{opened} s");
}

/// A page without its policy, so that a test can add to it.
fn phone_shows_the_page_without_scrolling_sideways_or_breaking_words() {
    let world = World::new();
    let long = "x".repeat(80);
    world.attempts(&[
        &format!("echo {long} {long} >> src/lib.txt; echo y > {long}"),
        "seq 30 > README",
        "echo exit 1 > src/lib.txt",
    ]);
    let junit = format!(
        "echo '<testsuite><testcase name=\"{long}{long}\"><failure/></testcase></testsuite>' > r.xml; ! grep -q exit src/lib.txt"
    );
    world.git(["config", "frites.oracle.junit", "r.xml"]);
    world.git(["config", "frites.oracle.trust-exit", "true"]);
    world.frites(["judge", "-q", "--test", &junit]).expect(0);
    let file = world.frites(["report"]).expect(0).out().trim_end().to_owned();
    let page = without_policy(&fs::read_to_string(file).unwrap());
    // The page says how wide it is, from within a frame that is as narrow as a phone.
    let says = "<script>onload = () => {
        const stage = document.querySelector('#verdict table th').getBoundingClientRect().height;
        parent.postMessage({ width: document.documentElement.scrollWidth, stage }, '*');
    }</script></body>";
    let page = page.replace("</body>", says).replace('&', "&amp;").replace('"', "&quot;");
    let phone = format!(
        "<body><script>onmessage = (e) => document.title =
             e.data.width <= 360 && e.data.stage < 40 ? 'fits' : JSON.stringify(e.data)</script>\
         <iframe width=360 height=800 srcdoc=\"{page}\"></iframe>"
    );
    let file = world.home().join("phone.html");
    fs::write(&file, phone).unwrap();
    let (dom, _) = shown(&world, &file);
    assert!(dom.contains("<title>fits</title>"), "{}", &dom[..200]);
}

fn without_policy(page: &str) -> String {
    let policy = page.find("<meta http-equiv").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    format!("{}{}", &page[..policy], &page[end..])
}
