//! Programs that only look at the files that they name.
use crate::ecosystems::paths::file_name;
use crate::model::shell::Word;

/// Programs that compile, check, format, document, list or pack the files that they name, and run
/// none of them. If a command's program is missing in this list, the files that the command names
/// count as run. This can leave an honest change unverified, but never verifies a wrong one.
const LOOKING: &str = "
    cc cpp c++ cxx gcc g++ clang clang++ icc tcc ar ld nm ranlib strip objdump nasm rustc javac kotlinc
    scalac swiftc ghc dmd ldc2 gfortran nvcc emcc mcs csc fpc ocamlc ocamlopt tsc swc esbuild rollup
    bunchee microbundle ncc pkgroll rolldown tsdown tsup unbuild
    webpack parcel babel terser uglifyjs sass lessc postcss tailwindcss protoc flex bison yacc lex
    mypy stubtest pyright pytype flake8 pylint ruff black isort autopep8 yapf bandit pydocstyle pycodestyle pyflakes
    vulture radon py_compile compileall eslint jshint xo prettier stylelint biome oxlint htmlhint
    rubocop standardrb reek perlcritic perltidy phpcs phpcbf phpstan psalm php-cs-fixer shellcheck
    shfmt checkbashisms clang-format clang-tidy cppcheck cpplint splint indent astyle uncrustify rustfmt
    gofmt gofumpt goimports golint golangci-lint staticcheck gosec ktlint detekt checkstyle scalafmt
    swiftlint swiftformat hlint ormolu stylua luacheck luac jsonlint yamllint xmllint codespell typos
    cspell sqlfluff
    doxygen sphinx-build pdoc typedoc jsdoc rustdoc javadoc yard rdoc ctags cloc
    markdownlint mdl remark vale grep egrep fgrep rg ag stat ls du gzip tar zip
    touch mkdir rmdir rm chmod chown basename dirname realpath readlink echo printf pip pip3 apt-get";

/// Programs that print the content of the files that they name, or a count or a checksum of it.
const READING: &str = "
    cat head tail sed tr cut sort uniq wc nl tac fold paste column comm tee od xxd hexdump strings
    md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum base64 iconv";

/// Pairs of a program and the word after it. With this word, the program only looks at the files
/// that it names.
const LOOKING_IF: &str = "
    bash -n, cargo bench, cargo build, cargo check, cargo clippy, cargo doc, cargo fmt,
    cargo install, cargo nextest, cargo test, dart analyze, dart format, deno check, deno fmt,
    deno lint, docker build, dotnet build, dotnet format, go build, go fmt, go install, go test,
    go vet, node --check, perl -c, php -l, ruby -c, sh -n, swift build, zig build, zig fmt";

/// Programs whose name may begin with the name of a target system: `arm-none-eabi-gcc`.
const CROSS_COMPILERS: [&str; 8] = ["ar", "c++", "cc", "clang", "clang++", "g++", "gcc", "ld"];

/// Programs that run the tests in a directory that they name, not the main file of the directory.
const COLLECTING: &str = "
    pytest py.test unittest nose2 tox jest vitest mocha ava tap jasmine karma cypress playwright rspec
    minitest phpunit pest prove bats ctest";

/// Pairs of a program and the word after it. With this word, the program runs the tests in a
/// directory that it names.
const COLLECTING_IF: &str = "bun test, deno test, mix test, node --test";

/// True if a program, followed by the word `next`, only looks at the files that it names.
pub fn looks_only(program: &str, next: &str) -> bool {
    is_among(program, next, LOOKING, LOOKING_IF) || reads_content(program)
}

/// True if a program prints the content of the files that it names, perhaps changed.
pub fn reads_content(program: &str) -> bool {
    is_among(program, "", READING, "")
}

/// True if a program searches the files that it names for a text.
pub fn searches(program: &str) -> bool {
    let name = file_name(program);
    matches!(name, "rg" | "ag") || name.ends_with("grep")
}

/// True if a program of this name, which only looks at files, compares the files that it names. For
/// some programs, options decide that.
pub fn compares(program: &str, options: &[Word]) -> bool {
    let name = file_name(program);
    let (letter, long) = match name {
        "comm" => return true,
        _ if searches(program) => ('f', "--file"),
        _ if name.ends_with("sum") => ('c', "--check"),
        _ => return false,
    };
    options.iter().map(|word| word.text.split('=').next().unwrap_or_default()).any(|option| {
        option == long
            || option.starts_with('-') && !option.starts_with("--") && option.contains(letter)
    })
}

/// True for a compiler, a linker or an archiver of C.
pub fn is_compiler(program: &str) -> bool {
    is_among(program, "", &CROSS_COMPILERS.join(" "), "")
}

/// True if a program, followed by the word `next`, runs the tests in a directory that it names.
pub fn collects_tests(program: &str, next: &str) -> bool {
    is_among(program, next, COLLECTING, COLLECTING_IF)
}

/// True for `/usr/bin/gcc-12`, `arm-none-eabi-gcc` and `$CC` if `programs` contains `gcc` and `cc`.
fn is_among(program: &str, next: &str, programs: &str, with_next: &str) -> bool {
    let name = file_name(program).trim_matches(['$', '{', '}']).to_ascii_lowercase();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    let last = name.rsplit(['-', '}']).next().unwrap_or(name);
    let name = if CROSS_COMPILERS.contains(&last) { last } else { name };
    programs.split_whitespace().any(|known| known == name || known == program)
        || with_next.split(',').any(|pair| {
            pair.trim().split_once(' ').is_some_and(|(known, option)| {
                known == name && (option == next || has_letter(next, option))
            })
        })
}

/// True if a word combines the letter of an option (`-c`) with other letters that do not change
/// which files run: `-wc`.
fn has_letter(word: &str, option: &str) -> bool {
    let Some(letter) = option.strip_prefix('-').filter(|letter| letter.len() == 1) else {
        return false;
    };
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.contains(letter) && letters.chars().all(|c| "cnltuvwxTWX".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_other_spellings_of_their_names() {
        let cases = [
            ("gcc", "-c", true),
            ("/usr/bin/clang-format-15", "a.c", true),
            ("x86_64-linux-gnu-g++", "a.cc", true),
            ("{CC}", "a.c", true),
            ("$GO", "build", true),
            ("go", "run", false),
            ("python3.12", "a.py", false),
            ("sh", "-n", true),
            ("ruby", "-wc", true),
            ("bash", "-un", true),
            ("bash", "-ec", false),
            ("node", "-cx.js", false),
            ("sh", "a", false),
        ];
        for (program, next, expected) in cases {
            assert_eq!(looks_only(program, next), expected, "{program} {next}");
        }
    }
}
