//! A program with threads of its own watches sessions, follows a conversation, answers, and shows a terminal session.

use super::{alone, command, demo, engine, harness, kill, launch};
use ostler_core::id::SessionId;
use ostler_engine::attach::{Attach, Attached};
use ostler_engine::content::{Item, Runs};
use ostler_engine::list::{Listed, Wanted, find_and};
use ostler_engine::ready::{self, Interest};
use ostler_engine::send::Answer;
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::view::{Ask, Fact, Kind, Mode, Verdict};
use ostler_engine::wait::{Over, Until, Wait};
use ostler_engine::watch::{Change, Select, Watch};
use ostler_engine::{Engine, Launch, Place};
use ostler_testkit::{ProcessKind, patience};
use rustix::fs::inotify;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Instant;

fn of_task(task: &str, prompt: &str) -> Launch {
    Launch { labels: BTreeMap::from([("task".to_owned(), task.to_owned())]), ..demo(prompt) }
}

fn next(watch: &mut Watch<'_>) -> Change {
    watch.wait(Some(Instant::now() + patience::LIMIT)).unwrap().unwrap_or_else(|| panic!("nothing has changed"))
}

fn allow(engine: &Engine, place: &Place, ask: &Ask) {
    engine.answer(place, Answer::allow(ask)).unwrap();
}

#[test]
fn many_sessions_are_watched_while_threads_launch_them_and_a_question_is_answered() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let mut watch = engine.watch(Select::label("task", "42")).unwrap();
    assert_eq!(watch.next_change().unwrap(), None, "there is no session yet");
    let mut ended = BTreeSet::new();
    std::thread::scope(|scope| {
        let engine = &engine;
        for prompt in ["say one", "ask May I?", "say three"] {
            scope.spawn(move || launch(engine, of_task("42", prompt)).unwrap());
        }
        scope.spawn(move || launch(engine, of_task("43", "say something else")).unwrap());
        let (mut appeared, mut answered) = (BTreeSet::new(), BTreeSet::new());
        while ended.len() < 3 {
            let view = match next(&mut watch) {
                Change::Appeared { view } => {
                    assert!(appeared.insert(view.id), "it appears once");
                    view
                }
                Change::Changed { view } => view,
                Change::Ended { view } => {
                    assert_eq!(view.outcome.as_ref().unwrap().kind, Kind::Succeeded);
                    ended.insert(view.id);
                    view
                }
                Change::Gone { id } => panic!("{id} is gone"),
            };
            assert!(appeared.contains(&view.id), "it appears first");
            assert_eq!(view.labels["task"], "42");
            // A session may ask already when it appears.
            if let Some(ask) = view.asking.filter(|ask| answered.insert(ask.request.clone())) {
                allow(engine, &engine.select(view.id.as_str()).unwrap(), &ask);
            }
        }
        assert_eq!(answered.len(), 1);
    });
    // A new watch reports sessions that have ended only when they are selected by id, and then at once.
    let mut later = engine.watch(Select::label("task", "42")).unwrap();
    assert_eq!(later.next_change().unwrap(), None);
    let last = ended.last().unwrap();
    harness.run(&["rename", last.as_str(), "three"]).exits(0);
    // A face may have listed the session before, so what happens to it now is reported.
    assert!(matches!(next(&mut later), Change::Changed { view } if view.name.as_deref() == Some("three")));
    assert!(matches!(next(&mut watch), Change::Changed { view } if view.name.as_deref() == Some("three")));
    let mut again = engine.watch(Select::sessions(ended.clone())).unwrap();
    let told: BTreeSet<_> = (0..6).map(|_| again.next_change().unwrap().unwrap().id()).collect();
    assert_eq!((told, again.next_change().unwrap()), (ended.clone(), None));
    let first = ended.first().unwrap();
    harness.run(&["archive", first.as_str()]).exits(0);
    let waited = ready::wait(&[Interest::read(watch.fd().unwrap())], Some(Instant::now() + patience::LIMIT));
    assert_eq!(waited.unwrap(), [true]);
    assert_eq!(next(&mut watch), Change::Gone { id: *first });
    assert_eq!(next(&mut again), Change::Gone { id: *first });
}

/// The files that are opened in the folders of these sessions while `doing` runs.
fn opened_in(places: &[Place], doing: impl FnOnce()) -> BTreeSet<String> {
    let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    for place in places {
        inotify::add_watch(&fd, &place.path, inotify::WatchFlags::OPEN).unwrap();
    }
    doing();
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&fd, &mut space);
    let mut names = BTreeSet::new();
    while let Ok(event) = reader.next() {
        // The folder itself has no name.
        names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    names
}

#[test]
fn a_watch_opens_one_file_of_each_ended_session_and_reports_what_happens_later() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let places: Vec<Place> = (0..3).map(|_| launch(&engine, demo("say one")).unwrap()).collect();
    for place in &places {
        harness.run(&["wait", place.id.as_str()]).exits(0);
        let at_rest = || place.path.join("outcome.json").exists().then_some(());
        patience::until("it is at rest", &[], at_rest);
    }
    let mut watch = None;
    let opened = opened_in(&places, || watch = Some(engine.watch(Select::all()).unwrap()));
    assert_eq!(opened, BTreeSet::from(["outcome.json".to_owned()]));
    let mut watch = watch.unwrap();
    assert_eq!(watch.next_change().unwrap(), None, "they had ended before");
    // The next run of one of them is reported.
    harness.run(&["resume", "-d", places[0].id.as_str(), "say two"]).exits(0);
    assert!(matches!(next(&mut watch), Change::Appeared { view } if view.id == places[0].id && view.run == 2));
    loop {
        if let Change::Ended { view } = next(&mut watch) {
            assert_eq!((view.id, view.run), (places[0].id, 2));
            break;
        }
    }
}

/// Copies the folder of a session that has ended, for a session with another id.
fn copy(from: &Path, to: &Path, ids: (&str, &str)) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&path, &copied, ids);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            std::fs::write(copied, text.replace(ids.0, ids.1)).unwrap();
        }
    }
}

#[test]
fn a_list_that_leaves_the_rest_for_later_opens_no_session_that_ended_well() {
    const COPIES: usize = 40;
    let _alone = alone();
    let mut harness = harness();
    let engine = engine(&harness);
    let well = launch(&engine, Launch { name: Some("well".to_owned()), ..command(&["true"]) }).unwrap();
    let failed = launch(&engine, command(&["false"])).unwrap();
    let lives = launch(&engine, command(&["sleep", "600"])).unwrap();
    for (place, code) in [(&well, 0), (&failed, 1)] {
        harness.run(&["wait", place.id.as_str()]).exits(code);
        patience::until("it is at rest", &[], || place.path.join("outcome.json").exists().then_some(()));
    }
    let mut ended = vec![well.clone()];
    for number in 0..COPIES {
        let id = SessionId::parse(&format!("9{number:07}")).unwrap();
        let path = well.path.with_file_name(id.as_str());
        copy(&well.path, &path, (well.id.as_str(), id.as_str()));
        ended.push(Place { id, path, archived: false });
    }
    // A few seconds later: a session that has changed just now gets no record in the index of ended sessions.
    let clock = harness.root().join("clock");
    std::fs::write(&clock, "10").unwrap();
    harness.set("OSTLER_CLOCK", &clock);
    harness.run(&["show", "well"]).exits(0);
    let wanted = Wanted { rest_later: true, ..Wanted::default() };
    let mut found = None;
    let id = |one: Listed| match one {
        Listed::Good(view) => view.id,
        Listed::Bad(damaged) => panic!("{}", damaged.damage),
    };
    let opened = opened_in(&ended, || found = Some(find_and(&engine, &wanted, id).unwrap()));
    let found = found.unwrap();
    assert_eq!(opened, BTreeSet::new());
    assert_eq!(found.rest.iter().collect::<BTreeSet<_>>(), ended.iter().map(|place| &place.id).collect());
    assert_eq!(BTreeSet::from_iter(found.listed), BTreeSet::from([failed.id, lives.id]));
    // Without `rest_later` all sessions are listed.
    assert_eq!(find_and(&engine, &Wanted::default(), id).unwrap().listed.len(), COPIES + 3);
    kill(&engine, vec![lives]);
}

#[test]
fn a_conversation_is_followed_item_by_item_and_each_item_comes_once() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let place = launch(&engine, Launch { keep: true, ..demo("ask May I?") }).unwrap();
    let mut conversation = engine.conversation(&place, Runs::All).unwrap();
    let mut watch = SessionWatch::new(&place).unwrap();
    let mut turn = || {
        let mut items = Vec::new();
        loop {
            for item in conversation.new_items().unwrap() {
                if let Item::Agent(Fact::Asked(ask)) = &item {
                    allow(&engine, &place, ask);
                }
                items.push(item);
            }
            if let Some(Item::Agent(Fact::TurnEnded(end))) = items.last() {
                assert_eq!(end.verdict, Verdict::Succeeded);
                return items;
            }
            let changed = [Interest::read(watch.fd().unwrap())];
            assert_eq!(ready::wait(&changed, Some(Instant::now() + patience::LIMIT)).unwrap(), [true]);
            watch.take_news().unwrap();
        }
    };
    let items = turn();
    let told = items.iter().filter(|item| matches!(item, Item::Told { .. })).collect::<Vec<_>>();
    assert_eq!(told, [&Item::Told { n: 1, text: "ask May I?".to_owned() }]);
    assert!(items.iter().any(|item| matches!(item, Item::Answered { allowed: true, .. })), "{items:?}");
    engine.send(&place, "say goodbye".to_owned(), false).unwrap();
    let items = turn();
    let said =
        |text: &str| items.iter().any(|item| matches!(item, Item::Agent(Fact::Said { text: said }) if said == text));
    assert!(said("goodbye"), "{items:?}");
    assert!(!items.iter().any(|item| matches!(item, Item::Agent(Fact::Asked(_)))), "what was read is not read again");

    let wait = Wait { until: Until::Turn, any: false, through_questions: false, limit: None, last: true };
    let (over, waited) = engine.wait(vec![place.clone()], &wait).unwrap();
    assert_eq!((over, waited[0].view.last.as_deref()), (Over::Reached, Some("goodbye")));
    kill(&engine, vec![place]);
}

/// Adds what a terminal session draws to `shown`, until it contains `text`.
fn until_shown(attached: &mut Attached<'_>, shown: &mut Vec<u8>, text: &str) {
    let end = Instant::now() + patience::LIMIT;
    loop {
        let bytes = attached.next_bytes().unwrap();
        shown.extend_from_slice(bytes);
        if String::from_utf8_lossy(shown).contains(text) {
            return;
        }
        if bytes.is_empty() {
            assert!(!attached.has_ended() && Instant::now() < end, "{text} is not shown: {shown:?}");
            let until = attached.due().map_or(end, |due| due.min(end));
            ready::wait(&[attached.interest().unwrap()], Some(until)).unwrap();
            attached.advance().unwrap();
        }
    }
}

#[test]
fn a_terminal_session_is_shown_and_typed_into_and_outlives_its_keeper() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let place = launch(&engine, Launch { mode: Some(Mode::Terminal), ..command(&["cat"]) }).unwrap();
    let attach = Attach { window: Some((24, 80)), greeting: "hello there".to_owned(), ..Attach::default() };
    let (mut attached, mut shown) = (engine.attach(&place, attach).unwrap(), Vec::new());
    until_shown(&mut attached, &mut shown, "hello there");
    attached.type_keys(b"first\r").unwrap();
    until_shown(&mut attached, &mut shown, "first\r\nfirst\r\n");
    harness.session(place.id.as_str()).kill(ProcessKind::Keeper);
    attached.type_keys(b"second\r").unwrap();
    until_shown(&mut attached, &mut shown, "second\r\nsecond\r\n");
    assert_eq!(String::from_utf8_lossy(&shown).matches("first").count(), 2, "nothing is shown twice");
    attached.resize(Some((30, 100))).unwrap();
    attached.type_keys(b"\x04").unwrap();
    while !attached.has_ended() {
        let until = attached.due().unwrap_or_else(|| Instant::now() + patience::LIMIT);
        ready::wait(&[attached.interest().unwrap()], Some(until)).unwrap();
        attached.advance().unwrap();
    }
    assert_eq!(engine.view(&place).unwrap().outcome.unwrap().kind, Kind::Succeeded);
}
