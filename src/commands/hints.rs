//! Adds hints to errors according to their cause. The hints name commands and options, which only
//! the modules of commands know.
use crate::error::{Cause, Error};
use crate::model::env;
use crate::process::interrupt;

/// The error, with a hint that fits its cause if there is one.
pub fn add(error: Error) -> Error {
    let hint = match &error.cause {
        Cause::RunExists(run) => {
            let run = run.clone();
            return error
                .hint(format!(
                    "take another name, or let candidates join that run: `git frites add {run}`"
                ))
                .hint(format!(
                    "`git frites clean --forget {run}` frees the name, and deletes that run's captures for good"
                ));
        }
        Cause::NoRun => "start one with `git frites spawn`".to_owned(),
        Cause::UnknownRun => "`git frites status` lists the runs".to_owned(),
        Cause::RunBusy(run) => {
            format!("wait for it to end; `git frites status {run}` shows its progress")
        }
        Cause::StorageFull => {
            "free disk space: `git frites clean RUN` removes the worktrees of a run, and `git frites clean --cache` empties the cache".to_owned()
        }
        Cause::ReadOnly if std::env::var_os(env::RUN).is_some() => {
            return Error::fatal(format!(
                "this is an attempt, which may only change its worktree: {error}"
            ))
            .hint("end the attempt: whoever started it judges and lands what is in the worktree");
        }
        Cause::ReadOnly => {
            "`git frites status`, `log` and `diff --no-capture` only read".to_owned()
        }
        // The signal that asked git-frites to end has ended git, too.
        Cause::Interrupted if interrupt::signal().is_some() => {
            return Error::no("interrupted")
                .hint("nothing is damaged; try again")
                .with_source(error);
        }
        Cause::GitExit
        | Cause::Locked
        | Cause::RefMoved
        | Cause::Damaged
        | Cause::Interrupted
        | Cause::NotFound
        | Cause::Uncapturable
        | Cause::EndUnknown
        | Cause::Other => return error,
    };
    error.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_follows_those_of_the_error_and_names_the_run() {
        let error = Error::fatal("busy").hint("first").because(Cause::RunBusy("fix".into()));
        assert_eq!(
            add(error).hints,
            ["first", "wait for it to end; `git frites status fix` shows its progress"]
        );
    }

    #[test]
    fn cause_without_a_command_to_type_gets_no_hint() {
        assert!(add(Error::damaged("lost")).hints.iter().all(|hint| !hint.contains("git frites")));
    }
}
