//! The evaluation of the ranking rules on a synthetic set with known truth.
use std::path::Path;

use serde_json::json;

use crate::common::World;
use crate::tool::{PYTHON, trials};

trials! {
    evaluation_gives_the_picks_of_each_rule: [PYTHON];
}

fn evaluation_gives_the_picks_of_each_rule() {
    let world = World::new();
    let eval = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval");
    let (script, tasks) = (eval.join("rank_rules.py"), eval.join("tasks"));
    let found = world.run(
        &world.repo,
        "python3",
        [script.as_os_str(), "--json".as_ref(), tasks.as_os_str()],
    );
    let found = found.expect(0).json();
    let of = |at: usize| (&found["tasks"][at]["task"], &found["tasks"][at]["picks"]);
    let picks = |smallest: &str, cross: &str| (json!([smallest]), json!([cross]));
    let cases = [
        // Without a valid test, cross picks the smallest.
        ("lonely_test", picks("a", "a")),
        ("no_test", picks("a", "a")),
        ("small_is_wrong", picks("a", "b")),
    ];
    for (at, (name, (smallest, cross))) in cases.into_iter().enumerate() {
        let (task, picks) = of(at);
        assert_eq!(*task, name, "{found:#}");
        assert_eq!((&picks["blast-radius"], &picks["cross"]), (&smallest, &cross), "{found:#}");
    }
    assert_eq!(found["rules"]["cross"]["right"], json!([1.0, 1.0, 1.0]), "{found:#}");
    // Of three tasks, the smallest is right in two.
    assert_eq!(found["rules"]["blast-radius"]["right"], json!([2.0 / 3.0, 0.0, 1.0]), "{found:#}");
}
