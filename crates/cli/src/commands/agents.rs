//! `ostler agents`: which agents there are, whether they are installed, and what works with them.

use super::ls::tilde;
use crate::args::Agents;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use ostler_core::SCHEMA;
use ostler_core::record::Mode;
use ostler_engine::config::own_agents::Protocol;
use ostler_engine::installed::{self, Abilities, Messages};
use serde::Serialize;
use std::path::PathBuf;

/// One agent, as `--json` shows it.
#[derive(Debug, Serialize)]
struct Listed {
    schema: u32,
    name: String,
    installed: bool,
    /// The real program, behind any launcher.
    program: Option<PathBuf>,
    version: Option<String>,
    /// What to install when it is not there.
    npm_package: Option<&'static str>,
    /// A person's own, from config.toml.
    own: bool,
    #[serde(flatten)]
    abilities: Abilities,
}

pub fn run(context: &Context, args: &Agents) -> Result<Code> {
    let listed: Vec<Listed> = known(context).into_iter().chain(own(context)).collect();
    let text = if args.json { as_json(&listed) } else { as_text(&listed, context.style) };
    crate::say::text(&text)?;
    Ok(Code::Succeeded)
}

fn known(context: &Context) -> Vec<Listed> {
    let agents: Vec<_> = installed::known().collect();
    let programs: Vec<Option<PathBuf>> = agents.iter().map(|agent| installed::location(*agent)).collect();
    let others =
        agents.iter().zip(&programs).map(|(agent, path)| path.clone().filter(|_| installed::is_program(*agent)));
    let versions = installed::versions(&context.engine.environment, &others.collect::<Vec<_>>());
    let described = agents.iter().zip(programs).zip(versions);
    described
        .map(|((agent, program), version)| Listed {
            schema: SCHEMA,
            name: agent.name().to_owned(),
            installed: program.is_some() || !installed::is_program(*agent),
            version: if installed::is_program(*agent) { version } else { Some(env!("CARGO_PKG_VERSION").to_owned()) },
            program,
            npm_package: agent.package(),
            own: false,
            abilities: installed::abilities(&context.engine.environment, *agent),
        })
        .collect()
}

/// Of a person's own agents nobody knows what they do with `--version`, and they are not asked.
fn own(context: &Context) -> Vec<Listed> {
    let described = context.engine.config.agents.iter().map(|(name, agent)| {
        let word = agent.command.first().map_or("", String::as_str);
        let program = match word.contains('/') {
            true => Some(PathBuf::from(word)).filter(|path| path.is_file()),
            false => ostler_keeper::program::find_in_path(word),
        };
        let abilities = match agent.protocol {
            Protocol::Acp => ostler_agents::find(agent.protocol.agent())
                .map(|agent| installed::abilities(&context.engine.environment, agent)),
            Protocol::None => None,
        };
        let as_command = Abilities {
            headless: agent.mode == Mode::Headless,
            terminal: true,
            messages: Messages::None,
            asks: false,
            saved_proof: false,
        };
        Listed {
            schema: SCHEMA,
            name: name.clone(),
            installed: program.is_some(),
            program,
            version: None,
            npm_package: None,
            own: true,
            abilities: abilities.unwrap_or(as_command),
        }
    });
    described.collect()
}

/// Plain data, which always has a JSON form.
fn as_json(listed: &[Listed]) -> String {
    let lines: Vec<String> = listed.iter().map(|one| serde_json::to_string(one).unwrap_or_default()).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn as_text(listed: &[Listed], style: Style) -> String {
    let head = |text: &str| Cell::painted(text, move |text| style.dim(text));
    let mut rows = vec![["", "AGENT", "VERSION", "WORKS", "PROGRAM"].map(head).into()];
    rows.extend(listed.iter().map(|one| {
        let (mark, program) = match (&one.program, one.npm_package) {
            (None, None) if one.installed => {
                ("✔", format!("any program that speaks ACP: ostler run acp \"…\" -- {}", ostler_agents::acp::EXAMPLE))
            }
            (Some(path), _) => ("✔", tilde(&path.to_string_lossy())),
            (None, Some(package)) => ("-", format!("not installed: npm install -g {package}")),
            (None, None) => ("-", "not installed".to_owned()),
        };
        let colour = one.installed;
        vec![
            Cell::painted(mark, move |text| if colour { style.green(text) } else { style.dim(text) }),
            Cell::painted(&one.name, move |text| style.bold(text)),
            Cell::new(one.version.as_deref().unwrap_or("-")),
            Cell::new(&words(one.abilities)),
            Cell::painted(&program, move |text| style.dim(text)),
        ]
    }));
    lay_out(&rows, None)
}

fn words(abilities: Abilities) -> String {
    let messages = match abilities.messages {
        Messages::OneProcess => "messages",
        Messages::ProcessPerTurn => "messages (one process each)",
        Messages::None => "",
    };
    let words = [
        (abilities.headless, "headless"),
        (abilities.terminal, "terminal"),
        (!messages.is_empty(), messages),
        (abilities.asks, "asks"),
        (abilities.saved_proof, "proof of saving"),
    ];
    let works: Vec<&str> = words.into_iter().filter(|(works, _)| *works).map(|(_, word)| word).collect();
    works.join(", ")
}
