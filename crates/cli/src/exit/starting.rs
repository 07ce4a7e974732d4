//! Advice about requests to start sessions that were refused.

use super::Code;
use ostler_engine::installed::PROTOCOL_EXAMPLE;
use ostler_engine::launch::{LaunchRefusal, OnlyForAgents};
use ostler_engine::suggest::nearest;

/// What is wrong, in the options of the command line.
pub fn in_options(refusal: &LaunchRefusal) -> Option<String> {
    match refusal {
        LaunchRefusal::NeedsPrompt { agent, has_terminal: true } => {
            Some(format!("{agent} needs a prompt, -t or --keep"))
        }
        LaunchRefusal::NeedsPrompt { agent, has_terminal: false } => Some(format!("{agent} needs a prompt or --keep")),
        LaunchRefusal::NoModel { agent } => Some(format!("{agent} has no --model")),
        LaunchRefusal::OnlyForAgents { what } => {
            let option = match what {
                OnlyForAgents::Prompt => "a prompt (-p, -f)",
                OnlyForAgents::Keep => "--keep",
                OnlyForAgents::Model => "--model",
            };
            Some(format!("{option} is only for agents"))
        }
        _ => None,
    }
}

pub fn advice(refusal: &LaunchRefusal) -> (Code, String) {
    let hint = match refusal {
        LaunchRefusal::PromptEmpty => "say what to do".to_owned(),
        LaunchRefusal::NoSuchQueue { name, known } => match nearest(name, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("add [queues.{name}] to config.toml"),
        },
        LaunchRefusal::PromptTooLong => "save it in a file and tell the agent to read that".to_owned(),
        LaunchRefusal::NeedsPrompt { agent, .. } if agent == "acp" => {
            format!("for example: ostler run {agent} \"fix the failing test\" -- {PROTOCOL_EXAMPLE}")
        }
        LaunchRefusal::NeedsPrompt { agent, .. } => {
            format!("for example: ostler run {agent} \"fix the failing test\"")
        }
        LaunchRefusal::TakesNoPrompt { agent } => {
            format!("its own arguments go after --: ostler run {agent} -- …")
        }
        LaunchRefusal::OnlyForAgents { .. } => "remove it".to_owned(),
        LaunchRefusal::NotAJob => "see ostler help jobs".to_owned(),
        LaunchRefusal::EmptyCommand => "name one: ostler run -- COMMAND".to_owned(),
        LaunchRefusal::NeedsProgram { agent } => {
            format!("for example: ostler run {agent} \"fix the failing test\" -- {}", PROTOCOL_EXAMPLE)
        }
        LaunchRefusal::NoTerminal { .. } => "remove -t, and open it with ostler attach".to_owned(),
        LaunchRefusal::NoModel { .. } => "give the program its own option after --".to_owned(),
        LaunchRefusal::NotAFolder { .. } => "--cwd needs one".to_owned(),
        LaunchRefusal::FolderNotText { .. } => "use a folder with another name".to_owned(),
        LaunchRefusal::CurrentFolder(_) => return (Code::Ours, String::new()),
        LaunchRefusal::DefaultTakesNoPrompt { name } => format!("start it with: ostler run {name}"),
        LaunchRefusal::DefaultUnknown { .. } => "list them with: ostler agents".to_owned(),
        LaunchRefusal::NoneInstalled { packages } => format!(
            "install one with npm install -g ({}), or try the built-in demo: ostler run demo \"…\"",
            packages.join(", ")
        ),
        LaunchRefusal::SeveralInstalled { names } => format!(
            "name one, as in ostler run {} \"…\", or set default_agent in config.toml",
            names.first().unwrap_or(&"AGENT")
        ),
        LaunchRefusal::Conflict(_)
        | LaunchRefusal::Folder { .. }
        | LaunchRefusal::NotARecording { .. }
        | LaunchRefusal::PlayerArgument(_) => String::new(),
    };
    (Code::Usage, hint)
}
