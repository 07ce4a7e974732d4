//! From a path to a plan that can be started. A job that could not run is refused before anything starts, with its
//! place in the file.

use super::Up;
use super::file::{self, File};
use super::place::{Mistake, Places};
use super::plan::{Planned, Work, plan};
use ostler_core::record::Mode;
use ostler_engine::launch::read_prompt;
use ostler_engine::queues::StartLater;
use ostler_engine::rules;
use ostler_engine::{Engine, Error};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Something in it is wrong.
    #[error(transparent)]
    Mistake(#[from] Mistake),
}

/// Reads a file and checks that its jobs can be started. `only`: these jobs and what they need. Other sessions may have
/// the names of the jobs.
///
/// # Errors
/// With the first mistake. Nothing was started.
pub fn load(engine: &Engine, path: &Path, only: &[String]) -> Result<Up, LoadError> {
    let unreadable = |error| LoadError::File { path: path.to_owned(), error };
    let whole = match engine.environment.folder() {
        Ok(folder) => folder.join(path),
        Err(_) => path.to_owned(),
    };
    let canonical = whole.canonicalize().map_err(unreadable)?;
    let folder = canonical.parent().unwrap_or(Path::new("/")).to_owned();
    let text = text_of(&canonical).map_err(unreadable)?;
    let (file, places) = file::read(&text, path)?;
    let from_file = |name: &str| text_of(&folder.join(name)).map_err(|error| plain(&error));
    let jobs = plan(&file, &places, only, &from_file)?;
    for job in &jobs {
        match engine.check_name(&job.name) {
            Ok(()) | Err(Error::NameTaken { .. }) => {}
            Err(error) => return Err(places.at(&["job", &job.name], &error.to_string()).into()),
        }
        check(engine, &file, &places, &folder, job)?;
    }
    Ok(Up { file: canonical, jobs, previous: None })
}

fn text_of(path: &Path) -> io::Result<String> {
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 16 MiB");
    let bytes = read_prompt(path)?.ok_or_else(too_long)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// The text of an error without the number that the standard library adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Checks whether a job can be started here and now.
fn check(engine: &Engine, file: &File, places: &Places, folder: &Path, job: &Planned) -> Result<(), Mistake> {
    let name = job.name.as_str();
    let own_agent = file.job.get(name).is_some_and(|job| job.agent.is_some());
    let at = |keys: &'static [&'static str]| {
        move |error: Error| {
            let keys: Vec<&str> = ["job", name].iter().chain(keys).copied().collect();
            places.at(&keys, &error.to_string())
        }
    };
    let own_budget = file.job.get(name).is_some_and(|job| job.budget_usd.is_some());
    let budget_at = |error: Error| {
        let words = error.to_string().replace("--budget", "budget_usd");
        let words = words.split(';').next().unwrap_or(&words);
        match own_budget {
            true => places.at(&["job", name, "budget_usd"], words),
            false => places.at(&["defaults", "budget_usd"], words),
        }
    };
    let agent_at = |error: Error| match own_agent {
        true => places.at(&["job", name, "agent"], &error.to_string()),
        false => places.at(&["defaults", "agent"], &error.to_string()),
    };
    if let Some(queue) = &job.queue {
        let own = file.job.get(name).is_some_and(|job| job.queue.is_some());
        engine.check_start(&StartLater { queue: Some(queue.clone()), ..StartLater::default() }).map_err(|error| {
            match own {
                true => places.at(&["job", name, "queue"], &error.to_string()),
                false => places.at(&["defaults", "queue"], &error.to_string()),
            }
        })?;
    }
    match &job.work {
        Work::Prompt(prompt) | Work::Loop { prompt, .. } => {
            engine.check_agent(&prompt.agent).map_err(agent_at)?;
            let asked =
                rules::Asked { budget: prompt.budget_usd.map(|usd| usd.to_string()), ..rules::Asked::default() };
            let of = rules::For { agent: &prompt.agent, mode: Mode::Headless, waits: true };
            engine.rules(&asked, of).map_err(budget_at)?;
            if prompt.worktree {
                let repository = engine.repository(folder).map_err(at(&["worktree"]))?;
                match repository.commit("HEAD") {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        return Err(places.at(
                            &["job", name, "worktree"],
                            "the repository has no commit yet; commit something first",
                        ));
                    }
                    Err(error) => return Err(at(&["worktree"])(error.into())),
                }
            }
            if let Work::Loop { turns, .. } = &job.work
                && let Some(until) = &turns.until
            {
                engine.check_shell_command(until, folder).map_err(at(&["loop", "until"]))?;
            }
        }
        Work::Review { by, .. } => {
            if let Some(by) = by {
                engine.check_reviewer(by).map_err(at(&["review", "by"]))?;
            }
        }
        Work::Run { command } => engine.check_shell_command(command, folder).map_err(at(&["run"]))?,
    }
    Ok(())
}
