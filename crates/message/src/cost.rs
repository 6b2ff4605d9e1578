//! What a conversation has cost.

use serde::{Deserialize, Serialize};

use crate::message::{TurnResult, Usage};

/// What a conversation has cost, by the agent's own account.
///
/// The agent repeats a message's usage on each of its lines, so adding those up counts tokens several times. The result
/// of a turn has the turn's usage and the cost of all turns so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The cost of all turns, in dollars, as the agent reported it last. Newer releases go on counting when a
    /// conversation is resumed: see [`Cost::resumed`].
    pub total_usd: f64,
    /// The cost of the turns that were pushed, in dollars.
    pub spent_usd: f64,
    /// The cost of the last turn, in dollars.
    pub last_turn_usd: f64,
    /// The tokens of the last turn.
    pub last_turn: Usage,
    /// How many turns have ended.
    pub turns: u64,
}

impl Cost {
    /// The cost of a conversation that goes on after `total_usd` dollars.
    pub fn resumed(total_usd: f64) -> Self {
        Self {
            total_usd,
            ..Self::default()
        }
    }

    /// Takes the end of a turn into account.
    pub fn push(&mut self, result: &TurnResult) {
        self.last_turn_usd = since(self.total_usd, result.total_cost_usd);
        self.spent_usd += self.last_turn_usd;
        self.total_usd = result.total_cost_usd;
        self.last_turn = result.usage.clone();
        self.turns += 1;
    }
}

/// The cost since the agent reported `before`, if it now reports `total`. A smaller sum than before is that of a new
/// process: older releases count from zero in each.
pub fn since(before: f64, total: f64) -> f64 {
    if total >= before { total - before } else { total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(mut cost: Cost, totals: &[f64]) -> (f64, f64) {
        for total in totals {
            cost.push(&TurnResult {
                total_cost_usd: *total,
                ..TurnResult::default()
            });
        }
        (cost.last_turn_usd, cost.spent_usd)
    }

    #[test]
    fn turns_cost_what_was_added() {
        assert_eq!(pushed(Cost::default(), &[0.5, 0.75]), (0.25, 0.75));
        // A process that counts from zero.
        assert_eq!(pushed(Cost::default(), &[0.5, 0.25]), (0.25, 0.75));
    }

    #[test]
    fn the_cost_before_a_resume_does_not_count() {
        assert_eq!(pushed(Cost::resumed(2.0), &[2.5]), (0.5, 0.5));
    }
}
