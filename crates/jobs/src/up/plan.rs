//! From a file to a plan: every job with its defaults filled in and its prompt read, in an order in which each comes
//! after what it needs.

use super::file::{File, Job};
use super::place::{Mistake, Places};
use crate::looping;
use ostler_engine::suggest::{did_you_mean, nearest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One job, complete: no file is needed any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Its name, which its session has as well.
    pub name: String,
    /// The jobs that have to succeed before it.
    pub needs: Vec<String>,
    /// What it does.
    pub work: Work,
    /// The queue that it waits in.
    #[serde(default)]
    pub queue: Option<String>,
    /// Its place in the queue.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Changes when the description of the job, or of something that it needs, changes.
    pub version: String,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// An agent gets a prompt.
    Prompt(Prompt),
    /// An agent gets a prompt again and again.
    Loop {
        /// What is repeated.
        #[serde(flatten)]
        prompt: Prompt,
        /// How long.
        turns: Turns,
    },
    /// An agent judges the changes of a job.
    Review {
        /// Which job.
        of: String,
        /// By which agent.
        by: Option<String>,
        /// What the reviewing agent has to look for.
        prompt: Option<String>,
    },
    /// A command of the shell.
    Run {
        /// The command.
        command: String,
    },
}

/// What an agent gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Which agent.
    pub agent: String,
    /// Its model.
    pub model: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// In a git worktree of its own.
    pub worktree: bool,
    /// What it may cost.
    pub budget_usd: Option<f64>,
}

/// When a loop ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// Until this command exits with 0.
    pub until: Option<String>,
    /// Until an answer contains this.
    pub until_text: String,
    /// At most this many turns.
    pub max: u32,
    /// One conversation for all turns.
    pub same: bool,
}

impl Work {
    /// A word for people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Work::Prompt(_) => "prompt",
            Work::Loop { .. } => "loop",
            Work::Review { .. } => "review",
            Work::Run { .. } => "run",
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub fn words(&self) -> String {
        let line =
            |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
        match self {
            Work::Prompt(prompt) => format!("{}: {}", prompt.agent, line(&prompt.prompt)),
            Work::Loop { prompt, turns } => {
                let until = turns.until.as_ref().map(|until| format!(" until `{until}`")).unwrap_or_default();
                format!("{}: {}, at most {} turns{until}", prompt.agent, line(&prompt.prompt), turns.max)
            }
            Work::Review { of, by, .. } => {
                format!("of {of}{}", by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())
            }
            Work::Run { command } => line(command),
        }
    }
}

/// Reads a file with a prompt, by the path that the file of the jobs names.
pub type ReadPrompt<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Makes the plan of a file. `only`: these jobs and what they need; all jobs when the list is empty.
///
/// # Errors
/// For a cycle, a job that does not exist and a prompt that cannot be read, with the place.
pub fn plan(file: &File, places: &Places, only: &[String], read: ReadPrompt<'_>) -> Result<Vec<Planned>, Mistake> {
    for name in only {
        if !file.job.contains_key(name) {
            let meant = did_you_mean(nearest(name, file.job.keys().map(String::as_str)));
            return Err(places.at(&["job"], &format!("there is no job {name:?}{meant}")));
        }
    }
    let mut order = Vec::new();
    let all: Vec<&String> = if only.is_empty() { file.job.keys().collect() } else { only.iter().collect() };
    for name in all {
        visit(file, places, name, &mut Vec::new(), &mut order)?;
    }
    let mut planned: Vec<Planned> = Vec::new();
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    for name in order {
        let Some(job) = file.job.get(&name) else { continue };
        let work = work(file, places, &name, job, read)?;
        let needs = needs(job);
        let before: Vec<&String> = needs.iter().filter_map(|need| versions.get(need)).collect();
        let described = serde_json::to_string(&(&name, &work, &before)).unwrap_or_default();
        let version = format!("{:016x}", checksum(described.as_bytes()));
        versions.insert(name.clone(), version.clone());
        let queue = job.queue.clone().or_else(|| file.defaults.queue.clone());
        planned.push(Planned { name, needs, work, queue, priority: job.priority, version });
    }
    Ok(planned)
}

/// What a job needs: what it names, and what it reviews.
fn needs(job: &Job) -> Vec<String> {
    let reviewed = job.review.iter().map(|review| &review.of);
    let all: BTreeSet<&String> = job.needs.iter().chain(reviewed).collect();
    all.into_iter().cloned().collect()
}

fn visit(
    file: &File,
    places: &Places,
    name: &String,
    above: &mut Vec<String>,
    order: &mut Vec<String>,
) -> Result<(), Mistake> {
    if order.contains(name) {
        return Ok(());
    }
    if let Some(from) = above.iter().position(|known| known == name) {
        let path = above[from..].iter().chain([name]).cloned().collect::<Vec<_>>().join(" → ");
        let last = above.last().map_or("", String::as_str);
        let element = file.job.get(last).and_then(|job| job.needs.iter().position(|need| need == name));
        let words = format!("these jobs need each other: {path}");
        return Err(match element {
            Some(element) => places.in_list(&["job", last, "needs"], element, &words),
            None => places.at(&["job", last, "review", "of"], &words),
        });
    }
    above.push(name.clone());
    if let Some(job) = file.job.get(name) {
        for need in needs(job) {
            visit(file, places, &need, above, order)?;
        }
    }
    above.pop();
    order.push(name.clone());
    Ok(())
}

fn work(file: &File, places: &Places, name: &str, job: &Job, read: ReadPrompt<'_>) -> Result<Work, Mistake> {
    let from_file = |keys: &[&str], path: &Option<String>| match path {
        Some(path) => {
            let text = read(path).map_err(|error| places.at(keys, &format!("{path} cannot be read: {error}")))?;
            if text.trim().is_empty() {
                return Err(places.at(keys, &format!("{path} is empty")));
            }
            Ok(Some(text))
        }
        None => Ok(None),
    };
    if let Some(command) = &job.run {
        return Ok(Work::Run { command: command.clone() });
    }
    if let Some(review) = &job.review {
        let prompt = from_file(&["job", name, "review", "prompt_file"], &review.prompt_file)?;
        return Ok(Work::Review { of: review.of.clone(), by: review.by.clone(), prompt });
    }
    let text = from_file(&["job", name, "prompt_file"], &job.prompt_file)?.or_else(|| job.prompt.clone());
    let defaults = &file.defaults;
    let prompt = Prompt {
        agent: job.agent.clone().or_else(|| defaults.agent.clone()).unwrap_or_default(),
        model: job.model.clone().or_else(|| defaults.model.clone().filter(|_| job.agent.is_none())),
        prompt: text.unwrap_or_default(),
        worktree: job.worktree.or(defaults.worktree).unwrap_or(false),
        budget_usd: job.budget_usd.or(defaults.budget_usd),
    };
    Ok(match &job.looped {
        None => Work::Prompt(prompt),
        Some(looped) => Work::Loop {
            prompt,
            turns: Turns {
                until: looped.until.clone(),
                until_text: looped.until_text.clone().unwrap_or_else(|| looping::DONE.to_owned()),
                max: looped.max.unwrap_or(looping::MAX),
                same: looped.same,
            },
        },
    })
}

/// FNV-1a, 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::file::read;
    use super::*;
    use std::path::Path;

    fn planned(text: &str, only: &[&str]) -> Result<Vec<Planned>, String> {
        let (file, places) = read(text, Path::new("ostler.toml")).map_err(|mistake| mistake.to_string())?;
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let from_file = |path: &str| match path {
            "there.md" => Ok("look closely".to_owned()),
            _ => Err("no such file".to_owned()),
        };
        plan(&file, &places, &only, &from_file).map_err(|mistake| mistake.to_string())
    }

    const EXAMPLE: &str = r#"
[defaults]
agent = "demo"
worktree = true
budget_usd = 5.0

[job.land]
needs = ["review"]
run = "ostler land fix --check 'cargo test'"

[job.fix]
prompt = "make the tests pass"
loop = { until = "cargo test", max = 8 }

[job.review]
review = { of = "fix", by = "other", prompt_file = "there.md" }
"#;

    #[test]
    fn each_job_comes_after_what_it_needs_with_its_defaults_filled_in() {
        let jobs = planned(EXAMPLE, &[]).unwrap();
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["fix", "review", "land"]);
        assert_eq!(jobs[1].needs, ["fix"]);
        let Work::Loop { prompt, turns } = &jobs[0].work else { unreachable!("{:?}", jobs[0]) };
        assert_eq!((prompt.agent.as_str(), prompt.worktree, prompt.budget_usd), ("demo", true, Some(5.0)));
        assert_eq!((turns.until.as_deref(), turns.max, turns.until_text.as_str()), (Some("cargo test"), 8, "<done/>"));
        let Work::Review { prompt, .. } = &jobs[1].work else { unreachable!("{:?}", jobs[1]) };
        assert_eq!(prompt.as_deref(), Some("look closely"));
        assert_eq!(planned(EXAMPLE, &["fix"]).unwrap().len(), 1);
        assert_eq!(planned(EXAMPLE, &["review"]).unwrap().len(), 2);
    }

    #[test]
    fn a_change_is_one_of_the_job_and_of_all_that_need_it() {
        let before = planned(EXAMPLE, &[]).unwrap();
        let after = planned(&EXAMPLE.replace("there.md\" }", "there.md\" }\nneeds = []"), &[]).unwrap();
        assert_eq!(before, after, "the same in other words");
        let after = planned(&EXAMPLE.replace("by = \"other\"", "by = \"third\""), &[]).unwrap();
        let changed: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a.version != b.version).collect();
        assert_eq!(changed, [false, true, true]);
    }

    #[test]
    fn every_mistake_is_reported_with_its_position() {
        let job = "[job.a]\nrun = \"true\"\n";
        for (text, said) in [
            ("", "ostler.toml:1:1: there is no job in it; add one: [job.NAME]"),
            ("[job.a\nrun = 1", "ostler.toml:1:7: unclosed table, expected `]`"),
            ("[jobs.a]\nrun = \"true\"", "ostler.toml:1:2: there is no key \"jobs\" here; did you mean job?"),
            ("[job.a]\n  promt = \"x\"", "ostler.toml:2:3: there is no key \"promt\" here; did you mean prompt?"),
            (
                "[job.a]\nrun = \"x\"\nqqq = 1",
                "ostler.toml:3:1: there is no key \"qqq\" here; known are needs, prompt, prompt_file, loop, review, run, agent, model, worktree, budget_usd, queue, priority",
            ),
            (
                "[job.a]\nprompt = \"x\"\nagent = \"d\"\nloop = { untl = \"x\" }",
                "ostler.toml:4:10: there is no key \"untl\" here; did you mean until?",
            ),
            (
                "[defaults]\nagnt = \"x\"\n[job.a]\nrun=\"x\"",
                "ostler.toml:2:1: there is no key \"agnt\" here; did you mean agent?",
            ),
            ("[job.a]\nrun = 1", "ostler.toml:2:7: invalid type: integer `1`, expected a string"),
            ("[job.a]\nneeds = []", "ostler.toml:1:6: the job \"a\" does nothing; add prompt, review or run"),
            (
                "[job.a]\nrun = \"x\"\nprompt = \"y\"",
                "ostler.toml:1:6: the job \"a\" is several things at once; keep one of prompt, review and run",
            ),
            (
                "[job.a]\nprompt = \"x\"",
                "ostler.toml:1:6: no agent is named for \"a\"; add agent to it or to [defaults]",
            ),
            (
                "[job.a]\nprompt = \"x\"\nprompt_file = \"y\"",
                "ostler.toml:3:1: a job has one prompt; remove prompt or prompt_file",
            ),
            (
                "[job.a]\nprompt_file = \"gone.md\"\nagent = \"d\"",
                "ostler.toml:2:1: gone.md cannot be read: no such file",
            ),
            ("[job.a]\nrun = \"x\"\nworktree = true", "ostler.toml:3:1: worktree is for jobs with a prompt; remove it"),
            (
                "[job.\"a b\"]\nrun = \"x\"",
                "ostler.toml:1:6: \"a b\" cannot be the name of a job; use letters, digits, \"_\" and \"-\"",
            ),
            ("[job.a]\nprompt=\"x\"\nagent=\"d\"\nloop = { max = 0 }", "ostler.toml:4:10: max must be more than 0"),
            ("[job.a]\nprompt=\"x\"\nagent=\"d\"\nbudget_usd = -1", "ostler.toml:4:1: budget_usd must be more than 0"),
        ] {
            assert_eq!(planned(text, &[]).unwrap_err(), said, "{text}");
        }
        for (text, said) in [
            ("[job.b]\nrun = \"x\"\nneeds = [\"a\", \"öä\"]", "ostler.toml:5:15: there is no job \"öä\""),
            (
                "[job.build]\nrun = \"x\"\n[job.c]\nrun = \"x\"\nneeds = [\"biuld\"]",
                "ostler.toml:7:10: there is no job \"biuld\"; did you mean build?",
            ),
            ("[job.b]\nrun = \"x\"\nneeds = [\"b\"]", "ostler.toml:5:10: these jobs need each other: b → b"),
            (
                "[job.b]\nrun = \"x\"\nneeds = [\"d\"]\n[job.c]\nrun = \"x\"\nneeds = [\"a\", \"b\"]\n[job.d]\nrun = \"x\"\nneeds = [\"c\"]",
                "ostler.toml:8:15: these jobs need each other: b → d → c → b",
            ),
            ("[job.r]\nreview = { of = \"x\" }", "ostler.toml:4:12: there is no job \"x\""),
            (
                "[job.r]\nreview = { of = \"a\" }",
                "ostler.toml:4:12: the job \"a\" has no prompt, so there is nothing to review",
            ),
            (
                "[job.p]\nprompt=\"x\"\nagent=\"d\"\n[job.r]\nreview = { of = \"p\" }",
                "ostler.toml:7:12: the job \"p\" has no worktree; add worktree = true to it",
            ),
        ] {
            assert_eq!(planned(&format!("{job}{text}"), &[]).unwrap_err(), said, "{text}");
        }
        assert_eq!(planned(job, &["b"]).unwrap_err(), "ostler.toml:1:2: there is no job \"b\"");
    }
}
