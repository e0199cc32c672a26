use proptest::prelude::*;

use super::*;
use crate::ecosystems::touched::is_named;

/// The files of a project that a command runs.
fn of(files: &[(&str, &str)], command: &str) -> Vec<String> {
    named(files, command).run.into_iter().collect()
}

/// The files of a project that a command runs or compares.
fn named(files: &[(&str, &str)], command: &str) -> NamedFiles {
    let text = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        Ok(file.map(|(_, text)| (*text).to_owned()))
    };
    let tree = TreeFiles::of(files.iter().map(|(path, _)| (*path, false)), &text);
    named_files(&tree, &[command.to_owned()]).expect("nothing fails to be read")
}

#[test]
fn path_may_begin_in_any_directory_to_which_a_variable_leads() {
    let script = "for p in packages/*; do\n  (cd \"$p\" && python3 checks/run.py)\ndone\n";
    let files = [("run.sh", script), ("packages/calc/checks/run.py", ""), ("src/run.py", "")];
    assert_eq!(of(&files, "sh run.sh"), ["packages/calc/checks/run.py", "run.sh"]);
    let elsewhere = [("run.sh", "cd src\npython3 checks/run.py\n"), files[1], files[2]];
    assert!(!of(&elsewhere, "sh run.sh").contains(&"packages/calc/checks/run.py".to_owned()));
}

#[test]
fn scripts_of_all_members_of_a_workspace_may_run() {
    let member = r#"{"scripts": {"test": "node checks/run.js", "other": "node checks/other.js"}}"#;
    let root = r#"{"workspaces": ["a"], "scripts": {"test": "npm test --workspaces"}}"#;
    let files = |root| {
        let own = [("a/checks/run.js", ""), ("a/checks/other.js", "")];
        [vec![("package.json", root), ("a/package.json", member)], own.to_vec()].concat()
    };
    assert_eq!(of(&files(root), "npm test"), ["a/checks/run.js"]);
    assert_eq!(of(&files(root), "turbo run test"), ["a/checks/run.js"]);
    let looping = r#"{"scripts": {"test": "for d in *; do (cd $d && npm test); done"}}"#;
    assert!(of(&files(looping), "npm test").contains(&"a/checks/run.js".to_owned()));
    let alone = r#"{"scripts": {"test": "jest"}}"#;
    assert!(of(&files(alone), "npm test").is_empty());
}

#[test]
fn source_that_a_program_names_in_any_way_is_run() {
    let files = [
        ("src/a.c", ""),
        ("src/index.js", ""),
        ("src/lib.rs", ""),
        ("src/calc.py", ""),
        ("v/all.js", ""),
        ("v/all.py", ""),
        ("v/sub/__main__.py", ""),
        ("v/js/index.js", ""),
        ("v/js/data.json", ""),
        ("cmd/run.go", "package main\n"),
        ("x/src/main.rs", ""),
        ("tasks.py", ""),
        ("x/Cargo.toml", "[package]\nname = 'calc-verify'\n"),
        ("src/bin/ci.rs", ""),
        ("v/ci.rs", ""),
        ("Cargo.toml", "[package]\nname = 'calc'\n[[bin]]\nname = 'check'\npath = 'v/ci.rs'\n"),
        (".cargo/config.toml", "[alias]\nverify = 'run -p calc-verify'\n"),
        ("package.json", "{\"main\": \"v/all\"}"),
    ];
    let js = &["v/all.js"][..];
    let py = &["v/all.py"][..];
    let none = &[][..];
    let cases = [
        ("new-program v/all.js", js),
        ("new-program --check=v/all.js", js),
        ("new-program -rv/all.js x.json", js),
        ("python3 <v/all.py", py),
        ("python3 - <./v/all.py >log; cat log", none),
        ("cat v/all.py | sed s/a/b/ | python3", py),
        ("eval \"$(cat v/all.js)\"", js),
        ("X=$(date) node v/all.js", js),
        ("sh -c '\nnode v/all.js\n'", js),
        ("t=v/all.js; node $t", js),
        ("t=$(cat v/all.js); eval \"$t\"", js),
        ("t=$(cat src/a.c); test \"$t\" = good", none),
        ("node \"$PWD/v/all.js\"", js),
        ("node $(pwd)/v/all.js", js),
        ("cd v && node all", &["v/all.js", "v/all.py"]),
        ("node v/all", &["v/all.js", "v/all.py"]),
        ("node -e \"require('./v/all.js')\"", js),
        ("ruby -e 'load %q(v/all.js)'", js),
        ("ls v/*.js | while read f; do node $f; done", &["v/*.js"]),
        ("ls v/*.js | parallel node", &["v/*.js"]),
        ("python3 v/sub", &["v/sub/__main__.py"]),
        ("cargo run -q --bin ci -- all", &["src/bin/ci.rs"]),
        ("cargo run --bin=check", &["v/ci.rs"]),
        ("cargo +nightly r -pcalc-verify", &["x/src/main.rs"]),
        ("cargo run --manifest-path ./x/Cargo.toml", &["x/src/main.rs"]),
        ("cargo verify -- all", &["x/src/main.rs"]),
        ("cargo run", none),
        ("uv run inv test", &["tasks.py"]),
        ("cargo run -p calc", &["v/ci.rs"]),
        ("cargo build --bin ci", none),
        ("python3 -m v.sub", &["v/sub/__main__.py"]),
        ("node v/js", &["v/js/index.js"]),
        ("node .", &["package.json", "v/all.js", "v/all.py"]),
        ("go run ./cmd", &["cmd/run.go"]),
        ("cargo run -p x", &["x/src/main.rs"]),
        ("pytest v/all.py", py),
        ("pytest v/*.py", &["v/*.py"]),
        ("python3 manage.py test --settings=v.all", py),
        ("SETTINGS=v.all python3 manage.py test", py),
        ("export SETTINGS=v.all; python3 manage.py test", py),
        ("pytest -pv.all", py),
        ("PYTEST_ADDOPTS='-p v.all' pytest", py),
        ("node --test v/*.js", &["v/*.js"]),
        ("jest 'tests/*.js' 'v/*.test.js'", none),
        ("cp -r src v out/ && node out/v/all.js", js),
        ("cp v/all.js t.js && node t.js", js),
        ("cat src/a.c v/all.js > t.js; node t.js", &["src/a.c", "v/all.js"]),
        ("eslint --rules=v/all.js src", js),
        // The program before the file only looks at it.
        ("gcc -c src/a.c", none),
        ("$CC -o a src/a.c", none),
        ("mypy src", none),
        ("eslint src/index.js", none),
        ("npx eslint src/index.js", none),
        ("python3 -m mypy src/calc.py", none),
        ("python -m compileall src", none),
        ("coverage run --source=src -m pytest", none),
        ("coverage run --include='v/*.py' -m pytest", none),
        ("stubtest v.all", none),
        ("ruff check .", none),
        ("rustfmt src/lib.rs", none),
        ("terser src/index.js -o out.js", none),
        ("tsc src/index.js", none),
        ("pytest src", none),
        ("jest src", none),
        ("python3 -c 'import v.all'", none),
        ("python3 -c 'import src'", none),
        ("grep -rn foo src/a.c | sort | head", none),
        ("test \"$(cat src/a.c)\" = good", none),
        ("if [ -e src/a.c ]; then echo src/a.c; fi", none),
        ("cp src/index.js dist/", none),
        // Copies by a pattern or in a loop, relative links, and joined files.
        ("cp v/*.js out; node out/all.js", js),
        ("cp v/*.js out; for f in out/*.js; do node $f; done", &["out/*.js", "v/*.js"]),
        (
            "cp -r v/js out; for f in out/*.js; do node $f; done",
            &["out/*.js", "v/js/*.js", "v/js/out/*.js"],
        ),
        ("for f in v/*.js; do cp $f out/; done; node out/all.js", js),
        ("ln -s ../v/all.js out/t.js; node out/t.js", js),
        ("cd out && ln -s ../v/all.js t.js; node t.js", js),
        ("cat v/*.js >t.js; node t.js", &["v/*.js"]),
        ("for f in v/*.js; do cat $f >>t.js; done; node t.js", &["v/*.js"]),
        ("for f in v/*.js; do cat $f; done >t.js; node t.js", &["v/*.js"]),
        ("(echo 1; cat v/all.js) >t.js; node t.js", js),
        ("{ echo 1; cat v/all.js; } >t.js && node t.js", js),
        ("(echo 1; cat v/all.js) | node", js),
        ("cat src/*.c >t.c; cc t.c; node v/all.js", js),
        ("cp src/*.js dist; node v/all.js", js),
        ("find v -name '*.js' -exec cp {} out \\;; node out/all.js", js),
        ("for f in $(ls v/*.js); do cp $f out/$(basename $f); done; node out/all.js", js),
        ("cat src/index.js > dist/all.js", none),
        ("new-program v/js/data.json", none),
        // The text of a here document is commands if a shell may read it, else data that names
        // paths.
        ("cat >t.c <<E\nx = sizeof(void *) <= 1;\nE\ncc t.c", none),
        ("cat >a.c <<'E' && cat >$b.c <<-F\nvoid *\nE\nvoid *\n\tF\nnode v/all.js", js),
        ("cat >t.js <<E\nrequire('./v/all.js')\nE\nnode t.js", js),
        ("cat >t.c <<E\n#include \"src/a.c\"\nE", none),
        ("cat >t.sh <<E\nnode v/*.js\nE\nsh t.sh", &["v/*.js"]),
        ("sh <<\\E\nnode v/*.js\nE", &["v/*.js"]),
        ("cat <<E | sh\nnode v/*.js\nE", &["v/*.js"]),
        ("tee t.sh <<E\nnode v/*.js\nE\nsh t.sh", &["v/*.js"]),
        ("echo 'node v/all.js' >t.sh; sh t.sh", js),
        ("python3 - <<E\na = b * c\nE", none),
        ("cat <<E\nusage: a * b\nE", none),
        ("while read f; do node $f; done <<E\nv/all.js\nE", js),
        ("sh <(cat v/all.js)", js),
        (". <(cat v/all.js)", js),
        ("bash <<<\"$(<v/all.js)\"", js),
        ("for f in v/{all,x}.js; do node $f; done", js),
        ("node v/al[kl].js", &["v/al*.js"]),
        ("node $'v/all.js'", js),
        ("t() { node v/$1.js; }; t all", &["v/*.js"]),
        ("f=v/all.c; node ${f%.c}.js", js),
        ("node ${X:-v/all.js}", js),
        ("node ${R:-}/v/all.js", js),
        ("X=${X:-v/all.js}; node $X", js),
        (": \"${X:=v/all.js}\"; node $X", js),
        ("R=$(pwd); node \"$R/v/all.js\"", js),
        ("R=$(cd \"$(dirname \"$0\")\" && pwd); node \"$R/v/all.js\"", js),
        (". \"${BASH_SOURCE%/*}/v/all.js\"", js),
        ("bash -c 'pushd v && node all.js'", js),
        ("git show HEAD:v/all.js | node", js),
        ("git ls-files 'v/*.js' | xargs node", &["v/*.js"]),
        ("for f in $(git ls-files 'v/*.js'); do node $f; done", &["v/*.js"]),
        ("python3 -mv.all", py),
        ("for m in all; do python3 -m v.$m; done", py),
        ("M=v.all; python3 -m $M", py),
        ("python3 -m v.${X:-all}", py),
        ("d=v; for f in all; do node ./$d/$f.js; done", js),
        ("while read -r l; do eval \"$l\"; done <v/all.js", js),
        ("cd v/js && node .", &["package.json", "v/all.js", "v/all.py", "v/js/index.js"]),
        ("go test -exec v/all.js ./...", js),
        ("node .//v/all.js", js),
        ("new-program $DIR/* && . $DIR/*", none),
        // A command that puts another one before itself.
        ("r='node v/all.js'; r=\"env $r\"; $r", js),
        ("r=\"nice $r\"; X=v/all.js $r", js),
        ("new-program $DIR/$NAME $x", none),
        // The path in the value of an assignment.
        ("BASH_ENV=v/all.js bash", js),
        ("env NODE_OPTIONS='--require ./v/all.js' bash", js),
        ("export RUBYOPT=-r./v/all; bash", &["v/all.js", "v/all.py"]),
        ("t=v/all.js; export t", js),
        ("git -c 'alias.v=!v/all.js' v", js),
        ("SRC=src/a.c; cc $SRC", none),
        // A module of Python, and a file in a directory of `-I`.
        ("python3 -Bm v.all", py),
        ("python3 -m trace --module v.all", py),
        ("python3 -m unittest v.all.Case", py),
        ("pytest --cov=src.calc --cov src.calc", none),
        ("ruby -Iv -rall -e 1", &["v/all.js", "v/all.py"]),
        ("x=$((1<<2))\nnode v/all.js\nE", js),
        ("# don't\nnode v/all.js\necho 'a\nb'", js),
        // A quoted text of several lines is one word.
        ("awk '{\n  x = a * b\n}' log", none),
        ("sh -c \"\nnode v/all.js\n\"", js),
    ];
    for (command, expected) in cases {
        let found: Vec<String> = of(&files, command);
        let found: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|path| path.contains('*') || files.iter().any(|(name, _)| name == path))
            .collect();
        assert_eq!(found, expected, "{command}");
    }
}

#[test]
fn recipe_of_make_names_files_by_variables_functions_and_patterns() {
    let js = &["v/all.js"][..];
    let cases = [
        ("t:\n\t$(foreach t,v/all.js,node $(t) &&) true\n", js),
        ("t:\n\tnode $(CURDIR)/v/all.js\n", js),
        ("t:\n\teval \"$$(cat v/all.js)\"\n", js),
        ("t:\n\t$(CC) -c $(wildcard src/*.c)\n", &[][..]),
        ("define R\n\t@node v/all.js\nendef\nt:\n\t$(R)\n", js),
        ("r = node v/$(1).js\nt:\n\t$(call r,all)\n", js),
        ("T = all\nt:\n\tnode $(patsubst %,v/%.js,$(T))\n", js),
        ("include x.mk\n", js),
        ("t: u\n.DEFAULT:\n\tnode v/all.js\n", js),
        (".ONESHELL:\nt:\n\tcd v\n\tnode all.js\n", js),
        ("R := $(dir $(lastword $(MAKEFILE_LIST)))\nt:\n\tnode $(R)v/all.js\n", js),
        ("T != echo v/all.js\nt:\n\tnode $(T)\n", js),
        ("t:\n\tnode $(join v/,all.js)\n", js),
        ("t:\n\t$(MAKE) -f x.mk t\n", &["v/all.js", "x.mk"]),
        ("t:\n\t@X=1 node v/all.js\n", js),
        ("I = /usr/bin/install\nP = $(I)\nt:\n\t$(P) v/all.js out/\n", &[]),
        ("t: out/all.js\n\tnode $<\nout/%.js: v/%.js\n\tcp $< $@\n", js),
        ("t: out/all\n\t./out/all\nout/all: v/all.js\n\tsed s/a/b/ $< >$@\n", js),
        ("T += all\nt:\n\tnode $(addprefix v/,$(addsuffix .js,$(T)))\n", js),
        ("T := v/all.c\nt:\n\tnode $(T:.c=.js)\n", js),
        ("t: r-all\nr-%: v/%.js\n\tnode $<\n", js),
        ("t: r-all\nr-%:\n\tnode v/$*.js\n", js),
        ("t r: t: v/all.js\n\tnode $^\n", js),
        ("define R\nt: v/$(1).js\n\tnode $$<\nendef\n$(eval $(call R,all))\n", js),
        ("t:\nifdef X\n\tcc src/a.c\nelse\n\tnode v/all.js\nendif\n", js),
        ("export BASH_ENV := v/all.js\nt:\n\tbash\n", js),
        ("BASH_ENV = v/all.js\nSRC = src/a.c\nexport\nt:\n\tcc $(SRC)\n", js),
        ("define B\n\tcc $(SRC)\nendef\nSRC = src/a.c\nexport\nt:\n\t$(B)\n", &[]),
        ("t: export BASH_ENV := v/all.js\nt:\n\tbash\n", js),
        ("SHELL = v/all.js\nt:\n\tcc src/a.c\n", js),
        ("t:\n\t$(MAKE) CC=v/all.js a\n", js),
        (
            "r = $(if $(1),$(call r,$(wordlist 2,9,$(1)))) $(1)\nt:\n\t@echo $(call r,a b)\n\tnode v/all.js\n",
            js,
        ),
        ("A = $(A)$(B)$(B)\nB = $(A)\nt: t%\n\t$(A) ; node v/all.js\n%: a% b%\n", js),
    ];
    for (make, expected) in cases {
        let more = ("x.mk", "t:\n\tnode v/all.js\n");
        let files = [("Makefile", make), ("v/all.js", ""), ("src/a.c", ""), more];
        let mut found = named(&files, "make t").run;
        // Patterns stand for the files that they match.
        found = files
            .iter()
            .map(|(path, _)| (*path).to_owned())
            .filter(|path| is_named(path, &found))
            .collect();
        if !expected.contains(&"x.mk") {
            found.remove("x.mk");
        }
        let found: Vec<&String> = found.iter().collect();
        assert_eq!(found, expected, "{make}");
    }
}

#[test]
fn first_recipe_runs_if_the_runner_gets_no_name() {
    let js = &["v/all.js"][..];
    let none = &[][..];
    let make = ("Makefile", "all: u\nt: x\nx:\nu:\n\tnode v/all.js\nw:\n\t$(MAKE)\n4:\n\ttrue\n");
    let goal = ("Makefile", ".DEFAULT_GOAL := u\nt:\n\ttrue\nu:\n\tnode v/all.js\n");
    let just = ("justfile", "alias v := u\nt:\n    true\nu:\n    node v/all.js\n");
    let cases = [
        (make, "make", js),
        (make, "make -j 3 -C . X=1", js),
        (make, "make $GOALS", js),
        (make, "make w", js),
        (make, "make t", none),
        (make, "make -s t", none),
        (make, "make -j 2 t", none),
        (make, "make t; make", js),
        (goal, "make", js),
        (goal, "make t", none),
        (just, "just v", js),
        (just, "just", none),
    ];
    for (file, command, expected) in cases {
        assert_eq!(of(&[file, ("v/all.js", "")], command), expected, "{command} with {file:?}");
    }
}

#[test]
fn files_in_the_place_of_a_program_are_run_and_others_are_data() {
    let mut files =
        ["gate", "gate.py", "ci/t.sh", "main.c", "test_a.py"].map(|name| (name, "")).to_vec();
    files.push(("ci/run", "#!/bin/sh\nset -e\ncheck main.c\n"));
    files.push(("by_gate.t", "#!gate.py\n1\n"));
    files.push(("tests/all.t", "#!/usr/bin/env -S python3 gate.py\n1\n"));
    files.push(("tests/all.sh", "python3 gate.py\n"));
    let cases: [(&str, &[&str]); 52] = [
        ("cat <<E\nhelp [NAME...]\n[NAME] sh\nE\nsh gate [NAME...]", &["gate"]),
        ("sh gate", &["gate"]),
        ("./gate", &["gate"]),
        ("./gate || exit 1", &["gate"]),
        ("./ci/run", &["ci/run", "main.c"]),
        ("run-parts --exit-on-error ci", &["ci/*", "ci/run", "ci/t.sh", "main.c"]),
        ("./by_gate.t", &["by_gate.t", "gate.py"]),
        ("for t in tests/*.t; do ./$t; done", &["gate.py"]),
        ("sh tests/all.sh", &["tests/all.sh"]),
        ("gate", &[]),
        ("/usr/bin/env -i A=1 python3.12 -u ./gate.py main.c", &["gate.py", "main.c"]),
        ("if ! timeout -k 5 60 sh gate; then exit 1; fi", &["gate"]),
        ("for x in 1 2; do sh gate $x; done", &["gate"]),
        ("(cd ci && sh ../gate >&2)", &["gate"]),
        ("cd ci; bash -eo pipefail t.sh", &["ci/t.sh"]),
        ("sh -c 'sh ci/t.sh && python gate.py'", &["ci/t.sh", "gate.py"]),
        ("uv run --offline python gate.py", &["gate.py"]),
        ("python3 -m gate", &["gate.py"]),
        ("python3 -m pytest gate.py", &["gate.py"]),
        ("for f in ci/*.sh; do $f || exit 1; done", &["ci/*.sh", "ci/t.sh"]),
        ("ls ci/*.sh | xargs -n 1 -P 4 sh -e", &["ci/*.sh", "ci/t.sh"]),
        ("find ci -name '*.sh' -exec sh {} \\;", &["ci/**.sh", "ci/t.sh"]),
        ("find . -type f | xargs sh -n", &[]),
        ("ls *.py | xargs wc", &[]),
        ("node -r ./gate ci/t.sh", &["ci/t.sh", "gate"]),
        (". ./gate", &["gate"]),
        ("sh gate >/dev/null 2>&1", &["gate"]),
        ("sh gate | tee log", &["gate"]),
        ("true | sh gate", &["gate"]),
        ("\"$top/ci/t.sh\"", &["ci/t.sh"]),
        // The code under test, whose output is compared.
        ("./gate | grep -qx hello", &[]),
        ("./gate > out; diff out expected", &[]),
        ("test \"$(./gate)\" = hello", &[]),
        // The code under test is only looked at.
        ("sh -n gate", &[]),
        ("node --check gate", &[]),
        ("python3 -m py_compile gate.py", &[]),
        ("perl -c gate", &[]),
        ("cc -o gate main.c", &[]),
        ("cat gate", &[]),
        ("echo sh gate", &[]),
        // If an attempt adds such a file, it runs.
        ("sh absent gate", &["absent", "gate"]),
        ("[ -f more.sh ] && . ./more.sh", &["more.sh"]),
        ("if [ -e x.py ]; then python3 x.py; fi", &["x.py"]),
        ("test -x ci/more && ci/more", &["ci/more"]),
        ("sh ci", &[]),
        ("for f in d/*.sh; do . \"$f\"; done", &["d/*.sh"]),
        ("for f in gate more; do sh ./$f; done", &["gate", "more"]),
        (". ./d/*.sh", &["d/*.sh"]),
        ("for t in tests/*.sh; do . $t; done", &[]),
        ("python3 test_a.py", &["test_a.py"]),
        ("sh ../gate", &[]),
        ("x=$(cat a.py); gate check-$x", &["check-a.py"]),
    ];
    for (command, expected) in cases {
        assert_eq!(of(&files, command), expected, "{command}");
    }
}

#[test]
fn operands_of_comparisons_are_compared() {
    let files = [
        ("Makefile", "test: out\n\tcmp out d/a.html\nother:\n\tdiff x y\n"),
        ("tests/all.sh", "cd ..\nfor f in d/*.js; do\n  ./gen | diff -u - \"$f\"\ndone\n"),
        ("d/a.html", ""),
    ];
    let cases: [(&str, &[&str]); 47] = [
        ("make test", &["out", "d/a.html"]),
        ("cd tests && sh all.sh", &["d/*.js", "tests/d/*.js"]),
        ("cd d && cmp a.html ../b.html", &["a.html", "d/a.html", "b.html"]),
        ("git diff --no-index a.html d", &["a.html", "d", "d/a.html", "d/d"]),
        ("git add d/a.html", &[]),
        // A formatter check compares a file with its own formatted text.
        ("for f in *.c; do clang-format $f | diff - $f; done", &[]),
        ("fmt a.c > out; diff out a.c", &["out"]),
        ("sed s/x/y/ d/a.html | diff - d/a.html", &[]),
        ("for f in *.c; do tr -d x <$f >$f.x; diff $f.x $f; done", &["*.c.x"]),
        ("cat src/a.scss | sass --stdin | diff - d/a.html", &["d/a.html"]),
        ("sass src/a.scss >a.html; diff a.html d/a.html", &["a.html", "d/a.html"]),
        ("test -z \"$(gofmt -l src/a.go)\"", &[]),
        ("test \"$(ls src/*.py | wc -l)\" = 3", &[]),
        ("test -z \"$(find src -name '*.py' | sort)\"", &[]),
        ("if grep -q x src/a.py; then exit 1; fi", &[]),
        ("head -1 src/a.py | grep -q python", &[]),
        ("cat src/*.js | terser >app.js", &[]),
        ("cat src/*.js >app.js", &[]),
        ("VERSION=$(sed -n 1p src/a.py); echo $VERSION", &[]),
        // Texts that are made from expected output are compared.
        ("cat d/a.html | diff - b", &["b", "d/a.html"]),
        ("diff b - <d/a.html", &["b", "d/a.html"]),
        ("sort <d/a.html | head -5 | cmp b", &["b", "d/a.html"]),
        ("diff a.html b | head; wc -l <a.html | tail -1", &["a.html", "b"]),
        ("cp d/a.html b; ./fix b; diff b d/a.html", &["b", "d/a.html"]),
        ("test -z \"$(prettier d/a.html | diff - b)\"", &["b", "d/a.html"]),
        ("sed s/x/y/ a.c >b; diff b a.c", &["b"]),
        ("diff b d/a.html | head; cat d/a.html | head", &["b", "d/a.html"]),
        ("cp d/a.html want; diff b want", &["b", "d/a.html", "want"]),
        ("cp d/a.html c; cp c want; cmp b want", &["b", "c", "d/a.html", "want"]),
        ("tr -d x <d/a.html >want; tr -d x <b | diff - want", &["b", "d/a.html", "want"]),
        ("comm -3 d/a.html b", &["b", "d/a.html"]),
        ("sort d/a.html b | uniq -u", &["b", "d/a.html"]),
        ("grep -qxFf d/a.html b", &["b", "d/a.html"]),
        ("grep -qF \"$(cat d/a.html)\" b", &["d/a.html"]),
        ("x=$(cat d/a.html); grep -qF \"$x\" b", &["d/a.html"]),
        ("[ \"$(cat d/a.html)\" = \"$(./gen)\" ]", &["d/a.html"]),
        ("x=$(cat d/a.html); [ \"$(./gen)\" = \"$x\" ]", &["d/a.html"]),
        ("x=$(cat d/a.html); [ \"y$(./gen)\" = \"y$x\" ]", &["d/a.html"]),
        ("read x <d/a.html; test \"$x\" = y", &["d/a.html"]),
        ("test \"`sha256sum <d/a.html`\" = \"`sha256sum <b`\"", &["b", "d/a.html"]),
        ("test \"$(git hash-object d/a.html)\" = \"$(git hash-object b)\"", &["b", "d/a.html"]),
        ("sha256sum -c d/a.html", &["d/a.html"]),
        ("for f in d/*.html; do cat $f | diff - b; done", &["b", "d/*.html"]),
        ("find d -name '*.html' -exec cat {} + | diff - b", &["b", "d/**.html", "d/b"]),
        ("cat d/a.html", &[]),
        ("if ! diff -q a b >/dev/null; then exit 1; fi", &["a", "b"]),
        ("sh d/a.html", &[]),
    ];
    for (command, expected) in cases {
        let expected: BTreeSet<String> = expected.iter().map(|p| (*p).to_owned()).collect();
        let mut found = named(&files, command).compared;
        // Arguments of text tools that are no files.
        found.retain(|path| !["s/x/y", "x", "1p", "5"].contains(&path.as_str()));
        assert_eq!(found, expected, "{command}");
    }
}

#[test]
fn file_that_a_test_can_do_without_runs_as_soon_as_it_is_there() {
    let cases: [(&str, &[&str]); 6] = [
        ("[ -f ./more.sh ] && . ./more.sh\n", &["more.sh"]),
        ("test -e more.sh\nif [ $? = 0 ]; then\n  sh more.sh\nfi\n", &["more.sh"]),
        (". ./more.sh 2>/dev/null || :\n", &["more.sh"]),
        // A missing file that the test does not check for is the code that is to be written.
        (". ./more.sh\nsh main.sh\n", &[]),
        ("[ -f main.sh ] && . ./main.sh\n", &[]),
        ("sh tests/inner.sh", &["deep.sh"]),
    ];
    for (test, expected) in cases {
        let inner = "[ -x ./deep.sh ] && ./deep.sh\n";
        let files = [("test.sh", test), ("main.sh", ""), ("tests/inner.sh", inner)];
        assert_eq!(of(&files, "cd . && sh test.sh"), [expected, &["test.sh"]].concat(), "{test}");
    }
}

#[test]
fn recipes_and_shell_scripts_are_followed() {
    let files = [
        (
            "Makefile",
            "SHELL = bash\nPY ?= python3\n.PHONY: test\nall: x\n\tcc -o x main.c\n\
             test: all prepare\n\t@$(SHELL) gate.sh \\\n\t  main.c\n\t-${PY} gate.py\n\t$(MAKE) more\n\
             more: more.sh ; sh $<\nprepare: ; ./prepare\nrun:\n\tsh main.sh\n",
        ),
        (
            "package.json",
            r#"{"scripts": {"start": "node app.js", "test": "npm run a", "a": "node a.js", "prea": "sh gate.sh"}}"#,
        ),
        (
            "justfile",
            "top := '.'\n\nlint: (one 'x')\n    sh gate.sh\none name:\n    @./prepare {{name}}\nrun:\n    sh main.sh\n",
        ),
        (
            "gate.sh",
            "set -e\n. \"$(dirname \"$0\")/lib.sh\"\nf() {\n  sh deep.sh; }\nf\nx=$(sh main.sh)\n",
        ),
        ("lib.sh", "sh gate.sh\n"),
        ("deep.sh", "if sh deep/er.sh; then :; fi\n"),
        ("deep/er.sh", "cd \"$(dirname \"$0\")/..\" && ./up\n"),
        ("up", ""),
        ("tests/all.sh", ". ./main.sh\n"),
        ("prepare", "#!/bin/sh\nsh tests/all.sh\n"),
        ("gate.py", ""),
        ("more.sh", ""),
        ("main.c", ""),
        ("main.sh", ""),
        ("a.js", ""),
        ("app.js", ""),
    ];
    let gate = ["deep.sh", "deep/er.sh", "gate.sh", "lib.sh", "up"];
    let with = |more: &[&'static str]| -> Vec<&str> {
        let all: BTreeSet<&str> = gate.iter().chain(more).copied().collect();
        all.into_iter().collect()
    };
    assert_eq!(of(&files, "make -j2 test"), with(&["gate.py", "main.c", "more.sh", "prepare"]));
    assert_eq!(of(&files, "make"), [""; 0]);
    assert_eq!(of(&files, "npm test"), with(&["a.js"]));
    assert_eq!(of(&files, "npm ci"), [""; 0]);
    assert_eq!(of(&files, "run-s a"), with(&["a.js"]));
    assert_eq!(of(&files, "concurrently npm:a"), with(&["a.js"]));
    assert_eq!(of(&files, "just lint"), with(&["prepare"]));
}

#[test]
fn deep_nesting_ends_the_search_and_not_the_program() {
    for (open, close) in [("$(a ", ")"), ("$(", ")"), ("${a", "}"), ("$(shell ", ")")] {
        let deep = format!("{}node v/all.js{}", open.repeat(3_000), close.repeat(3_000));
        let make = format!("X = {deep}\nt:\n\t{deep}\n");
        named(&[("Makefile", &make), ("a.sh", &deep)], "make; sh a.sh");
        named(&[], &deep);
    }
}

#[test]
fn names_and_places_that_another_text_gives_are_known() {
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[("env.sh", "X=v/all.js\n")], ". ./env.sh; node $X"),
        (&[("env.sh", "D=v\n")], ". ./env.sh; cd v; node $D/all.js"),
        (&[("env.sh", "export D=v\n")], ". ./env.sh; (cd v && node all.js)"),
        // No text uses the variable, so it can only be for a program.
        (&[("env.sh", "BASH_ENV=v/all.js\n")], "set -a; . ./env.sh; bash"),
        (&[("Makefile", "VPATH = v\nt: all.js\n\tnode $<\n")], "make t"),
        (
            &[("Makefile", "t:\n\t$(MAKE) -C sub\n"), ("sub/Makefile", "u:\n\tnode ../v/all.js\n")],
            "make t",
        ),
        (&[("sub/Makefile", "u:\n\tnode ../v/all.js\n")], "cd sub && make u"),
        (&[("justfile", "x := 'v/all.js'\nt:\n    node {{x}}\n")], "just t"),
        (
            &[("justfile", "import 'more.just'\n"), ("more.just", "t:\n    node v/all.js\n")],
            "just t",
        ),
    ];
    for (more, command) in cases {
        let files = [more, &[("v/all.js", "")]].concat();
        assert!(named(&files, command).run.contains("v/all.js"), "{more:?}: {command}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_text_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "<(", "$(", "(", ")", "{", "}", "<", ">", "<<E", "<<<", "|", "&", ";", "!", "\n", "\n\t", "\n  ", " ", "'", "\"", "\\", "\\\n", "`", "#", "=", ":=", ":", "$", "${", "$@", "é",
        "cd", "if", "fi", "for", "a", "A=1", "make", "test:", "-C", "include", "define A", "endef", "python3", "-m", "-c", "git diff", "sh", ".", "./a.sh", "xargs", "[ -f a ] && ", "tee", "*.sh",
    ]), 0..14)) {
        let text = parts.concat();
        let files = ["a.sh", "Makefile", "justfile", "Taskfile.yml", "package.json", "tox.ini", "a.py"].map(|name| (name, text.as_str()));
        for command in ["sh a.sh", "make test", "just test", "task test", "npm test", "tox", "python3 -m a", &text] {
            named(&files, command);
        }
    }
}
