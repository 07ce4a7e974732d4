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

ostler_engine::entry!(program);

fn program() -> u8 {
    let arguments: Option<Vec<String>> = std::env::args_os().map(|word| word.into_string().ok()).collect();
    if let Some(code) = arguments.as_deref().and_then(ostler_engine::process::enter) {
        return code;
    }
    ostler_engine::process::settle_signals();
    commands::main(std::env::args_os())
}
