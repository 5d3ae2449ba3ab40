//! That the duals prove the matching: for tests.

use super::BlossomSolver;

impl BlossomSolver<'_> {
    /// Checks every condition under which the matching is optimal, and says which fails.
    pub(in super::super) fn prove(&self) -> Result<(), String> {
        let vertices = self.forest.vertex_count();
        let mut cost = 0;
        for first in 0..vertices {
            for second in first + 1..vertices {
                let slack = self.slack_with_blossoms(first, second);
                let matched = self.forest.mate[first] == Some(second);
                if slack < 0 || matched && slack != 0 {
                    return Err(format!("slack of {first}, {second} is {slack}"));
                }
                cost += if matched {
                    self.costs.at(first, second)
                } else {
                    0
                };
            }
        }
        let bound = self.bound()?;
        (cost == bound)
            .then_some(())
            .ok_or(format!("cost {cost}, bound {bound}"))
    }

    /// The dual objective, a lower bound of every perfect matching's cost.
    fn bound(&self) -> Result<i64, String> {
        let vertices = self.forest.vertex_count();
        let mut bound: i64 = self.duals().sum();
        for node in &self.forest.nodes[vertices..] {
            if node.dual < 0 || node.members.len() % 2 == 0 && !node.members.is_empty() {
                return Err(format!(
                    "blossom of {} has dual {}",
                    node.members.len(),
                    node.dual
                ));
            }
            bound -= node.dual * (node.members.len() as i64 - 1).max(0) / 2;
        }
        Ok(bound)
    }
}
