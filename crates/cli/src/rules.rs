//! Options of `run` and `resume`: when a session is started again, and when it stops.

use clap::Args;
use ostler_engine::rules::Asked;

/// What a session does by itself.
#[derive(Args, Clone, Debug, Default)]
pub struct RuleArgs {
    /// Stop the session, properly, when this time has passed since it was started or resumed
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Interrupt a turn that takes longer
    #[arg(long, value_name = "TIME")]
    pub turn_timeout: Option<String>,
    /// Start no further turn when this many dollars are spent; a running turn is interrupted at twice the amount. Continues to count after resume
    #[arg(long, value_name = "USD")]
    pub budget: Option<String>,
    /// Start no further turn after this many. Continues to count after resume
    #[arg(long, value_name = "N")]
    pub max_turns: Option<String>,
    /// Start it again after a growing pause when it fails: on-failure (3 times) or on-failure:N
    #[arg(long, value_name = "POLICY")]
    pub restart: Option<String>,
    /// At a usage limit: wait for its reset and continue, or fail (default: wait with -d, --keep or at a terminal)
    #[arg(long, value_name = "wait|fail|AGENT")]
    pub on_limit: Option<String>,
}

impl RuleArgs {
    pub fn asked(&self) -> Asked {
        let RuleArgs { timeout, turn_timeout, budget, max_turns, restart, on_limit } = self.clone();
        Asked { restart, timeout, turn_timeout, budget, max_turns, on_limit }
    }
}
