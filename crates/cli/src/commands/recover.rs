//! `ostler recover` and `ostler install-service`: continue, after a reboot, the sessions that were meant to go on.

use crate::args::{InstallService, Recover};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use ostler_engine::recover::{MeantToGoOn, Recovered};

pub fn run(context: &Context, args: &Recover) -> Result<Code> {
    let mut code = Code::Succeeded;
    for Recovered { session, why, done } in context.engine.recover(args.dry_run, &mut notice)? {
        let why = match why {
            MeantToGoOn::Job => "a job",
            MeantToGoOn::Restart => "started with --restart",
            MeantToGoOn::Waited => "it was waiting",
        };
        match done {
            Ok(()) if args.dry_run => say!("{session}: would be continued ({why})")?,
            Ok(()) => say!("{session}: continued ({why})")?,
            Err(error) => {
                tell!("ostler: {session} could not be continued: {}", Failure::from(error));
                code = Code::Failed;
            }
        }
    }
    Ok(code)
}

pub fn install(context: &Context, args: &InstallService) -> Result<Code> {
    if args.uninstall {
        match context.engine.uninstall_service()? {
            Some(path) => say!("removed {}", path.display())?,
            None => say!("it was not installed")?,
        }
        return Ok(Code::Succeeded);
    }
    let service = context.engine.install_service()?;
    say!("wrote {}", service.path.display())?;
    if let Some(wrong) = service.verified.filter(|wrong| !wrong.is_empty()) {
        return Err(Failure::ours(format!("systemd does not accept it: {wrong}")));
    }
    match service.enabled {
        Some(true) => say!("sessions are continued at each login; at boot with: loginctl enable-linger")?,
        Some(false) | None => {
            tell!(
                "ostler: the service manager could not be reached; when it runs: systemctl --user enable ostler-recover"
            );
        }
    }
    Ok(Code::Succeeded)
}
