//! Which agents can be kept.

use super::Finding;

pub fn check() -> Vec<Finding> {
    let names: Vec<&str> =
        ostler_agents::all().iter().map(|agent| agent.name()).filter(|name| *name != "command").collect();
    vec![Finding::fine(format!("agents: {} (built in), and any command", names.join(", ")))]
}
