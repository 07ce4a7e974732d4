//! `ostler loop`: turn after turn, until a check passes or a limit is reached.

use super::job_follow;
use super::run::{Watching, check_that_it_can_be_found, request_of};
use crate::args::{Loop, Run};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::time::parse_duration;
use ostler_core::record::Mode;
use ostler_engine::Launch;
use ostler_engine::installed;
use ostler_engine::launch::COMMAND;
use ostler_engine::rules;
use ostler_jobs::{JobError, looping};
use std::path::PathBuf;
use std::time::Duration;

pub fn run(context: &Context, args: Loop) -> Result<Code> {
    let detach = args.detach;
    let (spec, launch) = request(context, args)?;
    context.warn();
    let watching = Watching::new(detach, None);
    check_that_it_can_be_found(watching, launch.name.as_deref())?;
    let launched =
        ostler_jobs::launch(&context.engine, looping::KIND, &spec, launch, &mut crate::say::notice).map_err(failure)?;
    let place = launched.place;
    if detach {
        say!("{}", place.id).inspect_err(|_| tell!("ostler: loop {} is running", place.id))?;
        return Ok(Code::Succeeded);
    }
    job_follow::to_the_end(context, &place)
}

const NEEDS: &str = "a loop needs an agent and a prompt; try ostler loop AGENT \"…\" --until CMD";

/// Refuses a loop without a prompt, and a loop with two, in words for a loop: the errors of `run` name options that a
/// loop does not have.
fn check_prompt(context: &Context, args: &Loop) -> Result<()> {
    let engine = &context.engine;
    let given = args.prompt.is_some() || args.file.is_some() || args.prompt_command.is_some();
    match &args.words[..] {
        [_, _, ..] if args.prompt_command.is_some() => {
            Err(Failure::usage("there is a prompt and --prompt-command CMD; give only one of them"))
        }
        [] if !given => Err(Failure::usage(NEEDS)),
        [word] if !given && (installed::find(word).is_some() || engine.config.own_agent(word)?.is_some()) => {
            Err(Failure::usage(NEEDS))
        }
        _ => Ok(()),
    }
}

/// The checked request: a loop that could not do its work is refused before it starts.
fn request(context: &Context, args: Loop) -> Result<(looping::Loop, Launch)> {
    let timeout_s = args.timeout.as_deref().map(parse_duration).transpose().map_err(Failure::usage)?;
    if let (Some(text), Some(Duration::ZERO)) = (&args.timeout, timeout_s) {
        return Err(Failure::usage(format!("{text:?} is a duration of zero (examples: 90s, 10m, 1h30m)")));
    }
    if args.until_text.is_empty() {
        return Err(Failure::usage("--until-text is empty; every message would contain it"));
    }
    check_prompt(context, &args)?;
    let made = args.prompt_command.as_ref().map(|command| format!("(prompt from: {command})"));
    let mut typed = Run {
        words: args.words,
        arguments: args.arguments,
        prompt: args.prompt.or(made),
        file: args.file,
        name: args.name,
        cwd: args.cwd,
        worktree: args.worktree,
        base: args.base,
        model: args.model,
        labels: args.labels,
        queue: args.queue,
        priority: args.priority,
        // No question is asked on a terminal, and no terminal is opened.
        detach: true,
        ..Run::default()
    };
    let mut launch = request_of(context, &mut typed)?;
    context.engine.check_start(&launch.start)?;
    // The turns wait in the queue, not the loop.
    let queue = launch.start.take_queue();
    let (Some(prompt), true) = (launch.prompt.clone(), launch.agent != COMMAND) else {
        return Err(Failure::usage(NEEDS));
    };
    context.engine.check_agent(&launch.agent)?;
    let folder = match &launch.cwd {
        Some(folder) => folder.clone(),
        None => context.engine.environment.folder().map(PathBuf::from)?,
    };
    for command in args.until.iter().chain(&args.prompt_command) {
        context.engine.check_shell_command(command, &folder)?;
    }
    let asked = rules::Asked { budget: args.budget, ..rules::Asked::default() };
    let of = rules::For { agent: &launch.agent, mode: Mode::Headless, waits: true };
    let rules = context.engine.rules(&asked, of)?;
    let spec = looping::Loop {
        agent: launch.agent.clone(),
        arguments: launch.arguments.clone(),
        model: launch.model.clone(),
        prompt: prompt.clone(),
        prompt_command: args.prompt_command,
        until: args.until,
        until_text: args.until_text,
        max: args.max,
        budget_usd: rules.budget_usd,
        timeout_s: timeout_s.map(|time| time.as_secs().max(1)),
        same: args.same,
        rules,
        queue,
    };
    let job = Launch { agent: String::new(), arguments: Vec::new(), model: None, mode: None, ..launch };
    Ok((spec, job))
}

/// An error of a job, with its exit code.
pub fn failure(error: JobError) -> Failure {
    match error {
        JobError::Engine(error) => (*error).into(),
        error @ (JobError::Stopped
        | JobError::Spec(_)
        | JobError::Step { .. }
        | JobError::UnknownKind(_)
        | JobError::Gone(_)
        | JobError::System(_)) => Failure::ours(error.to_string()),
    }
}
