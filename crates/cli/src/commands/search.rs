//! `ostler search`: messages with certain words, in every conversation on the machine.

use super::ls::{suggest_agents, tilde};
use crate::args::{Role, Search};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{self, tell};
use crate::ui::style::Style;
use crate::ui::table::{cut, window};
use crate::ui::time::{age, parse_since, size};
use ostler_core::limits::counted;
use ostler_engine::process::now;
use ostler_engine::search::{self, Hit, Hits, Piece, Progress, Query, Unread};
use ostler_screen::printable;
use std::num::NonZeroUsize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// When more than this has to be read first, the person is told why it takes long.
const MUCH: u64 = 64 << 20;

pub fn run(context: &Context, args: &Search) -> Result<Code> {
    let query = query(context, args)?;
    let mut told = false;
    let found = context.engine.search_with_progress(&query, &mut |progress: Progress| {
        if progress.waits {
            tell!("ostler: another search is making the search index; waiting for it");
        }
        if progress.all > MUCH && !told {
            told = true;
            tell!(
                "ostler: reading {} of conversations into the search index; the next search is quick",
                size(progress.all)
            );
        }
    })?;
    if args.json {
        let lines: Vec<String> = found.hits.iter().map(|hit| serde_json::to_string(hit).unwrap_or_default()).collect();
        say::text(&if lines.is_empty() { "[\n]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) })?;
    } else {
        say::text(&shown(&found.hits, context.style, window()))?;
    }
    remark(&found, args);
    if found.hits.is_empty() {
        suggest_agents(context, &args.agents);
    }
    Ok(if found.hits.is_empty() { Code::Failed } else { Code::Succeeded })
}

/// What was asked for.
fn query(context: &Context, args: &Search) -> Result<Query> {
    let since = args.since.as_deref().map(|text| parse_since(text, now())).transpose().map_err(Failure::usage)?;
    let below = match &args.below {
        Some(folder) => Some(context.engine.folder(folder)?),
        None => None,
    };
    let role = |role: &Role| match role {
        Role::User => search::Role::User,
        Role::Agent => search::Role::Agent,
        Role::Tool => search::Role::Tool,
    };
    let usual = Query::default();
    Ok(Query {
        words: args.words.iter().map(|word| as_phrase(word)).collect(),
        agents: args.agents.clone(),
        since,
        below,
        roles: args.roles.iter().map(role).collect(),
        ours: args.ours,
        most: args.most.map_or(usual.most, NonZeroUsize::get),
        // A given number of hits also limits the hits of one conversation.
        most_of_each: args.most.map_or(usual.most_of_each, NonZeroUsize::get),
    })
}

/// An argument with several words is a phrase, unless it is written as a query.
fn as_phrase(word: &str) -> String {
    let is_question = word.contains(['"', '*']) || word.contains(" -");
    match word.strip_prefix('-') {
        _ if is_question || !word.trim().contains(char::is_whitespace) => word.to_owned(),
        Some(unwanted) if !unwanted.starts_with(char::is_whitespace) => format!("-\"{unwanted}\""),
        Some(_) | None => format!("\"{word}\""),
    }
}

/// Remarks about the hits, or why there are none.
fn remark(found: &Hits, args: &Search) {
    if !found.complete {
        tell!("ostler: older messages were left out; narrow the search with --since, --in or more words");
    }
    if found.updating {
        tell!("ostler: another search is updating the index; the newest messages may be missing");
    }
    if let Some(why) = &found.not_updated {
        tell!("ostler: {why}; the newest messages may be missing; free some disk space");
    }
    if let Some(Unread { count, path, why }) = &found.unread {
        let counted = counted(*count, "file or folder", "files or folders");
        let path = printable(&tilde(&path.to_string_lossy())).into_owned();
        tell!("ostler: {counted} of conversations could not be read, and may have more: {path}: {why}");
    }
    if !found.asked {
        tell!("ostler: nothing to search for; give at least one word that must be there");
    } else if found.hits.is_empty() {
        let narrowed = args.ours
            || args.since.is_some()
            || args.below.is_some()
            || !args.roles.is_empty()
            || !args.agents.is_empty();
        let advice = match narrowed {
            true => "search everything: omit the options",
            false => "try fewer words, or the beginning of one: beg*",
        };
        tell!("ostler: nothing found; {advice}");
    }
}

/// The hits, grouped by conversation in the order of the newest hits, each with the command that continues the
/// conversation.
fn shown(hits: &[Hit], style: Style, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut done: Vec<&Hit> = Vec::new();
    let same =
        |one: &Hit, other: &Hit| (&one.command, &one.agent, &one.file) == (&other.command, &other.agent, &other.file);
    for first in hits {
        if done.iter().any(|before| same(before, first)) {
            continue;
        }
        if !done.is_empty() {
            text.push('\n');
        }
        done.push(first);
        text.push_str(&head(first, style, width));
        for hit in hits.iter().filter(|hit| same(hit, first)) {
            text.push_str(&line(hit, style, width));
        }
        text.push_str(&commands(first, style, width));
    }
    text
}

/// What the conversation is about, then its agent and its folder.
fn head(hit: &Hit, style: Style, width: Option<usize>) -> String {
    let title = hit.name.as_deref().or(hit.title.as_deref()).unwrap_or("(no prompt)");
    let title = printable(title).into_owned();
    let place = hit.cwd.as_deref().map(|cwd| format!(" in {}", tilde(cwd))).unwrap_or_default();
    let about = printable(&format!("{}{place}", hit.agent)).into_owned();
    let Some(width) = width else {
        return format!("{}  {}\n", style.bold(&title), style.dim(&about));
    };
    // The title has the room that the rest does not need, and at least half.
    let room = width.saturating_sub(about.width() + 2).max(width / 2);
    let title = cut(&title, room);
    let about = cut(&about, width.saturating_sub(title.width() + 2));
    if about.width() < 4 {
        format!("{}\n", style.bold(&title))
    } else {
        format!("{}  {}\n", style.bold(&title), style.dim(&about))
    }
}

/// One message: how old, from whom, and the words in it.
fn line(hit: &Hit, style: Style, width: Option<usize>) -> String {
    let old = hit.at.map_or("?".to_owned(), |at| age(now().as_second() - at.as_second()));
    let before = format!("  {old:>4}  {:<5}  ", hit.role.word());
    let room = width.map(|width| width.saturating_sub(before.width()).max(8));
    let pieces = match room {
        Some(room) => fit(&hit.snippet, room),
        None => hit.snippet.clone(),
    };
    let words: String =
        pieces.iter().map(|piece| if piece.marked { style.bold(&piece.text) } else { piece.text.clone() }).collect();
    format!("{}{words}\n", style.dim(&before))
}

/// A snippet in at most `room` columns, with the first word that was searched for.
pub fn fit(pieces: &[Piece], room: usize) -> Vec<Piece> {
    let all: usize = pieces.iter().map(|piece| piece.text.width()).sum();
    let mut pieces = pieces.to_vec();
    if all > room
        && let [first, second, ..] = pieces.as_mut_slice()
        && !first.marked
    {
        // The text before the word is cut, so that there is room for the word and for something after it.
        let most = room.saturating_sub(second.text.width()) / 2;
        first.text = end_of(&first.text, most);
    }
    let mut left = room;
    let mut fitting = Vec::new();
    for piece in pieces {
        let text = cut(&piece.text, left);
        left = left.saturating_sub(text.width());
        let whole = text == piece.text;
        if !text.is_empty() {
            fitting.push(Piece { text, marked: piece.marked });
        }
        if !whole || left == 0 {
            break;
        }
    }
    fitting
}

/// The end of a text that fits, with a mark that something is missing.
fn end_of(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let mut start = text.len();
    for (place, character) in text.char_indices().rev() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        start = place;
    }
    format!("…{}", &text[start..])
}

/// The commands that continue and show a conversation. They are never cut, so that a person can copy them.
fn commands(hit: &Hit, style: Style, width: Option<usize>) -> String {
    let (next, read) = (command_line(&hit.command), command_line(&hit.read));
    if next == read {
        return format!("  {}\n", style.cyan(&next));
    }
    let one = format!("  {}{}{}", style.cyan(&next), style.dim("   read it: "), style.cyan(&read));
    let fits = width.is_none_or(|width| next.width() + read.width() + 14 <= width);
    if fits { format!("{one}\n") } else { format!("  {}\n  {}\n", style.cyan(&next), style.cyan(&read)) }
}

/// Words, quoted for a shell.
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    let quoted = words.iter().map(|word| match word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", printable(word).replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, marked: bool) -> Piece {
        Piece { text: text.to_owned(), marked }
    }

    fn plain(pieces: &[Piece]) -> String {
        pieces.iter().map(|one| if one.marked { format!("[{}]", one.text) } else { one.text.clone() }).collect()
    }

    #[test]
    fn the_word_that_was_searched_for_is_on_the_screen_at_every_width() {
        let snippet = [
            piece("…a long beginning that says what came before the ", false),
            piece("needle", true),
            piece(" and a long end that goes on and on until nothing more fits", false),
        ];
        for room in [12, 20, 40, 100] {
            let fitted = fit(&snippet, room);
            assert!(fitted.iter().any(|one| one.marked && one.text == "needle"), "{room}: {}", plain(&fitted));
            assert!(fitted.iter().map(|one| one.text.width()).sum::<usize>() <= room, "{room}: {}", plain(&fitted));
        }
        assert_eq!(plain(&fit(&snippet[1..2], 20)), "[needle]");
        assert_eq!(plain(&fit(&snippet, 24)), "…ore the [needle] and a l…");
    }

    #[test]
    fn quotes_of_the_shell_make_a_phrase() {
        let read = ["one", "two words", "-two words", "a \"b c\"", "a -b", "be* x"].map(as_phrase);
        assert_eq!(read, ["one", "\"two words\"", "-\"two words\"", "a \"b c\"", "a -b", "be* x"]);
    }

    #[test]
    fn a_command_survives_a_shell() {
        let words = ["ostler", "adopt", "a b'c"].map(str::to_owned);
        assert_eq!(command_line(&words), "ostler adopt 'a b'\\''c'");
    }
}
