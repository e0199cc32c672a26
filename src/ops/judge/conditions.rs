//! The machines that outcomes were found on, as far as a person should know of a difference.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::git::refs;
use crate::model::machine::Machine;
use crate::model::name::Name;
use crate::model::partial::PartOutcome;
use crate::model::run::Run;
use crate::ops::session::Session;

/// Says which of these outcomes disagree with another that came later, and whether the machines
/// differ in anything but their names.
pub fn tell(session: &Session, run: &Run, used: &[PartOutcome]) -> Result<()> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for first in used {
        let part = first.part();
        if let Some(Machine { host, platform, git, git_frites }) = &first.machine {
            let kind = format!("{platform}, git {git}, git-frites {git_frites}");
            kinds.entry(kind).or_default().push(format!("{part} ({host})"));
        }
        for other in session.store.disagreeing(&refs::result_of(&run.run, &part))? {
            session.ui.warn(disagreement(&run.run, first, &other));
        }
    }
    if kinds.len() > 1 {
        let kinds = kinds.iter().map(|(kind, parts)| format!("{kind}: {}", parts.join(", ")));
        session.ui.warn(format!(
            "the machines that judged run {} differ: {}",
            run.run,
            kinds.collect::<Vec<_>>().join("; ")
        ));
    }
    Ok(())
}

/// Two outcomes of one part that disagree, in words.
pub fn disagreement(run: &Name, first: &PartOutcome, second: &PartOutcome) -> String {
    let found = |outcome: &PartOutcome| {
        let host = outcome.machine.as_ref().map_or("?", |machine| &machine.host);
        format!("{} ({host})", outcome.words())
    };
    format!(
        "{run}/{}: it was judged twice, and the outcomes disagree: first {}, then {}; the first one stays",
        first.part(),
        found(first),
        found(second)
    )
}
