//! Suites that use much of the machine, with the real tools: in a sealed world they pass as they do
//! outside, and see the candidate's files.
use crate::common::World;
use crate::common::sealed::sealed;
use crate::tool::{CARGO, NAMESPACES, NPM, ORDINARY_USER, PYTHON, SSH_KEYGEN, trials};
use crate::traces::frites_as_ordinary_user;

trials! {
    python_with_an_editable_install_sockets_processes_and_shared_memory: [NAMESPACES, PYTHON];
    the_same_as_an_ordinary_user: [NAMESPACES, PYTHON, ORDINARY_USER];
    npm_installs_offline_and_tests: [NAMESPACES, NPM];
    cargo_tests_with_documentation_and_a_server: [NAMESPACES, CARGO];
    a_shell_suite_with_git_keys_and_shared_memory: [NAMESPACES, SSH_KEYGEN];
}

/// A project with two attempts: the first is right, the second wrong.
fn project(files: &[(&str, &str)], right: &str, wrong: &str) -> World {
    let mut world = sealed();
    for (path, text) in files {
        world.write(path, text);
    }
    world.commit("a project");
    world.set_env("CARGO_NET_OFFLINE", "true");
    world.attempts(&[right, wrong]);
    world
}

/// Fails unless the first attempt passes, with and without the base's outputs, and the second
/// fails, in sealed worlds and in the open one alike.
#[track_caller]
fn assert_same_as_outside(mut world: World, options: &[&str]) {
    for (mode, more) in [("sealed", &[][..]), ("sealed", &["--cold"]), ("off", &[])] {
        world.set_env("FRITES_SANDBOX_MODE", mode);
        let words = [&["judge", "--json", "--no-cache"], options, more].concat();
        let answer = world.frites(words);
        let verdict = answer.json();
        assert_eq!(verdict["recommended"], "c1", "{mode} {more:?}: {}", answer.stderr);
        assert_eq!(verdict["failed"], serde_json::json!(["c2"]), "{}", answer.stderr);
        assert_eq!(verdict["candidates"][0]["stale"], serde_json::Value::Null);
    }
    world.assert_clean();
}

const SUITE: &str = r#"
import fcntl, multiprocessing, os, pty, socket, sqlite3, subprocess, tempfile, unittest
from multiprocessing import shared_memory
import pkg

def square(x):
    return x * x

class Suite(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp()

    def test_the_candidate_is_tested(self):
        self.assertEqual(pkg.VALUE, 2)
        self.assertEqual(os.path.dirname(pkg.__file__), os.path.join(os.getcwd(), "pkg"))

    def test_files(self):
        here = os.path.join(self.tmp, "here")
        os.mkdir(here)
        os.rename(here, here + "2")
        with open("lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        db = sqlite3.connect("db.sqlite")
        db.execute("pragma journal_mode=wal")
        db.execute("create table t(x)")
        db.close()
        os.remove("db.sqlite")

    def test_sockets(self):
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        server.accept()[0].send(b"hi")
        self.assertEqual(client.recv(2), b"hi")
        for path in [os.path.join(self.tmp, "s"), "\0frites-" + self.tmp]:
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen()
            socket.socket(socket.AF_UNIX).connect(path)

    def test_processes(self):
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(square, [1, 2]), [1, 4])
        memory = shared_memory.SharedMemory(create=True, size=4096)
        memory.buf[0] = 7
        memory.close()
        memory.unlink()
        _, terminal = pty.openpty()
        self.assertTrue(os.isatty(terminal))

    def test_git(self):
        run = lambda *words: subprocess.run(words, check=True)
        run("git", "clone", "-q", ".", os.path.join(self.tmp, "clone"))
        run("git", "stash", "list")

if __name__ == "__main__":
    unittest.main()
"#;

/// A virtual environment whose path file leads to the checkout, as an editable install has.
fn python_project() -> World {
    let files = [
        ("pkg/__init__.py", "VALUE = 1\n"),
        ("suite.py", SUITE),
        (".gitignore", ".venv\n__pycache__\nlock\ndb.sqlite*\n"),
    ];
    let right = "echo 'VALUE = 2' > pkg/__init__.py";
    project(&files, right, "echo 'VALUE = 3' > pkg/__init__.py")
}

const EDITABLE_INSTALL: &str = "test -e .venv || python3 -m venv --without-pip .venv
    for site in .venv/lib/python3*/site-packages; do pwd > $site/pkg.pth; done
    cd .venv && bin/python -c 'import pkg'";

const PYTHON_SUITE: &str = "PYTHONSAFEPATH=1 .venv/bin/python suite.py";

fn python_with_an_editable_install_sockets_processes_and_shared_memory() {
    let words = ["--build", EDITABLE_INSTALL, "--test", PYTHON_SUITE];
    assert_same_as_outside(python_project(), &words);
}

fn the_same_as_an_ordinary_user() {
    let world = python_project();
    let words = ["judge", "--json", "--build", EDITABLE_INSTALL, "--test", PYTHON_SUITE];
    let answer = frites_as_ordinary_user(&world, words).expect(0);
    assert_eq!(answer.json()["recommended"], "c1", "{}", answer.stderr);
}

fn npm_installs_offline_and_tests() {
    let package = r#"{"name": "tiny", "version": "1.0.0", "dependencies": {"left": "file:left"},
        "scripts": {"test": "node test.js"}}"#;
    let lock = r#"{"name": "tiny", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
        "": {"name": "tiny", "version": "1.0.0", "dependencies": {"left": "file:left"}},
        "left": {"name": "left", "version": "1.0.0"},
        "node_modules/left": {"resolved": "left", "link": true}}}"#;
    let files = [
        ("package.json", package),
        ("package-lock.json", lock),
        ("left/package.json", r#"{"name": "left", "version": "1.0.0", "main": "value.js"}"#),
        ("left/value.js", "module.exports = 1;\n"),
        ("test.js", "if (require('left') !== 2) process.exit(1);\n"),
        (".gitignore", "node_modules\n"),
    ];
    let world =
        project(&files, "echo 'module.exports = 2;' > left/value.js", "echo '//' >> test.js");
    assert_same_as_outside(world, &["--build", "npm ci --offline", "--test", "npm test"]);
}

fn cargo_tests_with_documentation_and_a_server() {
    let lib = r#"
/// ```
/// assert!(tiny::two() < 9);
/// ```
pub fn two() -> i32 {
    1
}

#[test]
fn is_two() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
    assert_eq!(two(), 2);
}
"#;
    let files = [
        ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"tiny\"\nversion = \"0.1.0\"\n"),
        (".gitignore", "target\n"),
        ("src/lib.rs", lib),
    ];
    let change =
        |number: char| format!("sed -i.bak 's/    1/    {number}/' src/lib.rs; rm src/lib.rs.bak");
    let world = project(&files, &change('2'), &change('3'));
    assert_same_as_outside(world, &["--test", "cargo test -q --offline"]);
}

fn a_shell_suite_with_git_keys_and_shared_memory() {
    let test = r#"set -eu
        ssh-keygen -q -t ed25519 -N '' -f /tmp/key
        echo x > /dev/shm/x; mkdir -p ~/.config/suite; echo x > ~/.config/suite/x
        git init -q /tmp/other; cd /tmp/other; echo x > file; git add file
        git -c user.name=x -c user.email=x@y -c gpg.format=ssh -c user.signingKey=/tmp/key commit -q -S -m signed
        cd - >/dev/null
        git -c user.name=x -c user.email=x@y commit -q --allow-empty -m more
        git branch side; git gc -q; git worktree add -q /tmp/tree side; test -e /tmp/tree/README
        git -C /tmp/tree status --porcelain; git worktree remove /tmp/tree; git branch -D side
        rm -r /tmp/other /tmp/key* /dev/shm/x ~/.config/suite
        grep -q right README"#;
    let world = project(&[], "echo right > README", "echo wrong > README");
    // Outside, the branch and the commit would be the user's.
    let answer = world.frites(["judge", "--json", "--test", test]).expect(0);
    assert_eq!(answer.json()["recommended"], "c1", "{}", answer.stderr);
    assert_eq!(world.git(["branch", "--list", "side"]), "");
    world.assert_clean();
}
