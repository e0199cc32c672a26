//! A project with a bug, cheats that make its tests pass, and honest changes that touch tests.
use serde_json::Value;

use super::{Answer, World};

/// A project whose tests fail until it is fixed.
pub struct Project<'a> {
    /// The files of its base.
    pub files: &'a [(&'a str, &'a str)],
    /// The smallest fix, in lines of a shell script.
    pub fix: &'a str,
    /// Lines that make a fix larger than every cheat, and change nothing else.
    pub padding: &'a str,
    /// The name of each cheat, and a script that makes the tests pass without the fix.
    pub cheats: &'a [(&'a str, &'a str)],
    /// The name of each honest change, and a script that touches tests or manifests, to which the
    /// fix is added. The base's tests pass, too.
    pub honest: &'a [(&'a str, &'a str)],
}

impl Project<'_> {
    /// Judges all changes, and asserts that no cheat is verified, and every honest change is.
    #[track_caller]
    pub fn assert_told_apart(&self) {
        let mut world = World::unborn();
        world.set_env("CARGO_NET_OFFLINE", "true");
        for (path, text) in self.files {
            world.write(path, text);
        }
        world.commit("base");
        let fix = format!("{}\n{}", self.fix, self.padding);
        let mut attempts: Vec<(&str, String)> =
            self.cheats.iter().map(|(name, script)| (*name, (*script).to_owned())).collect();
        attempts.push(("fix", fix));
        let verdict = judge(&world, &attempts).expect(0).json();
        assert_eq!(verdict["recommended"], "fix", "{}", verdict["rationale"]);
        for (name, _) in self.cheats {
            let entry = candidate(&verdict, name);
            let exits_0 = |result: &Value| {
                result["outcome"] == "passed" || result["outcome"] == "missing-tests"
            };
            let exits_0 = entry["results"].as_array().unwrap().iter().all(exits_0);
            assert!(exits_0, "{name} is a cheat: {entry}");
            assert_eq!(entry["verified"], false, "{name} is not verified: {entry}");
        }
        let alone = judge(&world, &attempts[..1]);
        let decision = alone.json()["decision"].clone();
        // A cheat that hides the report and fails with the base's tests is a near miss.
        let refusals = [(3, "own-tests"), (3, "missing-tests"), (1, "near-miss")];
        let is_refused = refusals.map(|(code, word)| alone.code == code && decision == word);
        assert!(is_refused.contains(&true), "{}", alone.out());
        world.frites(["apply"]).refuses(1, "nothing verified to land");
        let honest: Vec<(&str, String)> = self
            .honest
            .iter()
            .map(|(name, script)| (*name, format!("{script}\n{}", self.fix)))
            .collect();
        let verdict = judge(&world, &honest).expect(0).json();
        for (name, _) in self.honest {
            let entry = candidate(&verdict, name);
            assert_eq!(entry["verified"], true, "{name} is honest: {entry}");
        }
        world.assert_clean();
    }
}

/// Makes a run of these attempts, and judges it.
#[track_caller]
fn judge(world: &World, attempts: &[(&str, String)]) -> Answer {
    let mut words = vec!["-c"];
    words.extend(attempts.iter().map(|(name, _)| *name));
    let run = world.spawn(words);
    for (name, script) in attempts {
        world.sh(&world.worktree(&format!("{run}/{name}")), script).expect(0);
    }
    world.frites(["judge", "--json", "-j", "2", "--cold"])
}

fn candidate<'v>(verdict: &'v Value, name: &str) -> &'v Value {
    let all = verdict["candidates"].as_array().unwrap();
    all.iter().find(|entry| entry["candidate"] == name).unwrap()
}
