//! `git frites judge -n`: shows what would run.
use serde_json::{Value, json};

use crate::commands::judge_args::JudgeArgs;
use crate::error::{Result, exit};
use crate::ops::judge::installed;
use crate::ops::judge::plan::OraclePlan;
use crate::ops::session::Session;
use crate::store::select::{Matching, Scope};
use crate::ui::table;

/// Shows what would run, without running anything.
pub fn show(session: &Session, args: &JudgeArgs) -> Result<u8> {
    let run = match (&args.address, &args.base) {
        (None, None) if session.store.runs()?.is_empty() => None,
        (None, Some(_)) => None,
        (address, _) => {
            Some(session.store.select(address.as_ref(), Scope::Run, Matching::Prefix)?.run)
        }
    };
    let (base, name) = match &run {
        Some(run) => (*run.root(), format!("of run {run}")),
        None => {
            let revision = args.base.as_deref().unwrap_or("HEAD");
            (session.repo.resolve_commit(revision)?, revision.to_owned())
        }
    };
    let options = args.options();
    let plan = OraclePlan::new(session, &base, run.as_ref(), &options)?;
    let seconds = options.timeout(session).as_secs_f64();
    if args.show.output.json {
        let mut document = as_json(&plan);
        document["base"] = json!(base);
        document["run"] = json!(run.as_ref().map(|run| &run.run));
        document["limits"] = json!({ "jobs": args.jobs, "seconds": seconds });
        session.ui.answer_json(document);
    } else {
        let mut text = format!("base: {} ({})\n", base.short(), table::printable(&name));
        for line in plan.lines() {
            text.push_str(&format!("{}\n", table::printable(&line)));
        }
        let each = table::duration(seconds);
        text.push_str(&format!("limits: {} at once, each command for at most {each}\n", args.jobs));
        session.ui.answer(text);
    }
    let commands = &plan.planned.oracle.commands;
    installed::hint_at_unseeded(session, &base, commands)?;
    plan.planned.oracle.require_programs()?;
    installed::require(session, &base, &plan.planned.oracle)?;
    if commands.is_empty() {
        session.ui.hint("name a test with `--test CMD`, or oracle.test in .frites.toml");
    }
    Ok(if plan.verifies() { exit::OK } else { exit::UNVERIFIED })
}

fn as_json(plan: &OraclePlan) -> Value {
    let passed_over =
        plan.planned.passed_over.iter().map(
            |passed_over| json!({ "command": passed_over.command, "reason": passed_over.reason }),
        );
    let known = plan.known.as_ref().map(|known| {
        let (captured, passing) = known.candidates;
        json!({
            "base": known.base, "outputs": known.start.is_some_and(|start| start.is_own),
            "outputs_of": known.start.map(|start| start.commit), "captured": captured,
            "passing": passing,
        })
    });
    let downloads: Vec<String> = plan.downloads.iter().map(|c| c.command.to_string()).collect();
    json!({
        "downloads": downloads, "commands": plan.planned.checked(), "passed_over": passed_over.collect::<Vec<_>>(),
        "seeds": plan.planned.seeds, "world": plan.settings.commands.world, "known": known,
        "verifies": plan.verifies(),
    })
}
