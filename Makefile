# The targets for people; cargo does everything else.
PREFIX = /usr/local
CARGO = cargo
INSTALL = install
TARGET = $${CARGO_TARGET_DIR:-target}
SHARE = $(DESTDIR)$(PREFIX)/share
RELEASE = $(CARGO) rustc --locked --release --bin git-frites
# What the linker gets, so that the program holds no tables for unwinding.
SMALL = -C link-arg=-Wl,-T,packaging/no-unwinding.ld -C link-arg=-Wl,--no-eh-frame-hdr

build:
	$(CARGO) build --locked

# Runs the tests of the model, of the program on real repositories, and of the examples in the documentation, in the best
# world for judging that this machine has.
test:
	RUST_TEST_THREADS=$(THREADS) $(CARGO) test --locked --lib --bins --examples --test runner

# A test waits for a fifth of its time: for disks, and for processes that it started. On a small machine, two tests for
# each processor leave none idle.
THREADS = $${RUST_TEST_THREADS:-$$(n=$$(getconf _NPROCESSORS_ONLN || echo 4); [ $$n -gt 8 ] || n=$$((2 * n)); echo $$n)}

# Runs the tests that call other tools: shells in a terminal, a browser, Slurm, strace, the test runners and package
# managers of other languages. A test whose tool is missing is ignored, with the reason. TOOLS_ARGS chooses tests.
test-tools:
	$(CARGO) test --locked --test tools -- $(TOOLS_ARGS)

# Runs the tests about judging and about processes in the machine's other worlds, and says which it has not.
# WORLDS_ARGS chooses other tests.
test-worlds:
	CARGO="$(CARGO)" sh tests/worlds.sh $(WORLDS_ARGS)

# Run this before each commit: all that takes less than five minutes once it is built.
check: lint test

# Runs all steps in a temporary repository; KEEP=1 keeps the repository.
demo: build
	@PATH="$$(cd "$(TARGET)/debug" && pwd):$$PATH" sh demo/demo.sh

# Draws docs/judge.svg: what `git frites judge` prints in the demo.
picture: build
	@out=$$(mktemp) && PATH="$$(cd "$(TARGET)/debug" && pwd):$$PATH" PICTURE="$$out" sh demo/demo.sh >/dev/null && \
		$(CARGO) run --locked --quiet --example picture <"$$out" >docs/judge.svg && rm -f "$$out"

# Measures ratios to git by hand in the same run. It asserts nothing, because machines are noisy.
# BENCH_DIR=DIR chooses the file system, BENCH_FILES="1000 50000" the sizes, BENCH_ARGS=--json the form.
bench:
	$(CARGO) bench --locked --bench worktrees -- $(BENCH_ARGS)
	$(CARGO) bench --locked --bench funnel -- $(BENCH_ARGS)

# Puts the figures of `make bench` into docs/FIGURES.md, below the line that says so, and draws docs/figures.svg. For a
# quiet machine; FIGURES=FILE takes the JSON lines of an earlier `make bench BENCH_ARGS=--json`.
figures:
	@out=$$(mktemp -d) && \
		{ if [ -n "$(FIGURES)" ]; then cat "$(FIGURES)"; else $(MAKE) --no-print-directory bench BENCH_ARGS=--json; fi; } >"$$out/json" && \
		{ sed '/^<!-- measured -->$$/q' docs/FIGURES.md; $(CARGO) run --locked -q --example figures <"$$out/json"; } >"$$out/md" && \
		$(CARGO) run --locked -q --example figures -- --svg <"$$out/json" >"$$out/svg" && \
		cat "$$out/md" >docs/FIGURES.md && cat "$$out/svg" >docs/figures.svg && rm -r "$$out"

# Measures judging where tests build the project first: from nothing, and in layers. Takes about half an hour.
bench-builds:
	$(CARGO) build --locked --release
	PATH="$$(cd "$(TARGET)/release" && pwd):$$PATH" sh benches/builds.sh $(BENCH_ARGS)

# Judges a run on a Slurm cluster of four nodes on this machine; `make test-tools` does so, too, where Slurm is installed.
test-slurm:
	$(CARGO) test --locked --test tools -- spread::

# Cuts the power during 30 landings and after them, on an ext4 in a file; as root.
test-power:
	FRITES_TEST_ROUNDS=$${FRITES_TEST_ROUNDS:-30} $(CARGO) test --locked --test tools -- power_cut:: --nocapture

# Kills a run at 200 moments, and resumes it; takes about ten minutes.
test-kills:
	FRITES_TEST_ROUNDS=$${FRITES_TEST_ROUNDS:-200} $(CARGO) test --locked --test tools -- eager::a_run_that_is_killed --nocapture

# Judges 200 times beside git's own housekeeping; takes about half an hour.
soak:
	FRITES_TEST_ROUNDS=200 $(CARGO) test --locked --test runner state::housekeeping::

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

# Not every linker that a user may have configured reads the script of SMALL: then the program is linked without.
install:
	{ [ "$$(uname)" = Linux ] && $(RELEASE) -- $(SMALL); } || $(RELEASE)
	$(INSTALL) -d "$(DESTDIR)$(PREFIX)/bin"
	$(INSTALL) -m 755 "$(TARGET)/release/git-frites" "$(DESTDIR)$(PREFIX)/bin/git-frites"
	$(INSTALL) -d "$(SHARE)/man/man1" "$(SHARE)/man/man5" "$(SHARE)/man/man7" "$(SHARE)/git-frites/skills/git-frites" \
		"$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_conf.d"
	$(INSTALL) -m 644 man/*.1 "$(SHARE)/man/man1"
	$(INSTALL) -m 644 man/*.5 "$(SHARE)/man/man5"
	$(INSTALL) -m 644 man/*.7 "$(SHARE)/man/man7"
	$(INSTALL) -m 644 schema/git-frites.schema.json "$(SHARE)/git-frites/git-frites.schema.json"
	$(INSTALL) -m 644 skills/git-frites/SKILL.md "$(SHARE)/git-frites/skills/git-frites/SKILL.md"
	$(INSTALL) -m 644 packaging/apparmor "$(SHARE)/git-frites/apparmor"
	$(INSTALL) -m 644 completions/git-frites.bash "$(SHARE)/bash-completion/completions/git-frites"
	$(INSTALL) -m 644 completions/_git-frites "$(SHARE)/zsh/site-functions/_git-frites"
	$(INSTALL) -m 644 completions/git-frites.fish "$(SHARE)/fish/vendor_conf.d/git-frites.fish"

# Makes a Debian package in target/debian, with cargo-deb (`cargo install cargo-deb`).
deb:
	$(RELEASE) -- $(SMALL)
	cargo deb --no-build --no-strip $(DEB_ARGS)

# Makes an archive in target/ for any Linux with this C library or a newer one; its install.sh copies what is in it.
ARCHIVE = git-frites-$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-$$(uname -m)-linux-gnu
tarball:
	@stage=$$(mktemp -d) && $(MAKE) --no-print-directory install DESTDIR="$$stage/$(ARCHIVE)" PREFIX= && \
		cp packaging/install.sh LICENSE-MIT LICENSE-APACHE "$$stage/$(ARCHIVE)" && \
		tar -C "$$stage" --owner=0 --group=0 -czf "$(TARGET)/$(ARCHIVE).tar.gz" "$(ARCHIVE)" && rm -r "$$stage" && \
		echo "$(TARGET)/$(ARCHIVE).tar.gz"

# Removes the installed files.
uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/git-frites" "$(SHARE)"/man/man1/git-frites.1 "$(SHARE)"/man/man1/git-frites-*.1 \
		"$(SHARE)"/man/man5/git-frites-*.5 "$(SHARE)"/man/man7/git-frites-*.7 \
		"$(SHARE)/git-frites/git-frites.schema.json" "$(SHARE)/git-frites/skills/git-frites/SKILL.md" "$(SHARE)/git-frites/apparmor" "$(SHARE)/bash-completion/completions/git-frites" \
		"$(SHARE)/zsh/site-functions/_git-frites" "$(SHARE)/fish/vendor_conf.d/git-frites.fish"

# Regenerates man/ after a change of the command line or of the manual.
man: build
	"$(TARGET)/debug/git-frites" man --write man

.PHONY: build deb tarball picture test check test-tools test-worlds test-power test-kills test-slurm demo bench figures bench-builds soak lint install uninstall man
