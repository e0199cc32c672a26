//! Real tools where Landlock confines them: what they write beside the checkout goes to directories
//! of their own, and what the user has downloaded is there.
use crate::common::World;
use crate::common::sealed::confined;
use crate::test_runners::{JAVA, JAVA_ATTEMPTS, POM};
use crate::tool::{GO, GRADLE, LANDLOCK, MAVEN, NPM, PYTHON, trials};
use crate::traces::{assert_untouched, user_files};

trials! {
    go_vets_and_tests: [LANDLOCK, GO];
    npm_installs_a_local_dependency: [LANDLOCK, NPM];
    pip_installs_a_local_package: [LANDLOCK, PYTHON];
    maven_tests_over_what_the_user_has_downloaded: [LANDLOCK, MAVEN];
    gradle_tests_with_the_users_settings: [LANDLOCK, GRADLE];
    semaphores_of_python_name_the_directory_to_open: [LANDLOCK, PYTHON];
}

/// A world in which Landlock confines commands, with a project.
fn project(files: &[(&str, &str)]) -> World {
    let mut world = confined("landlock");
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("a project");
    let settings = [("GOPROXY", "off"), ("npm_config_offline", "true"), ("PIP_NO_INDEX", "1")];
    for (name, value) in settings {
        world.set_env(name, value);
    }
    world
}

/// Fails unless the base and the first attempt pass, and the second fails, and nothing of the
/// user's changes.
fn assert_right_wins(world: &World, attempts: [&str; 2], test: &str) {
    world.attempts(&attempts);
    let before = user_files(world);
    let answer = world.frites(["judge", "--json", "--no-cache", "--test", test]).expect(0);
    let verdict = answer.json();
    let logs = world.sh(&world.repo, "tail .frites/runs/1/*/test.log").out();
    assert_eq!(verdict["recommended"], "c1", "{logs}");
    assert_eq!(verdict["failed"], serde_json::json!(["c2"]), "{logs}");
    assert_eq!(verdict["baseline"]["results"][0]["outcome"], "passed", "{logs}");
    assert_untouched(world, &before);
    world.assert_clean();
}

fn go_vets_and_tests() {
    let files = [
        ("go.mod", "module example.com/m\n\ngo 1.19\n"),
        ("m.go", "package m\n\nfunc One() int { return 1 }\n"),
        (
            "m_test.go",
            "package m\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(One())\n\t}\n}\n",
        ),
    ];
    let attempts = ["echo '// One is 1.' >> m.go", "sed -i 's/return 1/return 2/' m.go"];
    assert_right_wins(&project(&files), attempts, "go vet ./... && go test ./...");
}

fn npm_installs_a_local_dependency() {
    let files = [
        (
            "package.json",
            r#"{"name": "m", "version": "1.0.0", "dependencies": {"left": "file:./left"}}"#,
        ),
        ("left/package.json", r#"{"name": "left", "version": "1.0.0", "main": "index.js"}"#),
        ("left/index.js", "module.exports = 1;\n"),
        (".gitignore", "node_modules\n"),
    ];
    let attempts = ["echo '// 1' >> left/index.js", "echo 'module.exports = 2;' > left/index.js"];
    let test =
        "npm install --no-audit --no-fund && node -e 'if (require(\"left\") !== 1) process.exit(1)' &&
        npm pack --silent ./left";
    assert_right_wins(&project(&files), attempts, test);
}

fn pip_installs_a_local_package() {
    let files = [("pkg/__init__.py", "ONE = 1\n"), (".gitignore", "__pycache__\nvenv\n")];
    let attempts = ["echo '# 1' >> pkg/__init__.py", "echo 'ONE = 2' > pkg/__init__.py"];
    let test = "set -e; python3 -m venv venv; venv/bin/pip cache dir | grep -q \"^$HOME/\"
        venv/bin/python -c 'import pkg; assert pkg.ONE == 1'";
    assert_right_wins(&project(&files), attempts, test);
}

/// The test of [`JAVA`] passes for the first one alone. The base need not take the time.
const JAVA_RIGHT: [&str; 2] =
    ["sed -i 's/return 1/return 2/' src/main/java/tiny/Value.java", JAVA_ATTEMPTS[1]];

fn maven_tests_over_what_the_user_has_downloaded() {
    let files = [&JAVA[..], &[("pom.xml", POM), (".gitignore", "target/\n")]].concat();
    let mut world = project(&files);
    let home = world.home();
    world.sh(&home, "cp -rs /usr/share/maven-repo repository").expect(0);
    world.set_env("MAVEN_OPTS", format!("-Dmaven.repo.local={}/repository", home.display()));
    let test = "! grep -q 'return 2' src/main/java/tiny/Value.java || exec mvn -q -o test
        test -e README && ! grep -q 'return [^1]' src/main/java/tiny/Value.java";
    assert_right_wins(&world, JAVA_RIGHT, test);
}

fn gradle_tests_with_the_users_settings() {
    let build = "apply plugin: 'java'
sourceCompatibility = 8
if (mine != 'yes') throw new GradleException('no settings')
dependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }
";
    let files =
        [&JAVA[..], &[("build.gradle", build), (".gitignore", "build/\n.gradle/\n")]].concat();
    let mut world = project(&files);
    let own = world.home().join("gradle");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("gradle.properties"), "mine=yes\n").unwrap();
    world.set_env("GRADLE_USER_HOME", own);
    let test = "! grep -q 'return 2' src/main/java/tiny/Value.java || exec gradle -q --no-daemon --offline test
        test -e README && ! grep -q 'return [^1]' src/main/java/tiny/Value.java";
    assert_right_wins(&world, JAVA_RIGHT, test);
}

fn semaphores_of_python_name_the_directory_to_open() {
    let world = project(&[("lock.py", "import multiprocessing\nmultiprocessing.Lock()\n")]);
    world.attempts(&["echo '# 1' >> lock.py"]);
    let judge = ["judge", "--no-cache", "--test", "python3 lock.py"];
    let answer = world.frites(judge);
    assert!(
        answer.stderr.contains("git config --add frites.sandbox.write /dev/shm"),
        "{}",
        answer.stderr
    );
    let mut world = world;
    world.set_env("FRITES_SANDBOX_WRITE", "/dev/shm");
    world.frites(judge).expect(0);
}
