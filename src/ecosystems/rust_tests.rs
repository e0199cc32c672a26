//! The tests in a Rust file. They are found among the tokens of the file. So texts in strings and
//! comments do not change what counts as a test, and neither does an unusual layout.
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, extra};

use crate::ecosystems::ecosystem::{TestImport, TestPart, TestParts};
use crate::ecosystems::test_names::names_tests;

/// The maximum number of brackets around a token. The tokens are read by recursion.
const DEEPEST: usize = 200;

/// The parts of a Rust file that only tests compile: modules, functions and other items under
/// `#[cfg(test)]`, and functions with an attribute for tests. A file under `#![cfg(test)]` is one
/// part. Returns `None` if the text is no Rust, or has too many brackets in brackets.
pub fn parts(text: &str) -> Option<TestParts> {
    let tokens = tokens(text)?;
    let conditions = conditions_inside(&tokens);
    let root = Scope { id: id_of(0, &conditions.texts), is_module: true };
    let mut found = TestParts { root: root.id, ..TestParts::default() };
    read_items(tokens, root, &mut found)?;
    for import in &mut found.imports {
        import.items = imported_items(text.get(import.range.clone())?);
    }
    if conditions.need_test {
        found.parts = vec![TestPart {
            range: 0..text.len(),
            scope: root.id,
            name: String::new(),
            is_test: true,
            is_separable: true,
        }];
    }
    Some(found)
}

/// The text with blanks in place of comments and literals. Returns `None` if it is no Rust.
pub fn code(text: &str) -> Option<String> {
    let tokens = tokens(text)?;
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let mut show = |range: Range<usize>| {
        code.extend(text[at..range.start].chars().map(|c| if c == '\n' { c } else { ' ' }));
        code.push_str(&text[range.clone()]);
        at = range.end;
    };
    let mut open = vec![(tokens.into_iter(), text.len()..text.len())];
    while let Some((innermost, end)) = open.last_mut() {
        match innermost.next() {
            Some(TokenTree::Group(group)) => {
                let start = group.span_open().byte_range();
                // All tokens of a doc comment have the place of the comment.
                if !text[start.clone()].starts_with('/') {
                    show(start);
                    open.push((group.stream().into_iter(), group.span_close().byte_range()));
                }
            }
            Some(TokenTree::Ident(word)) => {
                let mut place = word.span().byte_range();
                // `r#assert_eq` is the name `assert_eq`.
                place.start += if text[place.clone()].starts_with("r#") { 2 } else { 0 };
                show(place);
            }
            Some(TokenTree::Punct(punct)) if punct.span().byte_range().len() == 1 => {
                show(punct.span().byte_range());
            }
            Some(_) => {}
            None => {
                show(end.clone());
                open.pop();
            }
        }
    }
    Some(code)
}

/// The tokens of a file; `None` if it is no Rust.
fn tokens(text: &str) -> Option<TokenStream> {
    // The lexer keeps a copy of each text until this call.
    extra::invalidate_current_thread_spans();
    let tokens: TokenStream = without_shebang(text)?.parse().ok()?;
    let mut open = vec![tokens.clone().into_iter()];
    while let Some(innermost) = open.last_mut() {
        match innermost.next() {
            Some(TokenTree::Group(_)) if open.len() > DEEPEST => return None,
            Some(TokenTree::Group(group)) => open.push(group.stream().into_iter()),
            Some(TokenTree::Literal(text)) if may_end_elsewhere(&text.to_string()) => return None,
            Some(_) => {}
            None => drop(open.pop()),
        }
    }
    Some(tokens)
}

/// The text with blanks in place of a first line that names an interpreter. rustc skips this line,
/// but the lexer does not. Returns `None` if the line may be code: `#!` may also begin an
/// attribute, even after a comment.
fn without_shebang(text: &str) -> Option<Cow<'_, str>> {
    let start = text.trim_start_matches('\u{feff}');
    let Some(line) = start.strip_prefix("#!").and_then(|rest| rest.lines().next()) else {
        return Some(text.into());
    };
    match line.trim_start().as_bytes() {
        [b'[', ..] => Some(text.into()),
        [b'/', c, ..] if !b"/*".contains(c) => {
            let rest = &start[2 + line.len()..];
            Some((" ".repeat(text.len() - rest.len()) + rest).into())
        }
        _ => None,
    }
}

/// True for a raw C string (`cr"…"`) that may end at another place in editions before 2021, because
/// these read it as a name and a string.
fn may_end_elsewhere(literal: &str) -> bool {
    literal.starts_with("cr#") || literal.starts_with("cr\"") && literal.ends_with("\\\"")
}

/// The modules, macros and code around some items.
#[derive(Clone, Copy)]
struct Scope {
    /// A hash of the modules and macros around the items, with the conditions of these modules.
    id: u64,
    /// True if the items are in modules alone, so that each can be put back by itself.
    is_module: bool,
}

fn id_of(outer: u64, label: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (outer, label).hash(&mut hasher);
    hasher.finish()
}

/// The inner attributes with conditions (`#![cfg(unix)]`) of a file or a module.
#[derive(Default)]
struct InnerConditions {
    texts: Vec<String>,
    /// True if one of them holds only in a build for tests.
    need_test: bool,
}

fn conditions_inside(tokens: &TokenStream) -> InnerConditions {
    let mut found = InnerConditions::default();
    let mut rest = tokens.clone().into_iter().peekable();
    while let Some(TokenTree::Punct(mark)) = rest.next()
        && mark.as_char() == '#'
        && rest.next_if(|next| is_punct(next, '!')).is_some()
        && let Some(TokenTree::Group(attribute)) = rest.next()
    {
        let mut parts = attribute.stream().into_iter();
        let name = parts.next().map(|token| plain(&token.to_string())).unwrap_or_default();
        if name.starts_with("cfg") {
            found.texts.push(attribute.to_string());
        }
        if name == "cfg"
            && let Some(TokenTree::Group(list)) = parts.next()
        {
            found.need_test |= needs_test(list.stream());
        }
    }
    found
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

/// True if a condition (the text in `cfg(…)`) holds only in a build for tests. `any(test, …)` is
/// such a condition if it otherwise names only features whose names mean tests (`test-util`).
fn needs_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    let [TokenTree::Ident(word), rest @ ..] = tokens.as_slice() else { return false };
    match (word.to_string().as_str(), rest) {
        ("test", []) => true,
        ("all", [TokenTree::Group(list)]) => {
            split_at_commas(list.stream()).into_iter().any(needs_test)
        }
        ("any", [TokenTree::Group(list)]) => {
            let mut parts = split_at_commas(list.stream());
            parts.retain(|part| !part.is_empty() && !is_feature_for_tests(part));
            !parts.is_empty() && parts.into_iter().all(needs_test)
        }
        _ => false,
    }
}

/// True for a condition such as `feature = "test-util"`.
fn is_feature_for_tests(condition: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.clone().into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(word), TokenTree::Punct(_), TokenTree::Literal(name)] => {
            word == "feature" && names_tests(&name.to_string())
        }
        _ => false,
    }
}

/// True if an attribute turns a function into a test: `test`, `rstest`, `tokio::test`, or
/// `cfg_attr(x, test)`.
fn marks_test(attribute: TokenStream) -> bool {
    let mut name = String::new();
    for token in attribute {
        match token {
            TokenTree::Ident(word) => name = plain(&word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            TokenTree::Group(list) if name == "cfg_attr" => {
                return split_at_commas(list.stream()).into_iter().skip(1).any(marks_test);
            }
            _ => break,
        }
    }
    ["test", "rstest", "quickcheck"].contains(&name.as_str())
        || name.starts_with("test_")
        || name.ends_with("_test")
}

fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(|token| is_punct(token, ','));
    parts.map(|part| part.iter().cloned().collect()).collect()
}

/// A name without the mark of a raw name.
fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

/// An item that is being read: an item of a module, or a field, an arm, a statement.
#[derive(Default)]
struct Item {
    /// The place of the part that was read; empty if nothing was read.
    range: Range<usize>,
    /// The number of parts that were found before the item.
    found_before: usize,
    is_for_tests: bool,
    is_test: bool,
    /// A hash of the attributes.
    conditions: u64,
    /// The last token; empty before the first token, and after brackets.
    last: String,
    /// The keyword and the name of a function or a module; the name of a macro that is called, with
    /// `!`.
    name: String,
    /// True if the item has tokens after its attributes.
    has_begun: bool,
    /// True if one of these tokens is punctuation. Then keywords belong to types or expressions.
    has_punctuation: bool,
    /// True after a keyword of an item that ends with its braces, not at a comma.
    is_declaration: bool,
    /// True after a keyword of an item that ends only at a semicolon.
    is_until_semicolon: bool,
    is_import: bool,
}

/// The attributes that neither switch an item off nor change it.
const NOTES: [&str; 6] = ["allow", "deny", "doc", "expect", "forbid", "warn"];

impl Item {
    fn extend_to(&mut self, range: &Range<usize>) {
        let start = if self.range.is_empty() { range.start } else { self.range.start };
        self.range = start..range.end;
    }

    fn add_attribute(&mut self, attribute: &Group) {
        let mut tokens = attribute.stream().into_iter();
        match (tokens.next(), tokens.next()) {
            (Some(TokenTree::Ident(name)), _) if NOTES.iter().any(|note| name == note) => return,
            (Some(TokenTree::Ident(name)), Some(TokenTree::Group(list))) if name == "cfg" => {
                self.is_for_tests |= needs_test(list.stream());
            }
            _ => {}
        }
        self.is_test |= marks_test(attribute.stream());
        self.conditions = id_of(self.conditions, &attribute.to_string());
    }

    fn add_word(&mut self, token: &TokenTree) {
        let raw = token.to_string();
        let word = plain(&raw);
        if self.name.is_empty() {
            if !self.has_punctuation && ["fn", "mod"].contains(&self.last.as_str()) {
                self.name = format!("{} {word}", self.last);
            } else if word == "!" {
                self.name = format!("{}!", self.last);
            }
        }
        self.has_punctuation |= matches!(token, TokenTree::Punct(_));
        match raw.as_str() {
            _ if self.has_punctuation => {}
            "enum" | "fn" | "impl" | "mod" | "struct" | "trait" | "union" => {
                self.is_declaration = true;
            }
            "const" | "let" | "static" | "type" | "use" => {
                self.is_import |= raw == "use";
                self.is_until_semicolon = true;
            }
            _ => {}
        }
        self.last = word;
        self.has_begun = true;
    }

    /// True if braces are the end of the item, and not a part of an expression, a pattern or a
    /// type.
    fn ends_with_braces(&self, next: Option<&TokenTree>) -> bool {
        let is_inside = self.last == "<"
            || self.is_declaration && self.last == ","
            || self.is_until_semicolon && !self.is_declaration;
        let goes_on = match next {
            Some(TokenTree::Punct(punct)) => "=.?".contains(punct.as_char()),
            Some(TokenTree::Ident(word)) => word == "else",
            _ => false,
        };
        !is_inside && (self.is_declaration || !goes_on)
    }

    /// The scope of the items in brackets of this item.
    fn scope_inside(&self, group: &Group, outer: Scope) -> Scope {
        if self.last == "!" || self.name == "macro_rules!" {
            Scope { id: id_of(outer.id, &self.name), is_module: false }
        } else if !outer.is_module {
            outer
        } else if self.name.starts_with("mod ") {
            let inside = conditions_inside(&group.stream());
            let conditions = (&self.name, self.conditions, inside.texts);
            Scope { id: id_of(outer.id, &conditions), is_module: true }
        } else {
            Scope { id: id_of(outer.id, &"code"), is_module: false }
        }
    }

    /// Ends the item, and begins the next one. If the item is a part, it replaces the parts inside
    /// it.
    fn end(&mut self, has_body: bool, scope: Scope, found: &mut TestParts) {
        let is_test = self.is_test
            || self.is_for_tests && has_body && self.name.starts_with("mod ")
            || ["proptest!", "quickcheck!"].contains(&self.name.as_str());
        if self.is_for_tests && self.is_import {
            let range = self.range.clone();
            found.imports.push(TestImport { range, scope: scope.id, items: Vec::new() });
        }
        if !self.is_for_tests && !has_body && self.name.starts_with("mod ") {
            found.modules.insert((scope.id, self.name.clone()), self.conditions);
        }
        if is_test || self.is_for_tests && !self.is_import {
            found.parts.truncate(self.found_before);
            found.parts.push(TestPart {
                range: self.range.clone(),
                scope: scope.id,
                name: std::mem::take(&mut self.name),
                is_test,
                is_separable: is_test && scope.is_module,
            });
        }
        *self = Item { found_before: found.parts.len(), ..Item::default() };
    }
}

/// The items that an import names, each with its path and its new name: `a::b` and `a::c as d` for
/// `use a::{b, c as d};`.
fn imported_items(text: &str) -> Vec<String> {
    let Ok(tokens) = text.parse::<TokenStream>() else { return Vec::new() };
    let mut tokens = tokens.into_iter();
    let mut found = Vec::new();
    if tokens.any(|token| matches!(token, TokenTree::Ident(word) if word == "use")) {
        let tree = tokens.take_while(|token| !is_punct(token, ';')).collect();
        add_imported_items(tree, "", &mut found);
    }
    found
}

/// Adds the items that a tree of an import names below the path `above`.
fn add_imported_items(tree: TokenStream, above: &str, found: &mut Vec<String>) {
    for part in split_at_commas(tree) {
        let mut path = above.to_owned();
        let mut inside = None;
        for token in part {
            match token {
                TokenTree::Group(group) => inside = Some(group.stream()),
                TokenTree::Ident(word) if word == "as" => path.push_str(" as "),
                other => path.push_str(&other.to_string()),
            }
        }
        match inside {
            Some(tree) => add_imported_items(tree, &path, found),
            None if path != above => found.push(path),
            None => {}
        }
    }
}

/// Finds the parts in some items. Returns `None` if an attribute has no item: such an attribute
/// would apply to the text that is put back behind it.
fn read_items(tokens: TokenStream, scope: Scope, found: &mut TestParts) -> Option<()> {
    let mut tokens = tokens.into_iter().peekable();
    let mut item = Item { found_before: found.parts.len(), ..Item::default() };
    while let Some(token) = tokens.next() {
        let range = token.span().byte_range();
        if is_punct(&token, '#') {
            let is_inner = tokens.next_if(|next| is_punct(next, '!')).is_some();
            let attribute = tokens.next_if(|next| {
                matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
            });
            if let Some(TokenTree::Group(attribute)) = attribute {
                if item.has_begun {
                    item.end(false, scope, found);
                }
                if !is_inner {
                    item.extend_to(&range);
                    item.extend_to(&attribute.span().byte_range());
                    item.add_attribute(&attribute);
                }
                continue;
            }
        }
        item.extend_to(&range);
        let mut has_body = false;
        let is_end = match &token {
            TokenTree::Group(group) => {
                item.is_for_tests |=
                    item.name.starts_with("mod ") && conditions_inside(&group.stream()).need_test;
                read_items(group.stream(), item.scope_inside(group, scope), found)?;
                has_body =
                    group.delimiter() == Delimiter::Brace && item.ends_with_braces(tokens.peek());
                item.last.clear();
                item.has_begun = true;
                has_body
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => true,
            TokenTree::Punct(punct) if punct.as_char() == ',' && !item.is_declaration => {
                !item.is_until_semicolon
            }
            token => {
                item.add_word(token);
                false
            }
        };
        if is_end {
            item.end(has_body, scope, found);
        }
    }
    let is_complete = item.has_begun || item.range.is_empty() || !scope.is_module;
    item.end(false, scope, found);
    is_complete.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, name and kind of each part: `T` for a test that is separable, `t` for another
    /// test, `i` for an item.
    fn found(text: &str) -> Vec<(&str, char)> {
        let read = parts(text).expect("the text can be read");
        let parts = read.parts.into_iter().map(|part| {
            let kind = if part.is_separable { 'T' } else { 'i' };
            (&text[part.range], if part.is_test && kind == 'i' { 't' } else { kind })
        });
        parts.collect()
    }

    #[test]
    fn condition_inside_and_a_feature_for_tests_make_a_part() {
        for text in [
            "#![allow(x)]\n#![cfg(test)]\npub const A: u8 = 1;\n",
            "mod m {\n    #![cfg(test)]\n    fn f() {}\n}",
            "#[cfg(any(test, feature = \"test-util\"))]\nmod m {\n    fn f() {}\n}",
        ] {
            assert_eq!(found(text), [(text, 'T')], "{text}");
        }
        for text in [
            "#![cfg(unix)]\nmod m {}",
            "#[cfg(any(test, feature = \"std\"))]\nmod m {}",
            "#[cfg(any(test, unix))]\nmod m {}",
            "#[cfg(not(test))]\nmod m {}",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
        let read = parts("#[cfg(test)]\nuse a::{\n    b,\n};\nuse c::d;\n").expect("Rust");
        assert!(read.parts.is_empty());
        let import = read.imports.first().expect("an import for tests");
        assert_eq!((import.range.clone(), &import.items), (0..31, &vec!["a::b".to_owned()]));
        let read =
            parts("#[cfg(test)] pub(crate) use a::{b::{self, c as d}, e::*};").expect("Rust");
        assert_eq!(read.imports[0].items, ["a::b::self", "a::b::c as d", "a::e::*"]);
    }

    #[test]
    fn parts_for_tests_end_where_their_items_end() {
        for (part, kind) in [
            ("#[cfg(test)]\nmod t {\n    const A: &str = r#\"{\n}\"#;\n}", 'T'),
            (
                "/// Text.\n#[ cfg( all(unix, test)) ]\n#[allow(x)]\npub mod t { #[test] fn a() {} }",
                'T',
            ),
            ("#[test ]\nfn a() -> Vec<{ 1 }> { b(\"}\") }", 'T'),
            ("#[tokio::test(a = 1)]\nasync fn a() {}", 'T'),
            ("#[cfg_attr(a, b::test)] fn a() {}", 'T'),
            ("proptest! { #[test] fn a(x in 0..1) {} }", 'T'),
            ("#[cfg(test)]\nmod tests;", 'i'),
            ("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;", 'i'),
            ("#[cfg(test)]\nconst A: B = B { c: 1 };", 'i'),
            ("#[cfg(test)] pub const fn a() {}", 'i'),
        ] {
            let text = format!(
                "fn x() {{}} // '\n{part}\nuse y::{{z}};\nfn z<'a>() {{ br\"\\\"; '{{' }}\n"
            );
            assert_eq!(found(&text), [(part, kind)], "{text}");
        }
        for (text, part, kind) in [
            (
                "impl A { #[cfg(test)] fn a() { if b {} } fn c() {} }",
                "#[cfg(test)] fn a() { if b {} }",
                'i',
            ),
            ("struct A { #[cfg(test)] a: u8, b: u8 }", "#[cfg(test)] a: u8,", 'i'),
            (
                "struct A { #[cfg(test)] r#type: &'static fn(u8), b: u8 }",
                "#[cfg(test)] r#type: &'static fn(u8),",
                'i',
            ),
            ("m! { #[test] a => b #[x] c; }", "#[test] a => b", 't'),
            (
                "fn a() { #[cfg(test)] if b {} else { c } d }",
                "#[cfg(test)] if b {} else { c }",
                'i',
            ),
            (
                "fn a() { match b { #[cfg(test)] C { .. } => {} _ => {} } }",
                "#[cfg(test)] C { .. } => {}",
                'i',
            ),
            ("m! { #[test] fn a() {} fn b() {} }", "#[test] fn a() {}", 't'),
            ("mod b { #![x] #[cfg(test)] mod t {} }", "#[cfg(test)] mod t {}", 'T'),
            (
                "\u{feff}#! /bin/x -a'\n#[test] fn a() { cr\"\\d\" }",
                "#[test] fn a() { cr\"\\d\" }",
                'T',
            ),
        ] {
            assert_eq!(found(text), [(part, kind)], "{text}");
        }
        for none in [
            "#[cfg(not(test))]\nmod a {}",
            "#[cfg(any(test, feature = \"x\"))]\nmod a {}",
            "#[cfg(feature = \"test\")]\nmod a {}",
            "#[cfg(test)]\nuse a::b;",
            "/* #[cfg(test)] mod t {} */ fn a() { \"#[test] fn a() {}\" }",
            "\u{feff}#![allow(x)]\n//! Text.\nfn a() {}",
        ] {
            assert_eq!(found(none), [], "{none}");
        }
    }

    #[test]
    fn code_has_no_comments_and_no_literals() {
        let text = "/// a\n//! é\nfn a(b: &'c str) { /* \n é */ \"x\ny\"; 'z' / 1 } // b\n#[c]";
        let lines = ["", "", "fn a(b: &'c str) {", "", "  ;     /   }", "#[c]"];
        let code = code(text).expect("the text can be read");
        assert_eq!(code.lines().map(str::trim_end).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn scope_is_what_encloses_a_part() {
        let scope = |text: &str| parts(text).expect("the text can be read").parts[0].scope;
        let [test, inner] = ["#[test] fn a() {}", "mod b { #[test] fn a() {} }"];
        assert_eq!(scope(&format!("fn c() {{}} {test}")), scope(test));
        assert_eq!(scope(&inner.replace("mod b", "/// c\n#[allow(d)] pub mod b")), scope(inner));
        let mut scopes = std::collections::BTreeSet::from([scope(test), scope(inner)]);
        for other in [
            format!("//! b\n#![r#cfg(a)] {test}"),
            format!("#[cfg(a)] {inner}"),
            inner.replace("{ #[", "{ #![cfg(a)] #["),
            inner.replace("mod b", "mod c"),
            inner.replace("mod b", "b!"),
            inner.replace("mod b", "fn b()"),
        ] {
            assert!(scopes.insert(scope(&other)), "{other}");
        }
    }

    #[test]
    fn text_that_is_no_rust_or_too_deep_has_no_parts() {
        let deep = |depth: usize| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parts(&deep(DEEPEST)).is_some());
        for text in [
            "fn a() {",
            "/*",
            "cr#\"\"#",
            "cr\"\\\"",
            "fn a() {}\n#[cfg(any())]\n",
            "#!//x\n[a]\nfn a() {}",
            "#!x\nfn a() {}",
            &deep(200_000),
        ] {
            assert!(parts(text).is_none(), "{}", &text[..text.len().min(20)]);
        }
    }
}
