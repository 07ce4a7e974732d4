//! `--matrix FILE`: each key is an axis with its values, and the members are all combinations. `agent`, `model` and
//! `prompt` set the agent, the model and the prompt; any other key fills in `{{key}}` in the prompt.

use super::{Member, named};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with the file, and where: `FILE:LINE:COLUMN: words`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {words}")]
pub struct Mistake {
    file: String,
    line: usize,
    column: usize,
    words: String,
}

/// An axis: its key, and its values.
struct Axis {
    key: String,
    place: Range<usize>,
    values: Vec<String>,
}

/// What the command line says. It applies where the file says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// The prompt of the members.
    pub prompt: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// Further arguments of the agents' own.
    pub arguments: &'a [String],
}

/// The members that a file describes. `agent`: returns what is wrong with an agent's name, if anything is.
///
/// # Errors
/// What is wrong with the file.
pub fn read(
    file: &str,
    text: &str,
    given: Given<'_>,
    agent: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Member>, Mistake> {
    let wrong = |at: usize, words: String| mistake(file, text, at, words);
    let table = DeTable::parse(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let mut axes = Vec::new();
    for (key, value) in table.get_ref() {
        axes.push(axis(key, value).map_err(|(at, words)| wrong(at, words))?);
    }
    // In the order of the file: the first axis changes slowest.
    axes.sort_by_key(|axis| axis.place.start);
    let of = |key: &str| axes.iter().find(|axis| axis.key == key);
    let agents = of("agent").ok_or_else(|| wrong(0, "the key agent is missing".to_owned()))?;
    for (name, at) in agents.values.iter().zip(std::iter::repeat(agents.place.start)) {
        if let Some(words) = agent(name) {
            return Err(wrong(at, words));
        }
    }
    let prompts: Vec<&str> = match (of("prompt"), given.prompt) {
        (Some(axis), Some(_)) => {
            return Err(wrong(
                axis.place.start,
                "there is a prompt here and one on the command line; give only one".to_owned(),
            ));
        }
        (Some(axis), None) => axis.values.iter().map(String::as_str).collect(),
        (None, Some(prompt)) => vec![prompt],
        (None, None) => return Err(wrong(0, "the key prompt is missing".to_owned())),
    };
    let at_prompt = of("prompt").map_or(0, |axis| axis.place.start);
    for prompt in &prompts {
        for name in placeholders(prompt) {
            if of(name).is_none() {
                return Err(wrong(at_prompt, format!("the prompt has {{{{{name}}}}}, and there is no key {name}")));
            }
        }
    }
    for axis in axes.iter().filter(|axis| !["agent", "model", "prompt"].contains(&axis.key.as_str())) {
        if !prompts.iter().any(|prompt| placeholders(prompt).contains(&axis.key.as_str())) {
            let words = format!("no prompt has {{{{{0}}}}}, so the key {0} changes nothing", axis.key);
            return Err(wrong(axis.place.start, words));
        }
    }
    named(members(&axes, given)).map_err(|words| wrong(0, words))
}

fn axis(key: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<Axis, (usize, String)> {
    let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Datetime(time) => Ok(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => {
            Err((value.span().start, format!("a value of {} has to be a text or a number", key.get_ref())))
        }
    };
    let values = match value.get_ref() {
        DeValue::Array(values) => values.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        _ => vec![text(value)?],
    };
    if values.is_empty() {
        return Err((value.span().start, format!("{} has no values, so there would be no session", key.get_ref())));
    }
    if let Some(empty) = values.iter().position(|value| value.trim().is_empty()) {
        return Err((value.span().start, format!("value {} of {} is empty", empty + 1, key.get_ref())));
    }
    Ok(Axis { key: key.get_ref().to_string(), place: key.span(), values })
}

/// All combinations.
fn members(axes: &[Axis], given: Given<'_>) -> Vec<Member> {
    let mut combinations: Vec<BTreeMap<&str, &str>> = vec![BTreeMap::new()];
    for axis in axes {
        let mut longer = Vec::new();
        for known in &combinations {
            for value in &axis.values {
                let mut chosen = known.clone();
                chosen.insert(axis.key.as_str(), value.as_str());
                longer.push(chosen);
            }
        }
        combinations = longer;
        // More than a group may have, so the caller refuses the number. The cut bounds the memory.
        combinations.truncate(super::MOST * 10);
    }
    let member = |chosen: BTreeMap<&str, &str>| {
        let of = |key: &str| chosen.get(key).map(|value| (*value).to_owned());
        let mut prompt = of("prompt").or_else(|| given.prompt.map(str::to_owned)).unwrap_or_default();
        for (key, value) in &chosen {
            prompt = prompt.replace(&format!("{{{{{key}}}}}"), value);
        }
        let fixed = ["agent", "model", "prompt"];
        Member {
            agent: of("agent").unwrap_or_default(),
            model: of("model").or_else(|| given.model.map(str::to_owned)),
            prompt,
            arguments: given.arguments.to_owned(),
            variables: chosen
                .iter()
                .filter(|(key, _)| !fixed.contains(*key))
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..Member::default()
        }
    };
    combinations.into_iter().map(member).collect()
}

/// The names in `{{…}}`.
fn placeholders(prompt: &str) -> Vec<&str> {
    let ends = prompt.split("{{").skip(1).filter_map(|part| part.split_once("}}"));
    let name = |name: &&str| !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || "_-".contains(one));
    ends.map(|(name, _)| name).filter(name).collect()
}

fn mistake(file: &str, text: &str, at: usize, words: String) -> Mistake {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Mistake { file: file.to_owned(), line, column, words: words.replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_it(text: &str) -> Result<Vec<Member>, String> {
        let agent = |name: &str| (name == "unknown").then(|| "unknown is not an agent".to_owned());
        read("m.toml", text, Given::default(), &agent).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn members_are_all_combinations_in_the_order_of_the_file() {
        let found = read_it("agent = ['a', 'b']\nissue = [14, 15]\nmodel = 'm'\nprompt = 'fix {{issue}}'\n");
        let told: Vec<(String, String)> =
            found.unwrap_or_default().into_iter().map(|member| (member.name, member.prompt)).collect();
        let is = |name: &str, prompt: &str| (name.to_owned(), prompt.to_owned());
        assert_eq!(told, [is("a-1", "fix 14"), is("a-2", "fix 15"), is("b-1", "fix 14"), is("b-2", "fix 15")]);
    }

    #[test]
    fn every_mistake_has_its_place() {
        for (text, place) in [
            ("agent = ['a'\n", "m.toml:"),
            ("prompt = 'p'\n", "m.toml:1:1: the key agent"),
            ("agent = 'a'\n", "m.toml:1:1: the key prompt"),
            ("prompt = 'p'\nagent = 'unknown'\n", "m.toml:2:1: unknown"),
            ("agent = []\nprompt = 'p'\n", "m.toml:1:9: agent has no values"),
            ("agent = 'a'\nprompt = 'p'\nisue = 'x'\n", "m.toml:3:1: no prompt has {{isue}}"),
            ("agent = 'a'\nprompt = 'p {{issue}}'\n", "m.toml:2:1: the prompt has {{issue}}"),
            ("agent = 'a'\nprompt = [['p']]\n", "m.toml:2:11: a value of prompt"),
            ("agent = 'a'\nprompt = ' '\n", "m.toml:2:10: value 1 of prompt is empty"),
        ] {
            let error = read_it(text).err().unwrap_or_default();
            assert!(error.starts_with(place), "{error}");
        }
        let numbers: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        let many = format!("agent = 'a'\nx = [{0}]\ny = [{0}]\nprompt = '{{{{x}}}}{{{{y}}}}'\n", numbers.join(", "));
        assert!(read_it(&many).is_err_and(|error| error.contains("at most 100")));
    }
}
