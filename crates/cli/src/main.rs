//! `ostler`: the program. One file per command below `commands`.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

mod args;
mod commands;
mod context;
mod dashes;
mod exit;
mod follow;
mod say;
mod ui;
mod usage;

ostler_sys::entry!(program);

fn program() -> u8 {
    // Helpers, the demo agent and replays are this same binary. They are entered first: before argument parsing, threads or
    // anything else that would make them larger than they need to be.
    let arguments: Option<Vec<String>> = std::env::args_os().map(|word| word.into_string().ok()).collect();
    if let Some(code) = arguments.as_deref().and_then(enter_hidden) {
        return u8::try_from(code).unwrap_or(125);
    }
    ostler_sys::signals::heed(rustix::process::Signal::PIPE);
    ostler_sys::signals::ignore(rustix::process::Signal::XFSZ);
    commands::main(std::env::args_os())
}

fn enter_hidden(arguments: &[String]) -> Option<i32> {
    if arguments.get(1).map(String::as_str) == Some(ostler_agents::demo::ENTRY) {
        // Its lock is its own: a tool that outlives it must not seem to be it.
        ostler_sys::descriptors::keep_from_children();
        return Some(ostler_demo::main(arguments.iter().skip(2).map(Into::into)));
    }
    if arguments.get(1).map(String::as_str) == Some(ostler_agents::replay::ENTRY) {
        return Some(ostler_replay::main(arguments.iter().skip(2).cloned()));
    }
    ostler_keeper::enter(arguments, || ostler_engine::config::output_bounds(&ostler_engine::Environment::of_process()))
}
