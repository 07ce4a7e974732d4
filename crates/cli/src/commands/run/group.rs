//! `ostler run --on` and `--matrix`: a group of sessions for one task. What cannot work is refused before any of them
//! starts.

use super::later;
use super::words::{labels, nearest_agent, prompt};
use super::{Watching, check_that_it_can_be_found, with_piped};
use crate::args::Run;
use crate::commands::{job_follow, looping};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use ostler_core::record::Mode;
use ostler_core::rules::Rules;
use ostler_core::view::Phase;
use ostler_engine::launch::COMMAND;
use ostler_engine::rules::For;
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::{Launch, Place};
use ostler_jobs::group::{self, Group, Member, matrix};
use std::path::{Path, PathBuf};

pub fn run(context: &Context, mut args: Run) -> Result<Code> {
    let (spec, launch) = request(context, &mut args)?;
    context.warn();
    let watching = Watching::new(args.detach, None);
    check_that_it_can_be_found(watching, launch.name.as_deref())?;
    let started = ostler_jobs::launch(&context.engine, group::KIND, &spec, launch, &mut crate::say::notice);
    let place = started.map_err(looping::failure)?.place;
    if args.detach {
        say!("{}", place.id).inspect_err(|_| tell!("ostler: group {} is running", place.id))?;
        until_all_started(context, &place, &spec)?;
        return Ok(Code::Succeeded);
    }
    job_follow::to_the_end(context, &place)
}

/// Waits until all sessions of the group are started: from then on `group:NAME` means all of them. A group that starts
/// later has no members until then, and `group:NAME` means its job.
fn until_all_started(context: &Context, place: &Place, spec: &Group) -> Result<()> {
    let engine = &context.engine;
    // Subscribe first, look afterwards: what happens in between wakes this process.
    let mut watch = SessionWatch::new(place)?;
    loop {
        let view = engine.view_without_last(place)?;
        let later = view.state == Phase::Queued;
        if later || view.ended || group::all_started(engine, place, spec).map_err(looping::failure)? {
            return Ok(());
        }
        engine.tend(place, &view)?;
        watch.wait(&[])?;
    }
}

/// The checked request.
fn request(context: &Context, args: &mut Run) -> Result<(Group, Launch)> {
    let engine = &context.engine;
    // The group itself waits for a time and for other sessions; each of its sessions waits for a slot.
    let mut start = later::start(context, args)?;
    engine.check_start(&start)?;
    let queue = start.take_queue();
    let args = &*args;
    let mut members = members(context, args)?;
    for member in &mut members {
        engine.check_agent(&member.agent)?;
        let of = For { agent: &member.agent, mode: Mode::Headless, waits: true };
        member.rules = Some(engine.rules(&args.rules.asked(), of)?);
    }
    let folder = match &args.cwd {
        Some(folder) => folder.clone(),
        None => engine.environment.folder().map(PathBuf::from)?,
    };
    let tree = engine.start_of_trees(&folder, args.base.as_deref())?;
    let limits = args.limits.asked();
    let title = members.first().map(|member| member.prompt.clone()).unwrap_or_default();
    let spec = Group {
        members,
        base: tree.commit,
        from: tree.branch,
        keep: args.keep,
        labels: labels(&args.labels)?,
        limits: (limits.memory, limits.cpus, limits.processes),
        rules: Rules::default(),
        queue,
    };
    let group = args.name.clone().unwrap_or_else(|| "group".to_owned());
    if let Some(name) = &args.name {
        engine.check_name(name)?;
        engine.check_new_group(name)?;
    }
    for member in &spec.members {
        let launch = spec.launch(&group, member, Launch::default());
        engine.check_launch(&launch)?;
        if let Some(name) = args.name.as_ref().and(launch.name) {
            engine.check_name(&name)?;
        }
    }
    let job = Launch { name: args.name.clone(), cwd: Some(folder), prompt: Some(title), start, ..Launch::default() };
    Ok((spec, job))
}

fn members(context: &Context, args: &Run) -> Result<Vec<Member>> {
    if let [agent, _, ..] = args.words.as_slice() {
        let words = format!(
            "{agent:?} is one word too many; --on or --matrix names the agents, and the prompt is one word in quotes"
        );
        return Err(Failure::usage(words));
    }
    let typed = prompt(args, &args.words)?.map(with_piped).transpose()?;
    let agent = |name: &str| unknown_agent(context, name);
    match (&args.on, &args.matrix) {
        (_, Some(file)) => {
            let given =
                matrix::Given { prompt: typed.as_deref(), model: args.model.as_deref(), arguments: &args.arguments };
            let text = read(file)?;
            matrix::read(&file.to_string_lossy(), &text, given, &agent)
                .map_err(|mistake| Failure::usage(mistake.to_string()))
        }
        (on, None) => {
            let typed =
                typed.ok_or_else(|| Failure::usage("a prompt is missing; try ostler run --on AGENT,AGENT:2 \"…\""))?;
            let list = on.as_deref().unwrap_or_default();
            let members = group::on(list, &typed, args.model.as_deref(), &args.arguments).map_err(Failure::usage)?;
            match members.iter().find_map(|member| agent(&member.agent)) {
                Some(words) => Err(Failure::usage(words)),
                None => Ok(members),
            }
        }
    }
}

/// Refuses a name that is not the name of an agent.
pub fn check_agent_name(context: &Context, name: &str) -> Result<()> {
    unknown_agent(context, name).map_or(Ok(()), |words| Err(Failure::usage(words)))
}

/// What is wrong with the name of an agent, if anything.
fn unknown_agent(context: &Context, name: &str) -> Option<String> {
    let engine = &context.engine;
    let known = match engine.config.own_agent(name) {
        Ok(own) => own.is_some(),
        Err(error) => return Some(error.to_string()),
    };
    let known = known || ostler_engine::installed::find(name).is_some_and(|agent| agent.name() != COMMAND);
    let hint = || match nearest_agent(context, name) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "list them with: ostler agents".to_owned(),
    };
    (!known).then(|| format!("{name:?} is not an agent; {}", hint()))
}

fn read(file: &Path) -> Result<String> {
    match ostler_engine::launch::read_prompt(file) {
        Ok(Some(bytes)) => super::prompt::text(bytes),
        Ok(None) => Err(Failure::usage(format!("{} is too long", file.display()))),
        Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", file.display()))),
    }
}
