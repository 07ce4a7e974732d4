//! `ostler.toml`: which jobs there are and what each of them needs. It is read with the position of everything, so that
//! a mistake is reported with its line and column before anything starts.

use super::place::{Mistake, Places};
use ostler_engine::suggest::{did_you_mean, nearest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file of `ostler up`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(title = "ostler.toml")]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What holds for every job that says nothing else.
    #[serde(default)]
    pub defaults: Defaults,
    /// The jobs, by name.
    #[serde(default)]
    pub job: BTreeMap<String, Job>,
}

/// What holds for every job that says nothing else.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The agent that gets a prompt.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its model.
    #[serde(default)]
    pub model: Option<String>,
    /// Each job with a prompt gets a git worktree of its own.
    #[serde(default)]
    pub worktree: Option<bool>,
    /// What a job may cost, in US dollars.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// The queue that jobs wait in for a free slot.
    #[serde(default)]
    pub queue: Option<String>,
}

/// One job: a prompt, a review or a command.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// It starts when these have succeeded.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What an agent is told.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The same from a file, whose path begins at the folder of this file.
    #[serde(default)]
    pub prompt_file: Option<String>,
    /// The prompt is told turn after turn, until a condition is met.
    #[serde(default, rename = "loop")]
    pub looped: Option<Loop>,
    /// Another agent judges what a job has changed; only a pass is a success.
    #[serde(default)]
    pub review: Option<Review>,
    /// A command of the shell.
    #[serde(default)]
    pub run: Option<String>,
    /// The agent that gets the prompt.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its model.
    #[serde(default)]
    pub model: Option<String>,
    /// It gets a git worktree of its own.
    #[serde(default)]
    pub worktree: Option<bool>,
    /// What it may cost, in US dollars.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// The queue that it waits in for a free slot.
    #[serde(default)]
    pub queue: Option<String>,
    /// Its place in the queue: higher goes first.
    #[serde(default)]
    pub priority: Option<i32>,
}

/// How long a prompt is repeated.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// Until this command exits with 0.
    #[serde(default)]
    pub until: Option<String>,
    /// Until an answer contains this text.
    #[serde(default)]
    pub until_text: Option<String>,
    /// At most so many turns.
    #[serde(default)]
    pub max: Option<u32>,
    /// One conversation for all turns.
    #[serde(default)]
    pub same: bool,
}

/// What is reviewed, and by which agent.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// The job whose changes are judged.
    pub of: String,
    /// The agent that judges them.
    #[serde(default)]
    pub by: Option<String>,
    /// What it is told to look for, from a file, whose path begins at the folder of this file.
    #[serde(default)]
    pub prompt_file: Option<String>,
}

const TOP: [&str; 2] = ["defaults", "job"];
const DEFAULTS: [&str; 5] = ["agent", "model", "worktree", "budget_usd", "queue"];
const JOB: [&str; 12] = [
    "needs",
    "prompt",
    "prompt_file",
    "loop",
    "review",
    "run",
    "agent",
    "model",
    "worktree",
    "budget_usd",
    "queue",
    "priority",
];
const LOOP: [&str; 4] = ["until", "until_text", "max", "same"];
const REVIEW: [&str; 3] = ["of", "by", "prompt_file"];

/// Reads the file.
///
/// # Errors
/// With the first mistake, and its place.
pub fn read(text: &str, path: &Path) -> Result<(File, Places), Mistake> {
    let places = Places::read(text, path)?;
    places.refuse_unknown(&[], &TOP)?;
    places.refuse_unknown(&["defaults"], &DEFAULTS)?;
    for name in places.keys(&["job"]) {
        places.refuse_unknown(&["job", &name], &JOB)?;
        places.refuse_unknown(&["job", &name, "loop"], &LOOP)?;
        places.refuse_unknown(&["job", &name, "review"], &REVIEW)?;
    }
    let file: File = toml::from_str(text).map_err(|error| places.of_parser(&error))?;
    if file.job.is_empty() {
        return Err(places.at(&["job"], "there is no job in it; add one: [job.NAME]"));
    }
    for (name, job) in &file.job {
        check(&places, &file, name, job)?;
    }
    Ok((file, places))
}

fn check(places: &Places, file: &File, name: &str, job: &Job) -> Result<(), Mistake> {
    let at = |key: &str, words: &str| Err(places.at(&["job", name, key], words));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 40 || name.starts_with('-') || !name.bytes().all(plain) {
        let words = format!("{name:?} cannot be the name of a job; use letters, digits, \"_\" and \"-\"");
        return Err(places.at(&["job", name], &words));
    }
    let prompts = usize::from(job.prompt.is_some()) + usize::from(job.prompt_file.is_some());
    let kinds = usize::from(prompts > 0) + usize::from(job.review.is_some()) + usize::from(job.run.is_some());
    if prompts > 1 {
        return at("prompt_file", "a job has one prompt; remove prompt or prompt_file");
    }
    if kinds != 1 {
        let words = match kinds {
            0 => format!("the job {name:?} does nothing; add prompt, review or run"),
            _ => format!("the job {name:?} is several things at once; keep one of prompt, review and run"),
        };
        return Err(places.at(&["job", name], &words));
    }
    if job.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return at("prompt", "the prompt is empty");
    }
    if job.run.as_deref().is_some_and(|command| command.trim().is_empty()) {
        return at("run", "the command is empty");
    }
    if prompts == 0 {
        for (key, given) in [
            ("loop", job.looped.is_some()),
            ("agent", job.agent.is_some()),
            ("model", job.model.is_some()),
            ("worktree", job.worktree.is_some()),
            ("budget_usd", job.budget_usd.is_some()),
        ] {
            if given {
                return at(key, &format!("{key} is for jobs with a prompt; remove it"));
            }
        }
    }
    if prompts > 0 && job.agent.is_none() && file.defaults.agent.is_none() {
        return Err(
            places.at(&["job", name], &format!("no agent is named for {name:?}; add agent to it or to [defaults]"))
        );
    }
    if let Some(looped) = &job.looped {
        if looped.max == Some(0) {
            return Err(places.at(&["job", name, "loop", "max"], "max must be more than 0"));
        }
        if looped.until_text.as_deref() == Some("") {
            return Err(
                places.at(&["job", name, "loop", "until_text"], "until_text is empty; every answer would contain it")
            );
        }
    }
    for (key, budget) in
        [(vec!["job", name, "budget_usd"], job.budget_usd), (vec!["defaults", "budget_usd"], file.defaults.budget_usd)]
    {
        if budget.is_some_and(|budget| !budget.is_finite() || budget <= 0.0) {
            return Err(places.at(&key, "budget_usd must be more than 0"));
        }
    }
    let unknown = |wanted: &str| {
        let meant = nearest(wanted, file.job.keys().map(String::as_str));
        format!("there is no job {wanted:?}{}", did_you_mean(meant))
    };
    for (place, needed) in job.needs.iter().enumerate() {
        if !file.job.contains_key(needed) {
            return Err(places.in_list(&["job", name, "needs"], place, &unknown(needed)));
        }
    }
    if let Some(review) = &job.review {
        match file.job.get(&review.of) {
            None => return Err(places.at(&["job", name, "review", "of"], &unknown(&review.of))),
            Some(of) if of.prompt.is_none() && of.prompt_file.is_none() => {
                let words = format!("the job {:?} has no prompt, so there is nothing to review", review.of);
                return Err(places.at(&["job", name, "review", "of"], &words));
            }
            Some(of) if !of.worktree.or(file.defaults.worktree).unwrap_or(false) => {
                let words = format!("the job {:?} has no worktree; add worktree = true to it", review.of);
                return Err(places.at(&["job", name, "review", "of"], &words));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
