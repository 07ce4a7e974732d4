//! Tools that a killed agent has left running, and whose conversation no process continues. `doctor` never signals
//! them: the user can run the command that ends them, and `resume` ends those of a session.

use super::Finding;
use super::helpers::Helper;
use crate::environment::Environment;
use crate::error::Result;
use crate::foreign::owners;
use crate::orphans::{Tool, tools};
use ostler_store::home::Home;
use ostler_sys::process::command_line;

pub fn check(environment: &Environment, home: &Home, helpers: &[Helper]) -> Result<Vec<Finding>> {
    // A tool whose output is in another temporary folder belongs to another home.
    let (temporary, user) = (std::env::temp_dir(), rustix::process::geteuid().as_raw());
    let ours: Vec<_> = ostler_agents::all().filter_map(|agent| agent.tool_outputs(&temporary, user)).collect();
    let mut tools = tools(&helpers.iter().map(|helper| helper.pid).collect())?;
    tools.retain(|tool| ours.iter().any(|folder| tool.output.starts_with(folder)));
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let held: Vec<String> =
        owners(home, &environment.lookup())?.into_iter().filter_map(|holder| holder.native_id).collect();
    Ok(tools.iter().filter(|tool| !held.contains(&tool.conversation)).map(finding).collect())
}

fn finding(tool: &Tool) -> Finding {
    let pid = tool.who.pid();
    let words: String = command_line(pid).join(" ").chars().take(60).collect();
    Finding::problem(
        format!("process {pid} is a tool of {} conversation {}, which is gone: {words}", tool.agent, tool.conversation),
        // The tool leads its own process group, with everything that it started.
        format!("kill -- -{pid} || kill {pid}"),
    )
}
