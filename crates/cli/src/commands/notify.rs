//! `ostler notify`: test the ways of notifying a person, and clear what could not be delivered.

use crate::args::{Notify, NotifyAction};
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::style::Style;
use ostler_core::limits::counted;
use ostler_engine::notify::{Message, Tested};
use ostler_engine::process;
use ostler_screen::printable;
use ostler_tui::{notification, terminal};
use std::io::Write;

pub fn run(context: &Context, args: &Notify) -> Result<Code> {
    match args.action {
        NotifyAction::Test => test(context),
        NotifyAction::Clear => {
            let cleared = context.engine.clear_notifications()? as u64;
            say!("cleared {}", counted(cleared, "notification", "notifications"))?;
            Ok(Code::Succeeded)
        }
    }
}

/// Sends one notification by each way, and prints the results.
fn test(context: &Context) -> Result<Code> {
    let (mut results, mut said) = (Vec::new(), Ok(()));
    context.engine.test_notifications(&mut |tested| {
        if said.is_ok() {
            said = say!("{}", line(&tested, context.style));
        }
        results.push(tested.result.is_ok());
    })?;
    said?;
    if context.engine.config.notify.as_ref().is_some_and(|notify| notify.wanted.in_terminals) {
        let result = in_terminal(&context.engine.test_notification());
        results.push(result.is_ok());
        say!("{}", line(&Tested { way: "terminal", result }, context.style))?;
    }
    if results.is_empty() {
        say!(
            "[notify] in config.toml sets no way to notify (desktop, terminal, command, webhook or ntfy); ostler help notify has an example"
        )?;
    }
    Ok(if !results.is_empty() && results.iter().all(|&arrived| arrived) { Code::Succeeded } else { Code::Failed })
}

/// Shows the notification in the person's terminal. Only the person can see whether the terminal knows the sequence.
fn in_terminal(message: &Message) -> std::result::Result<String, String> {
    if terminal::size(std::io::stderr()).is_none() {
        return Err("this is not a terminal".to_owned());
    }
    let bytes = notification::sequence(&message.title, &message.text, &|name| process::variable(name));
    std::io::stderr().write_all(bytes.as_bytes()).map_err(|error| error.to_string())?;
    Ok("written to this terminal; you should see or hear it".to_owned())
}

fn line(tested: &Tested, style: Style) -> String {
    match &tested.result {
        Ok(words) => format!("{} {}: arrived ({})", style.green("✔"), tested.way, printable(words)),
        Err(words) => format!("{} {}: did not arrive: {}", style.red("!"), tested.way, printable(words)),
    }
}
