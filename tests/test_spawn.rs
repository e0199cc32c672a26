//! `spawn`: names, numbers, all or nothing, commands, races.
use crate::common::World;

#[test]
fn spawn_prints_a_line_for_each_candidate_and_leaves_the_user_alone() {
    let world = World::new();
    let before = world.belongings();
    let answer = world.frites(["spawn", "-n", "3"]).expect(0);
    let lines: Vec<String> =
        (1..=3).map(|i| format!("1/c{i}\t{}\n", world.worktree(&format!("1/c{i}")).display())).collect();
    assert_eq!(answer.out(), lines.concat());
    assert_eq!(world.belongings(), before);
    for i in 1..=3 {
        let dir = world.worktree(&format!("1/c{i}"));
        assert_eq!(world.git_in(&dir, ["symbolic-ref", "HEAD"]), format!("refs/heads/frites/run/1/c{i}"));
        assert_eq!(world.git_in(&dir, ["status", "--porcelain"]), "");
    }
    world.assert_clean();
}
