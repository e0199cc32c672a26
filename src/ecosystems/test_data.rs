//! Source files that only tests use, as data: expected output with a language's extension.
use crate::ecosystems::languages::{have_same_language, is_hidden_or_installed, language_of};
use crate::ecosystems::paths::{
    bare_name, directory_of, file_name, is_in_name, is_of_word, place_of_word,
};
use crate::ecosystems::touched::is_test_path;

/// If a word in a line of a test begins with one of these, the line reads a file.
const READS: [&str; 4] = ["include_", "open", "read", "slurp"];

/// If a word in a line of a test begins with one of these, the line loads or runs a file.
const LOADS_OR_RUNS: [&str; 13] = [
    "call", "check_", "command", "exec", "fork", "from", "import", "mock", "popen", "require",
    "run", "spawn", "system",
];

/// Words in a line of a test that runs a file. If a word is missing here, a file that a test runs
/// counts as data. An honest change of that file may then stay unverified.
const RUNS: [&str; 10] =
    ["bash", "dash", "include", "node", "perl", "php", "python", "ruby", "sh", "zsh"];

/// True if a line of a test reads a file as data. In the line, the file's name follows the name of
/// its directory. The line is no comment, and does not load or run the file. The line is in the
/// base, so no attempt can write it. A file in the root does not count, because it is probably the
/// program itself. In a file that is not code, a name with a position (`a.c:3`) does not count,
/// because it is part of an error message.
///
/// A program that the commands run (`is_run`) counts as such a test, too, unless it is a shell
/// script. If its line does not read, source in the program's own language does not count, because
/// the program may name it in order to run it.
pub fn is_read_in(test: &str, line: &str, path: &str, is_run: bool) -> bool {
    let Some(at) = place_of_word(line, file_name(path)) else { return false };
    let directory = file_name(directory_of(path));
    let is_comment = ["#", "//", "*"].iter().any(|start| line.trim_start().starts_with(start));
    let starts = |line: &str, starts: &[&str]| {
        words(line).any(|word| starts.iter().any(|s| word.to_ascii_lowercase().starts_with(s)))
    };
    let reads = starts(line, &READS);
    let is_check = is_run
        && language_of(test).is_some_and(|language| !language.is_shell())
        && (reads || !have_same_language(test, path));
    (is_test_path(test) || is_check)
        && !is_comment
        && (!is_data(test) || !is_position(&line[at + file_name(path).len()..]))
        && !directory.is_empty()
        && place_of_word(&line[..at], directory).is_some()
        && (reads || {
            let around = without_other_calls(line, at);
            !starts(&around, &LOADS_OR_RUNS) && !words(&around).any(runs_a_file)
        })
}

/// A line without the calls whose arguments do not contain the text at a place:
/// `equal(, golden("F"))` for `equal(run(x), golden("F"))` and the place of `F`. A call in the same
/// chain stays: `command("sh").arg("F")`.
fn without_other_calls(line: &str, at: usize) -> String {
    let (before, after) = line.split_at(at);
    let before: String =
        outside_calls(before.chars().rev(), ")]", "([").into_iter().rev().collect();
    before + &outside_calls(after.chars(), "([", ")]").into_iter().collect::<String>()
}

/// The characters of a text outside of its calls. `open` and `close` are the brackets around a call
/// in the direction of reading.
fn outside_calls(text: impl Iterator<Item = char>, open: &str, close: &str) -> Vec<char> {
    let is_backwards = open.starts_with(')');
    let is_in_chain = |c: char| is_in_name(c) || ".:!?".contains(c);
    let mut found = Vec::new();
    let mut depth = 0;
    let mut in_chain = false;
    let mut is_name_of_call = false;
    for c in text {
        if open.contains(c) {
            if depth == 0 && !in_chain && !is_backwards {
                let length = found.iter().rev().take_while(|c| is_in_chain(**c)).count();
                found.truncate(found.len() - length);
            }
            is_name_of_call =
                depth == 0 && !in_chain && is_backwards || depth > 0 && is_name_of_call;
            depth += 1;
        } else if close.contains(c) && depth > 0 {
            depth -= 1;
        } else if depth == 0 {
            is_name_of_call &= is_in_chain(c);
            if is_name_of_call {
                continue;
            }
            in_chain = close.contains(c) || in_chain && is_in_chain(c);
            found.push(c);
        }
    }
    found
}

/// True if a file of the tests has an extension, but not that of a language. Its lines may be lists
/// of files that a test reads, or messages.
pub fn is_data(test: &str) -> bool {
    language_of(test).is_none() && file_name(test).contains('.')
}

/// True if a text that follows the name of a file begins with a line's number: `:3`, `(3,5)`,
/// `", line 3`.
fn is_position(rest: &str) -> bool {
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start_matches(['"', '\'', ',', ' ']);
    rest.strip_prefix([':', '(']).is_some_and(is_number)
        || ["line ", "on line "].iter().any(|word| rest.strip_prefix(word).is_some_and(is_number))
}

/// True if a line in another file of the base uses this file, which is then more than test data.
/// Such a line names the file. In code of the same language, it may also name the file's stem or
/// directory.
pub fn is_used_in(other: &str, line: &str, path: &str) -> bool {
    let directory = file_name(directory_of(path));
    let is_same_language = have_same_language(path, other);
    let has = |word: &str| !word.is_empty() && place_of_word(line, word).is_some();
    other != path
        && (has(file_name(path)) || is_same_language && (has(bare_name(path)) || has(directory)))
        && !is_test_path(other)
        && !is_hidden_or_installed(other)
}

/// The words that [`is_used_in`] looks for, besides the name of the file.
pub fn words_of_use(path: &str) -> Vec<String> {
    let words = [bare_name(path), file_name(directory_of(path))];
    words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty())
}

/// True for interpreters such as `python3`, and for `include`, with which some languages run
/// another file.
fn runs_a_file(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    RUNS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_read_a_file_that_they_name_and_neither_load_nor_run() {
        let cases = [
            ("x = open('site/page.html').read()", true),
            ("const page = join(__dirname, '..', 'site', 'page.html')", true),
            ("let x = include_str!(\"../site/page.html\");", true),
            ("assert run('a') == open('site/page.html').read()", true),
            ("const x = fs.readFileSync(require.resolve('../site/page.html'))", true),
            ("open('page.html')", false),
            ("open('site/webpage.html')", false),
            ("# as in site/page.html", false),
            ("import x from '../site/page.html'", false),
            ("jest.mock('../site/page.html')", false),
            ("#include \"site/page.html\"", false),
            ("['python3', 'site/page.html']", false),
            ("subprocess.run(['site/page.html'])", false),
            // Only a call that gets the path counts.
            ("self.assertEqual(run('a'), golden('site/page.html'))", true),
            ("self.assertEqual(golden('site/page.html'), run('a').stdout)", true),
            ("[ \"$(sh a)\" = \"$(cat site/page.html)\" ]", true),
            ("assert golden('site/page.html') == run(['a'], x=[1])", true),
            ("run([python, join(ROOT, 'site', 'page.html')])", false),
            ("equal(run('a'), run('site/page.html'))", false),
            ("command('sh').arg('site/page.html').output()", false),
            ("path('site/page.html').run()", false),
        ];
        for (line, expected) in cases {
            assert_eq!(is_read_in("tests/a.py", line, "site/page.html", false), expected, "{line}");
        }
        // In data, a line may also be a part of a message.
        let cases = [
            ("- site/page.html", true),
            ("{\"line\": 3, \"path\": \"site/page.html\"}", true),
            (" --> site/page.html:3:5", false),
            ("site/page.html(3,5): error", false),
            ("  File \"/x/site/page.html\", line 3, in add", false),
            ("Warning: x in site/page.html on line 3", false),
        ];
        for (line, expected) in cases {
            assert_eq!(
                is_read_in("tests/a.yaml", line, "site/page.html", false),
                expected,
                "{line}"
            );
        }
        let cases = [
            ("tests/a.py", "goto('site/page.html:3')", "site/page.html", false, true),
            ("tests/a.py", "open('page.html').read()", "page.html", false, false),
            ("a.py", "open('site/page.html')", "site/page.html", false, false),
            // Programs that the commands run.
            ("a.py", "open('site/page.html')", "site/page.html", true, true),
            ("a.py", "WANT = 'site/page.html'", "site/page.html", true, true),
            ("a.py", "open('app/main.py').read()", "app/main.py", true, true),
            ("a.py", "APP = 'app/main.py'", "app/main.py", true, false),
            ("a.py", "run(['node', 'app/main.js'])", "app/main.js", true, false),
            ("a.sh", "prettier --check site/page.html", "site/page.html", true, false),
            ("Makefile", "prettier site/page.html", "site/page.html", true, false),
        ];
        for (test, line, path, is_run, expected) in cases {
            assert_eq!(is_read_in(test, line, path, is_run), expected, "{test}: {line}");
        }
    }

    #[test]
    fn product_uses_a_file_that_it_names() {
        let cases = [
            ("a.py", "render('page.html')", "site/page.html", true),
            ("a.py", "walk('site')", "site/page.html", false),
            ("site/index.html", "<a href=page>", "site/page.html", true),
            ("a.py", "from app import x", "app/main.py", true),
            ("tests/a.py", "open('site/page.html')", "site/page.html", false),
            (".github/x.yml", "page.html", "site/page.html", false),
            ("site/page.html", "page.html", "site/page.html", false),
        ];
        for (other, line, path, expected) in cases {
            assert_eq!(is_used_in(other, line, path), expected, "{other}: {line}");
        }
    }
}
