//! An agent works in the directory of its session, wherever it was started and resumed from.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn works_in_the_sessions_directory(agent: Agent) {
    let Some(mut fixture) = Fixture::new(agent) else { return };
    // As in a shell whose directory is another one. Some agents believe PWD rather than the kernel.
    fixture.harness.set("PWD", "/");
    fixture.follow(&format!("{} ; say done", fixture.tool("pwd > where"))).exits(0);
    let here = format!("{}\n", fixture.work().display());
    assert_eq!(fixture.written("where"), here);
    let again = format!("{} ; say again", fixture.tool("pwd > again"));
    fixture.harness.run(&["resume", fixture.last().id(), &again]).exits(0);
    assert_eq!(fixture.written("again"), here);
    fixture.proves("works in the session's directory, wherever it is resumed from");
}

for_every_agent!(works_in_the_sessions_directory:
    claude_works_in_the_sessions_directory Claude,
    codex_works_in_the_sessions_directory Codex,
    gemini_works_in_the_sessions_directory Gemini,
    opencode_works_in_the_sessions_directory Opencode,
    qwen_works_in_the_sessions_directory Qwen,
);
