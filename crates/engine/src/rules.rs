//! Rules of a session as people write them, on the command line and in config.toml, and the rules of a run that result
//! from them.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::quantities::parse_duration;
use ostler_core::record::Mode;
use ostler_core::rules::{DEFAULT_TIMES, OnLimit, Restart, Rules};
use ostler_core::view::View;
use serde::Deserialize;

/// Rules as they were typed.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `on-failure` or `on-failure:5`.
    pub restart: Option<String>,
    /// For example `2h`.
    pub timeout: Option<String>,
    /// For example `10m`.
    pub turn_timeout: Option<String>,
    /// Dollars, for example `2.50`.
    pub budget: Option<String>,
    /// For example `20`.
    pub max_turns: Option<String>,
    /// `wait`, `fail` or the name of an agent.
    pub on_limit: Option<String>,
}

/// The same words in `[agents.NAME]` of config.toml: for every session of that agent that is started without rules of
/// its own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// `on-failure` or `on-failure:5`.
    pub restart: Option<String>,
    /// For example `2h`.
    pub timeout: Option<String>,
    /// For example `10m`.
    pub turn_timeout: Option<String>,
    /// Dollars.
    pub budget: Option<f64>,
    /// The maximum number of turns.
    pub max_turns: Option<u32>,
    /// `wait`, `fail` or the name of an agent.
    pub on_limit: Option<String>,
}

impl Written {
    /// Parses them; the error says which one is not a rule.
    pub fn check(self) -> std::result::Result<Rules, String> {
        let Written { restart, timeout, turn_timeout, budget, max_turns, on_limit } = self;
        let (budget, max_turns) = (budget.map(|usd| usd.to_string()), max_turns.map(|turns| turns.to_string()));
        parse(&Asked { restart, timeout, turn_timeout, budget, max_turns, on_limit })
    }
}

/// The run that the rules are for.
#[derive(Clone, Copy, Debug)]
pub struct For<'a> {
    /// Its agent.
    pub agent: &'a str,
    /// With a terminal or without.
    pub mode: Mode,
    /// What happens at a usage limit if nothing was specified: the session waits instead of failing.
    pub waits: bool,
}

impl Engine {
    /// The rules of a run that is about to begin: what was asked for, else what is configured for its agent. A limit
    /// that could not be enforced is refused.
    pub fn rules(&self, asked: &Asked, of: For<'_>) -> Result<Rules> {
        self.rules_after(asked, of, Rules::default())
    }

    /// The rules of a session that a person resumes: what is asked for now, else what it had. Its time starts again.
    /// Its cost and its turns continue to count, and a limit that is used up is an error until a new budget or number
    /// of turns is given.
    pub fn rules_of_resumed(&self, asked: &Asked, of: For<'_>, before: Rules, view: &View) -> Result<Rules> {
        // Whether it waits at a limit depends on how it is resumed. That another agent continues was the user's choice,
        // and is kept.
        let kept = |on_limit: &OnLimit| matches!(on_limit, OnLimit::Agent { .. });
        let before = Rules { on_limit: before.on_limit.filter(kept), ..before };
        let mut rules = self.rules_after(asked, of, before.clone())?;
        let total_usd = view.cost_usd.unwrap_or(0.0);
        if asked.budget.is_some() || before.budget_usd.is_none() {
            rules.budget_from_usd = Some(total_usd);
        }
        if asked.max_turns.is_some() || before.max_turns.is_none() {
            rules.turns_from = Some(view.turns);
        }
        let rules = rules.counted_on();
        refuse_used_up(&rules, total_usd, view)?;
        Ok(rules)
    }

    fn rules_after(&self, asked: &Asked, of: For<'_>, before: Rules) -> Result<Rules> {
        let others = or(before, self.config.rules.get(of.agent).cloned().unwrap_or_default());
        let (asked, others) = without(asked.clone(), others);
        let mut rules = or(parse(&asked).map_err(Error::Limit)?, others);
        let own = self.config.own_agent(of.agent)?.map(|(_, own)| own.protocol);
        let name = match own {
            Some(protocol) => protocol.agent(),
            None => of.agent,
        };
        let known = ostler_agents::find(name);
        let converses = known.is_some_and(|agent| agent.name() != crate::launch::COMMAND);
        if !converses {
            return only_for_commands(rules).map_err(Error::Limit);
        }
        let terminal = if of.mode == Mode::Terminal { " in a terminal" } else { "" };
        let reports_turns = known.is_some_and(|agent| agent.reports_turns(of.mode));
        let of_turns =
            [(rules.max_turns.is_some(), "--max-turns"), (rules.turn_timeout_ms.is_some(), "--turn-timeout")];
        if let Some((_, option)) = of_turns.into_iter().find(|(asked, _)| *asked && !reports_turns) {
            let words = format!("{} does not tell its turns{terminal}, so {option} cannot be enforced", of.agent);
            return Err(Error::Limit(format!("{words}; use --timeout")));
        }
        let reports_cost = known.is_some_and(|agent| agent.reports_cost(of.mode));
        if rules.budget_usd.is_some() && !reports_cost {
            let words = format!("{} does not tell its cost{terminal}, so --budget cannot be enforced", of.agent);
            let instead = if reports_turns { "--max-turns or --timeout" } else { "--timeout" };
            return Err(Error::Limit(format!("{words}; use {instead}")));
        }
        let usual = if of.waits { OnLimit::Wait } else { OnLimit::Fail };
        match rules.on_limit.get_or_insert(usual) {
            OnLimit::Wait | OnLimit::Fail | OnLimit::Unknown => {}
            // The same agent has the same account. An agent that does not have to be installed has no account.
            OnLimit::Agent { name }
                if name == crate::launch::COMMAND
                    || name == of.agent && known.is_some_and(|agent| agent.package().is_some()) =>
            {
                return Err(Error::Limit(format!(
                    "{name} cannot continue when {} has reached a usage limit; name another agent, or use --on-limit wait",
                    of.agent
                )));
            }
            OnLimit::Agent { name } => self.check_agent(name).map_err(|error| match error {
                Error::UnknownAgent { .. } => Error::Limit(format!(
                    "--on-limit {name:?} is not known; use wait, fail or an agent (list them with: ostler agents)"
                )),
                error => error,
            })?,
        }
        Ok(rules)
    }
}

/// The word that removes a limit of the session or of config.toml.
const NONE: &str = "none";

/// The rules that are asked for, and the other ones, both without the rules that are asked to be `none`.
fn without(mut asked: Asked, mut others: Rules) -> (Asked, Rules) {
    let lifted = |word: &mut Option<String>| word.take_if(|word| word == NONE).is_some();
    if lifted(&mut asked.restart) {
        others.restart = None;
    }
    if lifted(&mut asked.timeout) {
        others.timeout_ms = None;
    }
    if lifted(&mut asked.turn_timeout) {
        others.turn_timeout_ms = None;
    }
    if lifted(&mut asked.budget) {
        others.budget_usd = None;
    }
    if lifted(&mut asked.max_turns) {
        others.max_turns = None;
    }
    (asked, others)
}

/// Refuses a run that could not begin a turn, because a limit is used up.
fn refuse_used_up(rules: &Rules, total_usd: f64, view: &View) -> Result<()> {
    let spent = total_usd - rules.budget_from_usd.unwrap_or(0.0);
    if let Some(budget) = rules.budget_usd.filter(|budget| spent >= *budget) {
        return Err(Error::Limit(format!(
            "its budget of ${budget:.2} is used up (${spent:.2}); give it a new one that counts from now: ostler resume {} --budget USD, or --budget none",
            view.id
        )));
    }
    let done = view.turns.saturating_sub(rules.turns_from.unwrap_or(0));
    if let Some(turns) = rules.max_turns.filter(|turns| done >= *turns) {
        return Err(Error::Limit(format!(
            "its limit of {turns} turns is reached; give it a new one that counts from now: ostler resume {} --max-turns N, or --max-turns none",
            view.id
        )));
    }
    Ok(())
}

/// A command has no turns and reaches no usage limit.
fn only_for_commands(rules: Rules) -> std::result::Result<Rules, String> {
    let asked = [
        (rules.turn_timeout_ms.is_some(), "--turn-timeout"),
        (rules.budget_usd.is_some(), "--budget"),
        (rules.max_turns.is_some(), "--max-turns"),
        (rules.on_limit.is_some(), "--on-limit"),
    ];
    match asked.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) => Err(format!("{option} is for agents, not for commands; remove it, or use --timeout")),
        None => Ok(rules),
    }
}

fn or(asked: Rules, others: Rules) -> Rules {
    Rules {
        restart: asked.restart.or(others.restart),
        timeout_ms: asked.timeout_ms.or(others.timeout_ms),
        turn_timeout_ms: asked.turn_timeout_ms.or(others.turn_timeout_ms),
        budget_usd: asked.budget_usd.or(others.budget_usd),
        max_turns: asked.max_turns.or(others.max_turns),
        on_limit: asked.on_limit.or(others.on_limit),
        // For a further run, these say from where cost and turns count.
        budget_from_usd: asked.budget_from_usd.or(others.budget_from_usd),
        turns_from: asked.turns_from.or(others.turns_from),
    }
}

fn parse(asked: &Asked) -> std::result::Result<Rules, String> {
    let Asked { restart, timeout, turn_timeout, budget, max_turns, on_limit } = asked;
    Ok(Rules {
        restart: restart.as_deref().map(parse_restart).transpose()?,
        timeout_ms: timeout.as_deref().map(parse_time).transpose()?,
        turn_timeout_ms: turn_timeout.as_deref().map(parse_time).transpose()?,
        budget_usd: budget.as_deref().map(parse_budget).transpose()?,
        max_turns: max_turns.as_deref().map(parse_turns).transpose()?,
        on_limit: on_limit.as_deref().map(|word| match word {
            "wait" => OnLimit::Wait,
            "fail" => OnLimit::Fail,
            name => OnLimit::Agent { name: name.to_owned() },
        }),
        ..Rules::default()
    })
}

fn parse_restart(text: &str) -> std::result::Result<Restart, String> {
    let wrong = || format!("--restart {text:?} is not known (examples: on-failure, on-failure:5)");
    let times = match text.strip_prefix("on-failure").ok_or_else(wrong)? {
        "" => DEFAULT_TIMES,
        number => number.strip_prefix(':').and_then(|number| number.parse().ok()).ok_or_else(wrong)?,
    };
    if times == 0 {
        return Err(format!(
            "--restart {text:?} would never restart it; remove it (examples: on-failure, on-failure:5)"
        ));
    }
    Ok(Restart::OnFailure { times })
}

fn parse_time(text: &str) -> std::result::Result<u64, String> {
    match u64::try_from(parse_duration(text)?.as_millis()) {
        Ok(0) => Err(format!("{text:?} is a duration of zero (examples: 90s, 10m, 1h30m)")),
        Ok(ms) => Ok(ms),
        Err(_) => Err(format!("{text:?} is too long (examples: 90s, 10m, 1h30m)")),
    }
}

fn parse_budget(text: &str) -> std::result::Result<f64, String> {
    let usd = text.trim().trim_start_matches('$').parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| format!("{text:?} is not an amount of dollars (example: 2.50)"))
}

fn parse_turns(text: &str) -> std::result::Result<u32, String> {
    let turns = text.parse().ok().filter(|turns| *turns > 0);
    turns.ok_or_else(|| format!("{text:?} is not a number of turns (example: 20)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_people_write_them() {
        let text = |text: &str| Some(text.to_owned());
        let asked = Asked {
            restart: text("on-failure:5"),
            timeout: text("1h30m"),
            turn_timeout: text("90s"),
            budget: text("$2.50"),
            max_turns: text("20"),
            on_limit: text("wait"),
        };
        let rules = Rules {
            restart: Some(Restart::OnFailure { times: 5 }),
            timeout_ms: Some(5_400_000),
            turn_timeout_ms: Some(90_000),
            budget_usd: Some(2.5),
            max_turns: Some(20),
            on_limit: Some(OnLimit::Wait),
            ..Rules::default()
        };
        assert_eq!(parse(&asked), Ok(rules));
        assert_eq!(parse_restart("on-failure"), Ok(Restart::OnFailure { times: DEFAULT_TIMES }));
        for wrong in ["", "always", "on-failure:", "on-failure:x", "on-failure:0", "on-failure:-1", "on-failure5"] {
            assert!(parse_restart(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "-1", "much", "inf", "nan"] {
            assert!(parse_budget(wrong).is_err() && parse_turns(wrong).is_err(), "{wrong}");
        }
        assert!(parse_time("0s").is_err() && parse_time("soon").is_err());
    }
}
