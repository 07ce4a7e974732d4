//! `ostler`: the program. One file per command below `commands`.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

mod args;
mod commands;
mod context;
mod dashes;
mod exit;
mod follow;
mod rules;
mod say;
mod ui;
mod usage;

ostler_engine::entry!(program);

fn program() -> u8 {
    let arguments: Option<Vec<String>> = std::env::args_os().map(|word| word.into_string().ok()).collect();
    let enter =
        |arguments: &[String]| ostler_engine::process::enter(arguments).or_else(|| ostler_jobs::enter(arguments));
    if let Some(code) = arguments.as_deref().and_then(enter) {
        return code;
    }
    ostler_engine::process::settle_signals();
    commands::main(std::env::args_os())
}
