use super::*;
use ostler_core::fact::{Call, Edit};
use proptest::prelude::*;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

fn new() -> Conversation {
    Conversation::new(Theme { colour: true }, "/work")
}

fn said(text: &str) -> Fact {
    Fact::Said { text: text.to_owned() }
}

fn saying(text: &str) -> Fact {
    Fact::Saying { text: text.to_owned() }
}

fn called(id: &str, detail: &str) -> Fact {
    let call = Call { id: Some(id.to_owned()), edits: Vec::new() };
    Fact::ToolCalled { name: "Bash".to_owned(), detail: detail.to_owned(), call }
}

fn returned(id: &str, text: &str) -> Fact {
    Fact::ToolReturned { text: text.to_owned(), failed: false, call: Some(id.to_owned()) }
}

/// The visible rows, without the blank ones above.
fn seen(conversation: &mut Conversation, columns: u16, rows: u16) -> Vec<String> {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    conversation.render(area, &mut buffer);
    let text = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    let rows: Vec<String> = (0..rows).map(text).collect();
    let begin = rows.iter().position(|row| !row.is_empty()).unwrap_or(rows.len());
    rows[begin..].to_vec()
}

#[test]
fn text_that_is_written_piece_by_piece_becomes_the_whole_text_once() {
    let mut conversation = new();
    conversation.told("hi");
    ["Some ", "**bo", "ld** wor"].iter().for_each(|text| conversation.fact(&saying(text)));
    assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold wor"]);
    conversation.fact(&said("Some **bold** words"));
    assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold words"]);
    conversation.fact(&said("More"));
    assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold words", "", "More"]);
}

#[test]
fn a_result_belongs_to_the_call_that_it_names() {
    let mut conversation = new();
    conversation.fact(&called("a", "first"));
    conversation.fact(&called("b", "cat /work/second"));
    conversation.fact(&returned("b", "one\ntwo"));
    assert_eq!(seen(&mut conversation, 40, 9), ["● Bash first …", "● Bash cat second ▸ 2 lines"]);
    conversation.toggle();
    assert_eq!(seen(&mut conversation, 40, 9)[1..], ["● Bash cat second ▾ 2 lines", "  │ one", "  │ two"]);
    conversation.fact(&returned("a", "done"));
    assert_eq!(seen(&mut conversation, 40, 9)[0], "● Bash first ▸ 1 line");
    conversation.toggle_all();
    assert_eq!(seen(&mut conversation, 40, 9).len(), 5);
}

#[test]
fn an_edit_is_shown_as_what_it_changes_and_a_long_one_in_part() {
    let mut conversation = new();
    let new: String = (0..30).map(|n| format!("line {n}\n")).collect();
    let edits = vec![Edit { path: "/work/src/x.rs".to_owned(), old: String::new(), new }];
    let call = Call { id: None, edits };
    let (name, detail) = ("Write".to_owned(), "/work/src/x.rs".to_owned());
    conversation.fact(&Fact::ToolCalled { name, detail, call });
    let rows = seen(&mut conversation, 40, 50);
    assert_eq!((rows[0].as_str(), rows[1].as_str()), ("● Write src/x.rs +30 -0 …", "  + line 0"));
    assert_eq!((rows.len(), rows[13].as_str()), (14, "  … 18 more lines"));
    conversation.toggle();
    assert_eq!(seen(&mut conversation, 40, 50).len(), 31);
    // Rows that no longer fit are below the view, but they are not new.
    conversation.toggle();
    seen(&mut conversation, 40, 20);
    conversation.toggle();
    seen(&mut conversation, 40, 20);
    assert!(!conversation.follows() && !conversation.has_news());
}

#[test]
fn the_view_stays_where_it_is_while_text_comes_and_follows_at_the_end() {
    let mut conversation = new();
    (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
    assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("text 49"));
    conversation.page_up();
    let before = seen(&mut conversation, 40, 5);
    conversation.fact(&said("news"));
    assert_eq!(seen(&mut conversation, 40, 5), before);
    assert!(conversation.has_news() && !conversation.follows());
    conversation.scroll_down(100);
    assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("news"));
    assert!(!conversation.has_news() && conversation.follows());
    conversation.to_start();
    assert_eq!(seen(&mut conversation, 40, 5)[0], "text 0");
    // Scrolling down shows every row, in any window.
    let mut passed = std::collections::BTreeSet::new();
    while !conversation.follows() {
        passed.extend(seen(&mut conversation, 9, 4));
        conversation.page_down();
    }
    passed.extend(seen(&mut conversation, 9, 4));
    assert_eq!(passed.iter().filter(|row| row.starts_with("text")).count(), 50);
}

#[test]
fn a_question_that_does_not_fit_is_shown_from_its_beginning() {
    let mut conversation = new();
    conversation.fact(&said("before"));
    let command: String = (0..40).map(|n| format!("command {n}\n")).collect();
    let ask: Ask = serde_json::from_value(serde_json::json!({
        "request": "r", "tool": "Bash", "input": { "command": command }, "text": "",
    }))
    .unwrap_or_else(|error| unreachable!("{error}"));
    conversation.fact(&Fact::Asked(ask.clone()));
    conversation.asks(Some(&ask));
    let rows = seen(&mut conversation, 60, 10);
    assert!(rows[0].starts_with("? asks Bash (41 lines"), "{rows:?}");
    assert!(rows[1].contains("command 0") && !conversation.follows());
    conversation.asks(Some(&ask));
    conversation.to_end();
    assert!(seen(&mut conversation, 60, 10).iter().any(|row| row.contains("command 39")));
    assert!(conversation.follows());
}

#[test]
fn a_question_that_ends_without_an_answer_says_so_and_an_answered_one_does_not() {
    let mut conversation = new();
    let end = || {
        let end = serde_json::from_value(serde_json::json!({ "verdict": "interrupted" }));
        Fact::TurnEnded(end.unwrap_or_else(|error| unreachable!("{error}")))
    };
    conversation.fact(&Fact::Asked(ask("a")));
    conversation.answered("a", "root", true, None);
    conversation.fact(&end());
    let unanswered = |conversation: &mut Conversation| {
        seen(conversation, 60, 30).iter().filter(|row| row.contains("not answered")).count()
    };
    assert_eq!(unanswered(&mut conversation), 0);
    conversation.fact(&Fact::Asked(ask("b")));
    conversation.fact(&end());
    conversation.fact(&end());
    assert_eq!(unanswered(&mut conversation), 1);
    conversation.fact(&Fact::Asked(ask("c")));
    conversation.fact(&Fact::AskClosed { request: "c".to_owned() });
    conversation.fact(&end());
    assert_eq!(unanswered(&mut conversation), 2);
}

#[test]
fn a_call_that_has_not_come_back_is_unfolded_too() {
    let mut conversation = new();
    conversation.fact(&called("a", "a long command that does not fit"));
    seen(&mut conversation, 20, 9);
    conversation.toggle();
    let rows = seen(&mut conversation, 20, 9);
    assert!(rows.len() > 2 && rows.last().is_some_and(|row| row == "  no result yet"), "{rows:?}");
    assert!(rows.iter().any(|row| row.contains("fit")), "{rows:?}");
}

#[test]
fn why_an_edit_failed_stands_apart_from_what_it_would_have_changed() {
    let mut conversation = new();
    let edits = vec![Edit { path: "/work/x".to_owned(), old: String::new(), new: "one\n".to_owned() }];
    let call = Call { id: None, edits };
    conversation.fact(&Fact::ToolCalled { name: "Write".to_owned(), detail: "/work/x".to_owned(), call });
    let text = "Permission denied: read-only".to_owned();
    conversation.fact(&Fact::ToolReturned { text, failed: true, call: None });
    assert_eq!(seen(&mut conversation, 90, 9)[0], "✘ Write x +1 -0 Permission denied: read-only");
}

fn ask(request: &str) -> Ask {
    let command = format!("run {request}");
    serde_json::from_value(serde_json::json!({
        "request": request, "tool": "Bash", "input": { "command": command }, "text": "",
    }))
    .unwrap_or_else(|error| unreachable!("{error}"))
}

#[test]
fn a_view_that_was_not_scrolled_shows_the_end_behind_a_question_of_the_past() {
    let mut conversation = new();
    conversation.fact(&Fact::Asked(ask("old")));
    conversation.answered("old", "root", true, None);
    (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
    conversation.asks(None);
    assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("text 49"));
    assert!(conversation.follows() && !conversation.has_news());
}

#[test]
fn the_open_question_stays_in_view_until_it_is_answered_or_the_person_scrolls() {
    let mut conversation = new();
    let asked = |rows: &[String]| rows.iter().any(|row| row.contains("run now"));
    (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
    conversation.fact(&Fact::Asked(ask("now")));
    conversation.asks(Some(&ask("now")));
    assert!(asked(&seen(&mut conversation, 40, 5)) && conversation.follows());
    (0..9).for_each(|n| conversation.fact(&Fact::Subagent(Box::new(said(&format!("below {n}"))))));
    conversation.asks(Some(&ask("now")));
    assert!(asked(&seen(&mut conversation, 40, 5)) && !conversation.follows());
    conversation.page_down();
    assert!(!asked(&seen(&mut conversation, 40, 5)));
    conversation.to_end();
    assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("  │ below 8"));
    // After going to the end, the open question is in view again; after its answer, the end is.
    conversation.scroll_up(20);
    conversation.asks(Some(&ask("next")));
    assert!(!seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
    conversation.to_end();
    assert!(seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
    (0..9).for_each(|n| conversation.fact(&Fact::Subagent(Box::new(said(&format!("more {n}"))))));
    assert!(seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
    conversation.asks(None);
    assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("  │ more 8"));
    assert!(conversation.follows());
}

#[test]
fn a_question_is_seen_when_all_of_it_has_been_in_view() {
    let mut conversation = new();
    assert!(conversation.question_is_seen());
    conversation.asks(Some(&ask("short")));
    assert!(!conversation.question_is_seen());
    seen(&mut conversation, 40, 9);
    assert!(conversation.question_is_seen());

    let command: String = (0..30).map(|n| format!("echo {n}\n")).collect();
    let input = serde_json::json!({ "command": command });
    let long = Ask { input, ..ask("long") };
    conversation.asks(Some(&long));
    seen(&mut conversation, 40, 9);
    assert!(!conversation.question_is_seen());
    // Going to its end does not show the rows in between.
    conversation.to_end();
    seen(&mut conversation, 40, 9);
    assert!(!conversation.question_is_seen());
    conversation.scroll_up(100);
    for _ in 0..20 {
        assert!(!conversation.question_is_seen());
        seen(&mut conversation, 40, 9);
        if conversation.follows() {
            break;
        }
        conversation.page_down();
    }
    assert!(conversation.follows() && conversation.question_is_seen());
    // This stays so in a window of another width.
    seen(&mut conversation, 20, 9);
    assert!(conversation.question_is_seen());
    conversation.asks(Some(&ask("next")));
    assert!(!conversation.question_is_seen());
}

#[test]
fn only_what_is_seen_of_a_long_conversation_is_laid_out() {
    let mut conversation = new();
    for n in 0..20_000 {
        conversation.fact(&called(&n.to_string(), "work"));
        conversation.fact(&returned(&n.to_string(), &"output\n".repeat(100)));
        conversation.fact(&said("A *text* of some words."));
    }
    seen(&mut conversation, 80, 50);
    let laid_out = |conversation: &Conversation| conversation.entries.iter().filter(|e| e.rows.is_some()).count();
    assert!(laid_out(&conversation) <= 60, "{}", laid_out(&conversation));
    for _ in 0..100 {
        conversation.page_up();
        seen(&mut conversation, 80, 50);
    }
    assert!(laid_out(&conversation) <= KEPT + 60, "{}", laid_out(&conversation));
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let text = prop_oneof![
        any::<String>(),
        "([a-z #*`>|\\-\\[\\]()!_~\n]|```|\\| a \\|\n|\\|-\\|\n|    ){0,60}",
        prop::sample::select(vec!["\x1b[2J", "\u{9b}31m", "a\u{202e}b", "\u{200d}", "e\u{301}", "👩‍👩‍👧", "表\t\r\n\0"])
            .prop_map(str::to_owned),
    ];
    let fact = (0..7u8, text).prop_map(|(kind, text)| match kind {
        0 => saying(&text),
        1 => said(&text),
        2 => called("x", &text),
        3 => returned("x", &text),
        4 => Fact::Thought { text },
        5 => Fact::Subagent(Box::new(said(&text))),
        _ => Fact::NotOpened { reason: text },
    });
    prop::collection::vec(fact, 0..12)
}

proptest! {
    #[test]
    fn no_text_of_an_agent_breaks_the_view_or_gets_out_unclean(facts in facts(), columns in 1u16..100, rows in 0u16..30) {
        let mut conversation = new();
        for fact in &facts {
            conversation.fact(fact);
            conversation.toggle_all();
            let area = Rect::new(0, 0, columns, rows);
            let mut buffer = Buffer::empty(area);
            conversation.render(area, &mut buffer);
            conversation.scroll_up(3);
            conversation.scroll_down(1);
            for cell in &buffer.content {
                let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
                prop_assert!(!cell.symbol().chars().any(harmful), "{:?}", cell.symbol());
            }
        }
    }
}
