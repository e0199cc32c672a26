#!/bin/sh
# Measures what judging eight attempts costs where tests build the project first: each candidate from nothing (cold),
# in layers over the outputs that the base's judging leaves, and once more when that layer exists.
#
# Usage: sh benches/builds.sh [cargo|make|tsc|python|four]...   with git-frites and jq on PATH; makes each project itself.
#        four: of four attempts at the cargo project one is a cheat, one fails and two pass. How long judging them takes
#        when the layer exists, divided by the cold run that confirms the winner.
#        BENCH_PROJECT=DIR BENCH_FILE=FILE BENCH_TEST=CMD sh benches/builds.sh project   measures a project of yours:
#        each attempt appends the lines that BENCH_LINE gives (%s becomes its name) to FILE.
# BENCH_CANDIDATES is the number of attempts. BENCH_DIR chooses the file system; it must not be below /tmp or /dev/shm,
# which judged commands cannot see.
set -eu
attempts=${BENCH_CANDIDATES:-8}
home=$(mktemp -d "${BENCH_DIR:-$HOME}/frites-builds.XXXXXX")
home=$(cd "$home" && pwd -P)
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" CARGO_NET_OFFLINE=true
export HOME="$home" XDG_CACHE_HOME="$home/.cache" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$home/.gitconfig"
git config --global user.name Bench
git config --global user.email bench@example.com
git config --global init.defaultBranch main

# Makes the project in the current directory a repository with one commit.
commit() { git init -q && git add -A && git commit -qm base; }

# A command-line tool with dependencies, twelve modules, and a test in each.
make_cargo() {
    mkdir src
    cat >Cargo.toml <<'END'
[package]
name = "tool"
version = "0.1.0"
edition = "2021"
[dependencies]
clap = { version = "4", features = ["derive"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
regex = "1"
rayon = "1"
END
    : >src/lib.rs
    for i in $(seq 12); do
        echo "pub mod part$i;" >>src/lib.rs
        cat >"src/part$i.rs" <<END
//! Part $i.
use serde::{Deserialize, Serialize};
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Item$i { pub name: String, pub count: u32, pub tags: Vec<String> }
pub fn parse(text: &str) -> Option<Item$i> {
    let words = regex::Regex::new(r"(?<name>\w+)=(?<count>\d+)").ok()?;
    let found = words.captures(text)?;
    Some(Item$i { name: found["name"].into(), count: found["count"].parse().ok()?, tags: vec![] })
}
#[test]
fn item_survives_json() {
    let item = parse("a=$i").unwrap();
    assert_eq!(serde_json::from_str::<Item$i>(&serde_json::to_string(&item).unwrap()).unwrap(), item);
}
END
    done
    cat >src/main.rs <<'END'
#[derive(clap::Parser)]
struct Args { words: Vec<String> }
fn main() {
    let args = <Args as clap::Parser>::parse();
    println!("{:?}", args.words.iter().map(|w| tool::part1::parse(w)).collect::<Vec<_>>());
}
END
    echo target >.gitignore
    cargo generate-lockfile -q
    file=src/part3.rs line='pub fn %s() -> u32 { 1 }\n' test='cargo test -q'
}

# The same tool with a test of its own file, which a cheat can change.
make_four() {
    make_cargo
    echo 'pub fn answer() -> u32 { 1 }' >>src/lib.rs
    mkdir tests
    echo '#[test] fn answers() { assert!([1, 2].contains(&tool::answer())); }' >tests/answer.rs
}

# A C program of 200 files.
make_make() {
    mkdir src
    printf 'OBJECTS := $(patsubst %%.c,%%.o,$(wildcard src/*.c))\ntest: program\n\t./program\nprogram: $(OBJECTS)\n' >Makefile
    printf '\t$(CC) -o $@ $(OBJECTS)\nsrc/%%.o: src/%%.c src/all.h\n\t$(CC) -O2 -c -o $@ $<\n.PHONY: test\n' >>Makefile
    printf '*.o\nprogram\n' >.gitignore
    for i in $(seq 200); do
        echo "int part$i(int n);" >>src/all.h
        printf '#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "all.h"\n' >"src/part$i.c"
        for j in 1 2 3 4 5 6 7 8 9 10; do
            echo "static int step$j(int n) { int s = $i; for (int k = 0; k < n; k++) s = s * 31 + k % ($j + 1); return s; }"
        done >>"src/part$i.c"
        echo "int part$i(int n) { return step1(n) ^ step2(n) ^ step3(n) ^ step4(n) ^ step5(n); }" >>"src/part$i.c"
    done
    printf '#include "all.h"\nint main(void) { return part1(3) == part1(3) ? 0 : 1; }\n' >src/main.c
    file=src/part3.c line='int %s(void) { return 1; }\n' test='make -s test'
}

# Four TypeScript projects that refer to each other, built by `tsc -b`; the compiler is seeded, as people have it.
make_tsc() {
    mkdir -p "$home/npm" && (cd "$home/npm" && npm --cache "$home/npm-cache" install -s --no-audit --no-fund typescript@5.9.3 >/dev/null)
    cp -r "$home/npm/node_modules" .
    printf 'node_modules\nout\n*.tsbuildinfo\n' >.gitignore
    before=
    for p in a b c d; do
        mkdir "$p"
        for i in $(seq 40); do
            echo "export interface Item$i { name: string; next?: Item$i; tags: Record<string, readonly [number, string]> }"
            echo "export const make$i = (name: string): Item$i => ({ name, tags: { [name]: [$i, name] } });"
        done >"$p/items.ts"
        [ -z "$before" ] || echo "import { make1 } from '../$before/items.js'; console.log(make1('x').name);" >"$p/use.ts"
        echo "{\"compilerOptions\":{\"composite\":true,\"strict\":true,\"module\":\"nodenext\",\"outDir\":\"out\",\"types\":[]},\"references\":[${before:+{\"path\":\"../$before\"\}}]}" >"$p/tsconfig.json"
        before=$p
    done
    sed -i '1i declare const console: { log(x: unknown): void };' b/use.ts c/use.ts d/use.ts
    echo '{"files":[],"references":[{"path":"d"}]}' >tsconfig.json
    echo '{"type":"module"}' >package.json
    git config --global frites.seed.link node_modules
    file=d/items.ts line='export const %s = 1;\n' test='node_modules/.bin/tsc -b && node d/out/items.js'
}

# A Python package with an extension module, installed editable into a virtual environment by the setup.
make_python() {
    mkdir part
    cat >setup.py <<'END'
from setuptools import Extension, setup
setup(name="part", version="1", packages=["part"],
      ext_modules=[Extension(f"part.fast{i}", [f"part/fast{i}.c"]) for i in range(30)])
END
    for i in $(seq 0 29); do
        cat >"part/fast$i.c" <<END
#include <Python.h>
static PyObject *n(PyObject *s, PyObject *a) { return PyLong_FromLong($i); }
static PyMethodDef m[] = {{"n", n, METH_NOARGS, ""}, {0}};
static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "fast$i", "", -1, m};
PyMODINIT_FUNC PyInit_fast$i(void) { return PyModule_Create(&d); }
END
    done
    echo 'from part.fast3 import n' >part/__init__.py
    printf 'import part\nassert part.n() == 3\nassert part.__file__.startswith(__import__("os").getcwd())\n' >check.py
    printf 'venv\nbuild\n*.so\n*.egg-info\n__pycache__\n' >.gitignore
    git config --global frites.spawn.setup \
        'test -d venv || python3 -m venv venv; venv/bin/python setup.py -q develop >/dev/null 2>&1'
    file=part/__init__.py line='%s = 1\n' test='venv/bin/python check.py'
}

make_project() {
    git clone -q "$BENCH_PROJECT" . && rm -rf .git
    file=$BENCH_FILE line=$BENCH_LINE test=$BENCH_TEST
}

# judged OPTION...: the seconds of one judging, with and without the cold run that confirms the winner.
judged() {
    begin=$(date +%s.%N)
    git frites judge -q --no-cache --test "$test" "$@" --json >"$home/verdict.json" || { git frites output 1/c1 >&2; exit 1; }
    end=$(date +%s.%N)
    jq -r --argjson all "$(echo "$end - $begin" | bc)" '
        . as $v | [.candidates[] | select(.candidate == $v.recommended or .index == 1) | .results[] | select(.warm != true) | .seconds] as $cold
        | (.candidates | map(select(.passed)) | length) as $passed
        | (.candidates | map(select(any(.results[]?; .warm == true))) | length) as $warm
        | "\($all) \(if $warm > 0 then $all - ($cold | add // 0) else $all end) \($passed) \($warm) \($v.verified)"' "$home/verdict.json"
}

# four_attempts LINES: a run of a cheat and an attempt that fails, of so many lines, and two that pass, of 20 and of 40.
four_attempts() {
    git frites spawn -q -n 4 -- sh -c '
        case $FRITES_CANDIDATE in
        c1) answer=9 lines='$1'; sed -i "s/1, 2/1, 2, 9/" tests/answer.rs ;;
        c2) answer=8 lines='$1' ;;
        c3) answer=2 lines=20 ;;
        c4) answer=2 lines=40 ;;
        esac
        sed -i "s/{ 1 }/{ $answer }/" src/lib.rs
        seq -f "// %.0f" $lines >>src/part3.rs' >/dev/null
}

# judged_four WORDS: how long the last run takes to judge, until its leader is confirmed and in all.
judged_four() {
    begin=$(date +%s.%N)
    { git frites judge --no-cache --test "$test" --json 2>&3 >"$home/verdict.json"; } 3>&1 |
        sed -u -n '/^run .* is confirmed/p' | while read -r _; do date +%s.%N; done >"$home/confirmed"
    end=$(date +%s.%N)
    [ -s "$home/confirmed" ] || echo "$end" >"$home/confirmed"
    jq -r --argjson all "$(echo "$end - $begin" | bc)" --argjson first "$(echo "$(cat "$home/confirmed") - $begin" | bc)" '
        . as $v | [.candidates[] | select(.candidate == $v.recommended) | .results[].seconds] | add as $cold
        | [$v.candidates[] | select([.results[], .base_tests.results[]?] | any(.warm != true)) | .candidate] as $again
        | [$all, $cold, $all / $cold, $first / $cold, $v.recommended, ($again | join(","))] | @sh' "$home/verdict.json" |
        xargs printf '  %-36s %8.1f s   ÷ one cold run of %.1f s: %.2f; leader confirmed after %.2f; %s wins; cold: %s\n' "$1"
}

for kind in ${*:-cargo make tsc python four}; do
    rm -rf "$home/project" && mkdir "$home/project" && cd "$home/project"
    git config --global --remove-section frites.seed 2>/dev/null || :
    git config --global --remove-section frites.spawn 2>/dev/null || :
    "make_$kind"
    commit
    if [ "$kind" = four ]; then
        echo "four:"
        four_attempts 60
        git frites judge -q --no-cache --test "$test" >/dev/null
        judged_four 'the cheat and the failure are larger'
        four_attempts 1
        judged_four 'both are smaller than the winner'
        continue
    fi
    git frites spawn -q -n $attempts -- sh -c "printf '$line' \"\$FRITES_CANDIDATE\" >>'$file'" >/dev/null
    cold=$(judged --cold)
    git frites clean -q --cache
    first=$(judged)
    again=$(judged)
    echo "$kind:"
    set -- cold $cold first $first again $again
    printf '  %-36s %8.1f s   %s of %s passed, verified: %s\n' 'each candidate cold' "$2" "$4" $attempts "$6"
    printf '  %-36s %8.1f s   %s of %s passed, %s warm, verified: %s   ÷ cold %.2f\n' \
        'no layer yet' "$8" "${10}" $attempts "${11}" "${12}" "$(echo "$8 / $2" | bc -l)"
    printf '  %-36s %8.1f s   %s of %s passed, %s warm, verified: %s   ÷ cold %.2f, without the confirmation %.2f\n' \
        'with the layer' "${14}" "${16}" $attempts "${17}" "${18}" "$(echo "${14} / $2" | bc -l)" "$(echo "${15} / $2" | bc -l)"
done
