//! Engines that judge one run on several machines: a real Slurm cluster of four nodes, and GNU
//! parallel.
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::spread::with_remote;
use crate::common::{Answer, World, make_executable, poll, source, write};
use crate::tool::{FAKETIME, PARALLEL, PYTHON_YAML, SCHEMAS, SLURM, trials};

trials! {
    three_lines_judge_a_run_on_a_cluster: [SLURM];
    killed_node_never_makes_another_candidate_win: [SLURM];
    cancelled_and_requeued_tasks_store_whole_outcomes_or_none: [SLURM];
    task_that_reaches_its_time_limit_stores_no_outcome: [SLURM];
    attempts_are_made_on_a_cluster: [SLURM];
    clocks_of_machines_that_differ_change_nothing: [FAKETIME];
    parallel_makes_attempts_and_judges_what_is_pending: [PARALLEL];
    manifests_of_the_manual_are_what_the_engines_read: [PYTHON_YAML];
    manifests_of_the_manual_match_the_published_schemas: [SCHEMAS];
}

/// A cluster, whose daemons end with it.
struct Cluster<'w> {
    world: &'w World,
    dir: PathBuf,
}

impl<'w> Cluster<'w> {
    fn start(world: &'w mut World) -> Cluster<'w> {
        let dir = world.home().join("cluster");
        world.set_env("SLURM_CONF", dir.join("slurm.conf"));
        let cluster = Cluster { world, dir };
        cluster.call("up", &[]).expect(0);
        cluster
    }

    fn call(&self, verb: &str, more: &[&str]) -> Answer {
        let script = source().join("tests/slurm/cluster.sh");
        let words = [script.as_os_str(), verb.as_ref(), self.dir.as_os_str()];
        let words = words.into_iter().chain(more.iter().map(AsRef::as_ref));
        self.world.run(&self.world.repo, "bash", words)
    }

    fn kill(&self, node: &str) {
        self.call("kill", &[node]).expect(0);
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        let all = ["--full", "--signal=KILL", "-u", "root"];
        let _ = self.world.run(&self.world.repo, "scancel", all);
        let _ = self.call("down", &[]);
    }
}

/// A world whose run `fix` has candidates that change 8, 7, … and 2 lines; and its remote's URL.
/// The candidate with 2 lines fails. The base is the eighth part.
fn seven_attempts(test: &str) -> (World, String) {
    let world = World::new();
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("configured");
    let url = with_remote(&world);
    let script = "seq $((9 - FRITES_INDEX)) > new";
    world.spawn(["--run", "fix", "-n", "7", "--", "sh", "-c", script]);
    (world, url)
}

/// The lines of git-frites-spread(7), with what the user writes in their place.
fn lines(url: &str) -> [String; 3] {
    [
        "git frites shard open --remote origin fix".into(),
        format!(
            "sbatch -W --array=1-8%4 --requeue --wrap \"git frites shard judge --remote {url} fix \\$SLURM_ARRAY_TASK_ID/8\""
        ),
        "git frites shard collect --remote origin fix".into(),
    ]
}

/// The files in a directory of the home whose names begin with these words.
fn marks(world: &World, beginning: &str) -> Vec<String> {
    let names = fs::read_dir(world.home()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(beginning)).collect()
}

fn three_lines_judge_a_run_on_a_cluster() {
    let test = "touch \"$HOME/on-$SLURMD_NODENAME\"; i=0
        until test \"$(ls \"$HOME\" | grep -c ^on-)\" -ge 4 || test $i = 2000; do i=$((i+1)); sleep 0.01; done
        test \"$(wc -l < new || echo 9)\" -gt 2";
    let (mut world, url) = seven_attempts(test);
    world.write("README", "not what is judged\n");
    let manual = fs::read_to_string(source().join("src/manual/spread.txt")).unwrap();
    for line in lines("$URL") {
        assert!(manual.contains(&format!("    {line}\n")), "{line}");
    }
    let cluster = Cluster::start(&mut world);
    let world = cluster.world;
    let [open, array, replay] = lines(&url);
    assert_eq!(world.sh(&world.repo, &open).expect(0).out(), "8\n");
    world.sh(&world.repo, &array).expect(0);
    // All four nodes were at work at once.
    assert_eq!(marks(world, "on-n").len(), 4);
    let there = world.sh(&world.repo, &format!("{replay} --json")).expect(0).json();
    let whole = world.frites(["judge", "--no-cache", "--json", "fix"]).expect(0).json();
    for key in ["decision", "recommended", "rationale", "ranking", "passed", "failed"] {
        assert_eq!(there[key], whole[key], "{key}");
    }
    assert_eq!(there["recommended"], "c6");
    world.frites(["apply", "--no-switch", "-m", "land", "fix"]).expect(0);
}

/// Before its commands, during them, and when they have ended and nothing is stored yet.
fn killed_node_never_makes_another_candidate_win() {
    for moment in ["before", "during", "after"] {
        // The winner has three lines. While it is judged, its node is known.
        let test = "if test \"$(wc -l < new || echo 9)\" = 3; then
                echo $SLURMD_NODENAME > \"$HOME/node.new\"; mv \"$HOME/node.new\" \"$HOME/node\"; i=0
                until test -e \"$HOME/go\" || test $i = 6000; do i=$((i+1)); sleep 0.01; done
            fi
            test \"$(wc -l < new || echo 9)\" -gt 2";
        let (mut world, url) = seven_attempts(test);
        let (node, go) = (world.home().join("node"), world.home().join("go"));
        let cluster = Cluster::start(&mut world);
        let world = cluster.world;
        let [open, array, replay] = lines(&url);
        world.sh(&world.repo, &open).expect(0);
        let pushes = Path::new(&url).join("hooks/pre-receive");
        match moment {
            "before" => cluster.kill("n2"),
            "after" => {
                let hook =
                    "#!/bin/sh\nread -r old new ref\ncase $ref in */c6) touch \"$HOME/pushing\"
                    while ! test -e \"$HOME/gone\"; do sleep 0.01; done; exit 1;; esac\n";
                write(&pushes, hook);
                make_executable(&pushes);
                write(&go, "");
            }
            _ => {}
        }
        // What waits for its node waits long: the array is given up, as a person does.
        let array_in_background = array.replace("sbatch -W", "sbatch --parsable");
        let job = world.sh(&world.repo, &array_in_background).expect(0).out().trim().to_owned();
        match moment {
            "before" => write(&go, ""),
            "during" => {
                poll(|| node.exists());
                cluster.kill(fs::read_to_string(&node).unwrap().trim());
            }
            _ => {
                poll(|| world.home().join("pushing").exists());
                cluster.kill(fs::read_to_string(&node).unwrap().trim());
                write(&world.home().join("gone"), "");
            }
        }
        let pending =
            || world.frites(["shard", "list", "--remote", "origin", "fix"]).expect(0).out();
        // A killed node has done none of its shares, and the others do theirs.
        poll(|| pending().lines().count() <= 2);
        let left = pending();
        let decided = world.sh(&world.repo, &replay);
        match decided.code {
            0 => assert!(decided.out().contains("\n*  fix/c6 "), "{moment}: {}", decided.out()),
            code => {
                assert_eq!(code, 3, "{moment}: {}{}", decided.out(), decided.stderr);
                // Without the base's outcome, no pass counts.
                let is_open = left.contains("fix/c6\n") || left.contains("fix/@base\n");
                assert!(is_open, "{moment}: {left}");
                assert!(decided.stderr.contains("missing: "), "{}", decided.stderr);
            }
        }
        if moment != "before" {
            assert!(left.contains("fix/c6\n"), "{moment}: {left}");
        }
        world.run(&world.repo, "scancel", [&job]).expect(0);
        write(&go, "");
        let _ = fs::remove_file(&pushes);
        // The three nodes that are left judge what is missing, and nothing else.
        let again = array.replace("--array", "--exclude=n2 --array");
        let again = match moment {
            "before" => again,
            _ => array.replace(
                "--array",
                &format!("--exclude={} --array", fs::read_to_string(&node).unwrap().trim()),
            ),
        };
        world.sh(&world.repo, &again).expect(0);
        assert_eq!(pending(), "", "{moment}");
        let verdict = world.sh(&world.repo, &format!("{replay} -q")).expect(0).out();
        assert_eq!(verdict, "fix/c6\n", "{moment}");
    }
}

fn cancelled_and_requeued_tasks_store_whole_outcomes_or_none() {
    let test = "touch \"$HOME/began-$SLURM_RESTART_COUNT\"; i=0
        until test -e \"$HOME/go\" || test $i = 6000; do i=$((i+1)); sleep 0.01; done";
    let (mut world, url) = seven_attempts(test);
    let go = world.home().join("go");
    let cluster = Cluster::start(&mut world);
    let world = cluster.world;
    world.sh(&world.repo, &lines(&url)[0]).expect(0);
    let submit = |options: &str| {
        let line = format!(
            "sbatch --parsable --requeue {options} --wrap \"git frites shard judge --remote {url} fix/c7\""
        );
        world.sh(&world.repo, &line).expect(0).out().trim().to_owned()
    };
    let pending = || world.frites(["shard", "list", "--remote", "origin", "fix"]).expect(0).out();
    let is_gone = |job: &str| {
        let state = world.run(&world.repo, "squeue", ["-h", "-o", "%T", "-j", job]);
        state.out().trim().is_empty()
    };
    let job = submit("");
    poll(|| world.home().join("began-").exists());
    world.run(&world.repo, "scancel", [&job]).expect(0);
    poll(|| is_gone(&job));
    assert!(pending().contains("fix/c7\n"));
    fs::remove_file(world.home().join("began-")).unwrap();
    // Requeued while its command runs, it judges again from the beginning.
    let job = submit("");
    poll(|| world.home().join("began-").exists());
    world.run(&world.repo, "scontrol", ["requeue", &job]).expect(0);
    poll(|| world.home().join("began-1").exists());
    assert!(pending().contains("fix/c7\n"));
    write(&go, "");
    poll(|| is_gone(&job));
    assert!(!pending().contains("fix/c7\n"));
}

/// Slurm counts limits in minutes, so the end of the running task is moved to the present.
fn task_that_reaches_its_time_limit_stores_no_outcome() {
    let test = "touch \"$HOME/began\"; i=0
        until test -e \"$HOME/go\" || test $i = 18000; do i=$((i+1)); sleep 0.01; done";
    let (mut world, url) = seven_attempts(test);
    let cluster = Cluster::start(&mut world);
    let world = cluster.world;
    world.sh(&world.repo, &lines(&url)[0]).expect(0);
    let judge = format!("git frites shard judge --remote {url} fix/c7");
    let line = format!("sbatch --parsable --no-requeue --time=20 --wrap \"{judge}\"");
    let job = world.sh(&world.repo, &line).expect(0).out().trim().to_owned();
    poll(|| world.home().join("began").exists());
    let update = format!("scontrol update JobId={job} EndTime=now");
    world.sh(&world.repo, &update).expect(0);
    poll(|| {
        let shown = world.run(&world.repo, "scontrol", ["show", "job", &job]).out();
        shown.contains("JobState=TIMEOUT") && !shown.contains("COMPLETING")
    });
    let pending = || world.frites(["shard", "list", "--remote", "origin", "fix"]).expect(0).out();
    assert!(pending().contains("fix/c7\n"));
    write(&world.home().join("go"), "");
    world.sh(&world.repo, &format!("sbatch -W --wrap \"{judge}\"")).expect(0);
    assert!(!pending().contains("fix/c7\n"));
}

fn attempts_are_made_on_a_cluster() {
    let mut world = World::new();
    let url = world.home().join("remote.git").into_os_string().into_string().unwrap();
    world.git(["clone", "-q", "--bare", ".", &url]);
    world.git(["remote", "add", "origin", &url]);
    let manual = fs::read_to_string(source().join("src/manual/spread.txt")).unwrap();
    let array = |limit: &str, url: &str, prefix: &str| {
        format!(
            "sbatch -W --array={limit} --requeue --wrap \"git frites shard run --remote {url} fix/{prefix}\\$SLURM_ARRAY_TASK_ID\""
        )
    };
    assert!(manual.contains(&format!("    {}\n", array("1-8%4", "$URL", "claude-"))));
    let script = "touch \"$HOME/on-$SLURMD_NODENAME\"; i=0
        until test \"$(ls \"$HOME\" | grep -c ^on-)\" = 4 || test $i = 2000; do i=$((i+1)); sleep 0.01; done
        seq $FRITES_INDEX > new";
    let words =
        ["shard", "open", "--attempts", "--remote", "origin", "--run", "fix", "-n", "8", "--"];
    world.frites(words.into_iter().chain(["sh", "-c", script])).expect(0);
    let cluster = Cluster::start(&mut world);
    let world = cluster.world;
    world.sh(&world.repo, &array("1-8%4", &url, "c")).expect(0);
    assert_eq!(marks(world, "on-n").len(), 4);
    let open = ["shard", "open", "--remote", "origin", "--test", "test -e new", "fix"];
    assert_eq!(world.frites(open).expect(0).out(), "9\n");
    world.sh(&world.repo, &lines(&url)[1]).expect(0);
    let verdict = world.sh(&world.repo, &format!("{} -q", lines(&url)[2])).expect(0).out();
    assert_eq!(verdict, "fix/c1\n");
}

/// One machine is five minutes behind, and another one five minutes ahead.
fn clocks_of_machines_that_differ_change_nothing() {
    let (mut world, url) = seven_attempts("test \"$(wc -l < new || echo 9)\" -gt 2");
    world.set_env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    world.set_env("NO_FAKE_STAT", "1");
    let at = |offset: &str, words: &str| {
        let line = format!("faketime -f {offset} git-frites {words}");
        world.sh(&world.repo, &line).expect(0).out()
    };
    at("-300s", "shard open --remote origin fix");
    at("+300s", &format!("shard judge --remote {url} fix 1/2"));
    // Opened again where it is early, and judged where it is late, the round goes on.
    at("+300s", "shard open --remote origin fix");
    let again = at("-300s", &format!("shard judge --remote {url} fix 1/2"));
    assert_eq!(again.matches("\tstored before\n").count(), 4, "{again}");
    at("-300s", &format!("shard judge --remote {url} fix 2/2"));
    let judged = |part: &str| -> String {
        let file = format!("refs/frites/fix/@results/{part}:outcome.toml");
        let text = world.git_in(Path::new(&url), ["show", &file]);
        text.lines().find(|line| line.starts_with("judged = ")).unwrap().to_owned()
    };
    assert!(judged("c2") < judged("c1"), "the clocks did differ");
    for offset in ["-300s", "+300s"] {
        let waiting = "shard collect --remote origin --wait 1m --until-pass -q fix";
        assert_eq!(at(offset, waiting), "fix/c6\n");
    }
    // A judging of the whole run ends the round, whatever the time is.
    at("-300s", "judge -q fix");
    let pending = world.frites(["shard", "list", "fix"]);
    pending.refuses(128, "run fix was not opened for judging in parts");
    let later = "shard open --attempts --remote origin --run late -n 1 -- touch new";
    assert_eq!(at("+300s", later), "late/c1\n");
    let attempt = format!("shard run --remote {url} late/c1");
    assert_eq!(at("-300s", &attempt), "late/c1\tsucceeded\n");
    assert_eq!(at("+300s", &attempt), "late/c1\tsucceeded\tstored before\n");
}

fn parallel_makes_attempts_and_judges_what_is_pending() {
    let (world, url) = seven_attempts("test \"$(wc -l < new || echo 9)\" -gt 2");
    world.frites(["clean", "--forget", "fix"]).expect(0);
    let script = "seq $((9 - FRITES_INDEX)) > new";
    let attempts = format!(
        "git frites shard open --attempts --remote origin --run fix -n 7 -- sh -c '{script}' |
            parallel -j 4 git frites shard run --remote '{url}' {{}}"
    );
    world.sh(&world.repo, &attempts).expect(0);
    world.sh(&world.repo, &lines(&url)[0]).expect(0);
    let line = format!(
        "git frites shard list --remote origin fix | parallel -j 4 git frites shard judge --remote '{url}' {{}}"
    );
    let manual = fs::read_to_string(source().join("src/manual/spread.txt")).unwrap();
    for what in ["shard judge --remote \"$URL\" {}", "shard run --remote \"$URL\" {}"] {
        assert!(manual.contains(&format!("parallel -S :,host1,host2 git frites {what}")), "{what}");
    }
    world.sh(&world.repo, &line).expect(0);
    let replay = "git frites shard collect --remote origin -q fix";
    assert_eq!(world.sh(&world.repo, replay).expect(0).out(), "fix/c6\n");
    // Nothing is left to do, which is not an error.
    world.sh(&world.repo, &line).expect(0);
}

/// The fields that matter are where the engines look for them; no engine runs here.
fn manifests_of_the_manual_are_what_the_engines_read() {
    let world = World::empty("no repository");
    let script = r##"
import yaml
block = lambda heading: yaml.safe_load(example(heading))
job = block("KUBERNETES")
assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
spec = job["spec"]
assert set(spec) == {"completionMode", "completions", "parallelism", "backoffLimitPerIndex", "podFailurePolicy", "template"}
assert spec["completionMode"] == "Indexed" and isinstance(spec["completions"], int)
pod = spec["template"]["spec"]
# The API server takes a policy for failures only with this one.
assert pod["restartPolicy"] == "Never"
[container] = pod["containers"]
fail, ignore = spec["podFailurePolicy"]["rules"]
assert fail["onExitCodes"] == {"containerName": container["name"], "operator": "In", "values": [2]}
assert ignore["onPodConditions"] == [{"type": "DisruptionTarget"}]
assert "auto/%d" % spec["completions"] in container["command"]
assert all(isinstance(word, str) for word in container["command"])
actions = block("GITHUB ACTIONS")
assert actions["permissions"] == {"contents": "read"}
steps = actions["jobs"]["judge"]["steps"]
assert all(("uses" in step) != ("run" in step) for step in steps)
assert steps[0]["with"] == {"persist-credentials": False}
shares = actions["jobs"]["judge"]["strategy"]["matrix"]["share"]
assert "/%d --bundle %s" % (len(shares), steps[3]["with"]["path"]) in steps[2]["run"]
ci = block("GITLAB")["judge"]
assert isinstance(ci["parallel"], int) and ci["retry"] in (0, 1, 2)
assert ci["script"][0].endswith(" auto")
"##;
    world.run(&world.repo, "python3", ["-c", &format!("{EXAMPLE}{script}")]).expect(0);
}

/// A function in Python that gives the example below a heading of the manual.
const EXAMPLE: &str = concat!(
    "text = open('",
    env!("CARGO_MANIFEST_DIR"),
    r##"/src/manual/spread.txt').read()
def example(heading):
    lines = text.split("# " + heading + "\n")[1].split("    ", 1)[1].splitlines()
    lines[0] = "    " + lines[0]
    ends = [n for n, line in enumerate(lines) if not line.startswith("    ")]
    return "\n".join(line[4:] for line in lines[:ends[0]]) + "\n"
"##
);

/// Each schema knows the fields, and refuses a name or a value that is wrong.
fn manifests_of_the_manual_match_the_published_schemas() {
    let mut world = World::empty("no repository");
    world.set_env("PYTHONPATH", crate::tool::PUBLISHED);
    let script = r##"
import subprocess, sys
schema = ["check_jsonschema", "--builtin-schema"]
for heading, name, check, right, wrong in [
    ("KUBERNETES", "job.yaml", ["kubernetes_validate", "--strict"], "completionMode", "completionsMode"),
    ("GITHUB ACTIONS", "workflow.yml", [*schema, "vendor.github-workflows"], "runs-on", "run-on"),
    ("GITLAB", "gitlab.yml", [*schema, "vendor.gitlab-ci"], "parallel: 8", "parallel: many"),
]:
    for content, code in [(example(heading), 0), (example(heading).replace(right, wrong), 1)]:
        open(name, "w").write(content)
        done = subprocess.run([sys.executable, "-m", *check, name])
        assert done.returncode == code, (name, code)
"##;
    world.run(&world.repo, "python3", ["-c", &format!("{EXAMPLE}{script}")]).expect(0);
}
