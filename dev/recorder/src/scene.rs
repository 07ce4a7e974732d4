//! Which scenes are played with which agent.

use ostler_mock_llm::agents::Agent;

/// The agents that are recorded.
pub const AGENTS: [Agent; 5] = [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Opencode, Agent::Qwen];

/// Slow enough to be interrupted at the same word every time.
const STREAM: &str = "stream 1000 300";

pub struct Scene {
    pub agent: Agent,
    pub name: &'static str,
    /// The acts of each process.
    pub runs: Vec<Vec<Act>>,
    /// Whether its tools may run without asking.
    pub allowed: bool,
}

/// What a person does, and what the person waits for before the next act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Says something and waits for the end of the turn.
    Say(String),
    /// Says something and waits for a question.
    SayUntilAsked(String),
    /// Says something and waits until the agent has begun to answer, as far as that can be seen.
    SayUntilBusy(String),
    /// Answers the question and waits for the end of the turn.
    Answer { allow: bool },
    /// Interrupts and waits for the end of the turn.
    Interrupt,
}

/// Whether one process takes any number of messages, or only one.
pub fn takes_several(agent: Agent) -> bool {
    match agent {
        Agent::Claude | Agent::Qwen | Agent::ClaudeAcp | Agent::CodexAcp => true,
        Agent::Codex | Agent::Gemini | Agent::Opencode => false,
    }
}

/// The scenes of an agent.
pub fn of(agent: Agent) -> Vec<Scene> {
    let say = |text: &str| Act::Say(text.to_owned());
    let scene = |name, runs| Scene { agent, name, runs, allowed: true };
    let one = agent.shell_call("echo ran > proof; echo told");
    // Some agents run both at the same time; the pause decides which ends first.
    let two = [agent.shell_call("echo one"), agent.shell_call("sleep 0.5; echo two; exit 3")]
        .map(|call| call.replace("tool ", ""));
    let mut scenes = vec![
        scene("reply", vec![vec![say("say Hello from the model.")]]),
        scene("partial", vec![vec![say("stream 6 100")]]),
        scene("tool", vec![vec![say(&format!("{one} ; say all done"))]]),
        scene("tools", vec![vec![say(&format!("tools {} ; say both are back", two.join(" ")))]]),
        scene("http-400", vec![vec![say("fail 400 always")]]),
        scene("http-529-once", vec![vec![say("fail 529 once ; say at last")]]),
    ];
    let (first, second) = (say("say one"), say("say two"));
    if takes_several(agent) {
        let asks = Act::SayUntilAsked(format!("{} ; say asked", agent.shell_call("touch once")));
        let asked = |name, allow| {
            let runs = vec![vec![asks.clone(), Act::Answer { allow }]];
            Scene { agent, name, runs, allowed: false }
        };
        let interrupt = vec![Act::SayUntilBusy(STREAM.to_owned()), Act::Interrupt];
        let again = say("say again");
        // An interrupt ends qwen's process.
        let interrupted =
            if agent == Agent::Qwen { vec![interrupt, vec![again]] } else { vec![[interrupt, vec![again]].concat()] };
        scenes.extend([
            scene("follow-up", vec![vec![first.clone(), second.clone()]]),
            scene("resumed", vec![vec![first], vec![second]]),
            asked("allowed", true),
            asked("denied", false),
            scene("interrupted", interrupted),
        ]);
    } else {
        // Only gemini prints its words as they come.
        let busy = if agent == Agent::Gemini { STREAM } else { "hang" };
        scenes.extend([
            scene("follow-up", vec![vec![first], vec![second]]),
            scene("interrupted", vec![vec![Act::SayUntilBusy(busy.to_owned()), Act::Interrupt]]),
        ]);
    }
    scenes
}
