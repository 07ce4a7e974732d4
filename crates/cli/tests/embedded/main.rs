//! The engine in a program that is not ostler and has many threads. Every thread can launch and resume sessions, and
//! this changes nothing in the program itself.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value, or something else, has failed")]

mod following;

use ostler_core::event::StopHow;
use ostler_core::record::Mode;
use ostler_engine::launch::COMMAND;
use ostler_engine::moved::Moved;
use ostler_engine::purge::Purge;
use ostler_engine::stop::{Stop, Stopped};
use ostler_engine::{Engine, Environment, Error, Launch, Resume};
use ostler_store::home::Place;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::{Harness, ProcessKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Held by each test, because the tests compare the state of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

fn engine(harness: &Harness) -> Engine {
    let environment = Environment::new(harness.variables(), Some(harness.root().join("home")));
    Engine::embedded(environment, harness.program().to_owned()).unwrap()
}

fn command(words: &[&str]) -> Launch {
    let arguments = words.iter().map(|&word| word.to_owned()).collect();
    Launch { agent: COMMAND.to_owned(), arguments, ..Launch::default() }
}

fn demo(prompt: &str) -> Launch {
    Launch { agent: "demo".to_owned(), prompt: Some(prompt.to_owned()), ..Launch::default() }
}

fn launch(engine: &Engine, request: Launch) -> ostler_engine::Result<Place> {
    engine.launch(request, &mut |notice| panic!("{notice}")).map(|launched| launched.place)
}

fn kill(engine: &Engine, places: Vec<Place>) {
    let stop = Stop { how: StopHow::Kill, grace: Duration::from_secs(10), why: "the test is over".to_owned() };
    for stopping in engine.stop(places, &stop).unwrap() {
        assert!(matches!(stopping.wait(&mut |notice| panic!("{notice}")).unwrap(), Stopped::Ended(_)));
    }
}

/// What a launch could change in this process: its open files, its umask and the signals that are blocked.
fn surroundings() -> (BTreeMap<i32, PathBuf>, Vec<String>) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.filter_map(|entry| {
        // The list itself is open while it is read.
        let target = std::fs::read_link(entry.path()).ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        (!target.starts_with("/proc")).then_some((number, target))
    });
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let kept = ["Umask:", "SigBlk:", "SigIgn:", "SigCgt:"];
    let lines = status.lines().filter(|line| kept.iter().any(|name| line.starts_with(name)));
    (open.collect(), lines.map(str::to_owned).collect())
}

#[test]
fn fifty_threads_launch_at_once_and_the_process_stays_as_it_was() {
    const THREADS: usize = 50;
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let before = surroundings();
    let variables: Vec<_> = std::env::vars_os().collect();
    let together = Barrier::new(THREADS);
    let places: Vec<Place> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (engine, together) = (&engine, &together);
                scope.spawn(move || {
                    together.wait();
                    let request = Launch { name: Some(format!("number {number}")), ..command(&["sleep", "600"]) };
                    launch(engine, request).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(places.iter().map(|place| place.id.to_string()).collect::<BTreeSet<_>>().len(), THREADS);
    let listed = harness.ls();
    assert_eq!(listed.iter().filter(|shown| shown.alive && shown.state == "running").count(), THREADS);
    assert_eq!(surroundings(), before, "a descriptor was leaked, or the umask or a signal has changed");
    assert_eq!(std::env::vars_os().collect::<Vec<_>>(), variables);
    // The agent has no descriptor of this process, only those that it was given.
    let agent = harness.session(places[0].id.as_str()).living(ProcessKind::Agent);
    let inherited = std::fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap().flatten();
    let numbers: BTreeSet<String> = inherited.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(numbers.iter().all(|number| ["0", "1", "2", "30", "31"].contains(&number.as_str())), "{numbers:?}");
    kill(&engine, places);
}

#[test]
fn ended_sessions_are_resumed_from_many_threads_and_each_only_once() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let places: Vec<Place> = (0..4).map(|_| launch(&engine, demo("say one")).unwrap()).collect();
    for place in &places {
        harness.run(&["wait", place.id.as_str()]).exits(0);
    }
    let before = surroundings();
    let resumed: Vec<bool> = std::thread::scope(|scope| {
        let twice = places.iter().chain(&places);
        let threads: Vec<_> = twice
            .map(|place| {
                let engine = &engine;
                scope.spawn(move || {
                    let request = Resume { message: Some("say two".to_owned()), keep: true, ..Resume::default() };
                    match engine.resume(place, request, &mut |notice| panic!("{notice}")) {
                        Ok(launched) => {
                            assert_eq!(launched.session.mode, Mode::Headless);
                            true
                        }
                        Err(error @ (Error::StillRuns { .. } | Error::Owned { .. })) => {
                            assert!(!error.to_string().is_empty());
                            false
                        }
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(resumed.iter().filter(|resumed| **resumed).count(), places.len(), "one for each session");
    assert_eq!(surroundings(), before);
    for place in &places {
        harness.run(&["wait", "--until", "turn", place.id.as_str()]).exits(0);
        let logs = harness.run(&["logs", place.id.as_str()]).exits(0).stdout;
        assert!(logs.contains("one") && logs.contains("two"), "{logs}");
    }
    kill(&engine, places);
}

#[test]
fn a_session_that_another_command_has_moved_is_reported_as_moved() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let live = launch(&engine, demo("say one")).unwrap();
    let id = live.id.as_str();
    harness.run(&["wait", id]).exits(0);
    let fails = |place: &Place| {
        let resume = Resume { message: Some("say two".to_owned()), ..Resume::default() };
        let archive = || {
            let asked = engine.stop_to_archive(vec![place.clone()]).remove(0);
            engine.archive(asked, &mut |_| {}).map(drop)
        };
        let errors = [
            engine.purge(place, &Purge::default(), &mut |_| {}).map(drop),
            if place.archived { engine.restore(place).map(drop) } else { archive() },
            engine.resume(place, resume, &mut |_| {}).map(drop),
        ];
        let how = |result: ostler_engine::Result<()>| match result {
            Err(Error::Moved { how, .. }) => how,
            other => panic!("{other:?}"),
        };
        errors.map(how)
    };
    harness.run(&["archive", id]).exits(0);
    assert_eq!(fails(&live), [Moved::Archived; 3]);
    let archived = engine.select(id).unwrap();
    harness.run(&["restore", id]).exits(0);
    assert_eq!(fails(&archived), [Moved::Restored; 3]);
    harness.run(&["purge", id]).exits(0);
    for place in [live, archived] {
        assert_eq!(fails(&place), [Moved::Purged; 3]);
    }
}

#[test]
fn a_helper_that_is_killed_leaves_a_session_or_nothing() {
    let _alone = alone();
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    let engine = engine(&harness);
    let kill_at = |point| {
        let file = pauses.join(format!("{}.kill", pause_points::token(Role::Client, point)));
        std::fs::write(&file, "1").unwrap();
        file
    };
    let names = || {
        let found = std::fs::read_dir(harness.home().join("sessions")).unwrap().flatten();
        found.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    for point in [Point::FolderMade, Point::SessionWritten, Point::PromptKept, Point::CopyMade] {
        let file = kill_at(point);
        let launched = launch(&engine, Launch { keep: true, ..demo("say ready") });
        assert!(!file.exists(), "{point:?} was not reached");
        match launched {
            // The helper's copy was at work already, and finished the launch.
            Ok(place) => {
                assert_eq!(point, Point::CopyMade);
                harness.run(&["wait", "--until", "turn", place.id.as_str()]).exits(0);
                harness.run(&["stop", place.id.as_str()]).exits(0);
                // A helper also resumes a session that has ended.
                let file = kill_at(Point::RunBegun);
                let request = Resume { message: Some("say again".to_owned()), ..Resume::default() };
                let error = engine.resume(&place, request.clone(), &mut |notice| panic!("{notice}")).unwrap_err();
                assert!(!file.exists() && error.to_string().contains("killed"), "{error}");
                assert!(harness.session(place.id.as_str()).show().ended);
                engine.resume(&place, request, &mut |notice| panic!("{notice}")).unwrap();
                harness.run(&["wait", place.id.as_str()]).exits(0);
                harness.run(&["purge", place.id.as_str()]).exits(0);
            }
            Err(error) => assert!(error.to_string().contains("killed"), "{point:?}: {error}"),
        }
        assert_eq!(names(), Vec::<String>::new(), "{point:?}");
    }
}

#[test]
fn piped_input_and_errors_pass_through_the_helper() {
    let _alone = alone();
    let harness = harness();
    let engine = engine(&harness);
    let (read, write) = std::io::pipe().unwrap();
    let place = launch(&engine, Launch { piped: Some(read.into()), ..command(&["cat"]) }).unwrap();
    // Only the command reads from this pipe, and its input ends after these bytes.
    (&write).write_all(b"through the helper\n").unwrap();
    drop(write);
    harness.run(&["wait", place.id.as_str()]).exits(0);
    assert_eq!(harness.run(&["logs", place.id.as_str()]).exits(0).stdout, "through the helper\n");

    let error = launch(&engine, command(&["no-such-program-anywhere"])).unwrap_err();
    assert_eq!(error.to_string(), "no-such-program-anywhere: program not found; install it, or add its folder to PATH");
    // A prompt that is larger than any pipe.
    let prompt = format!("say {}", "x".repeat(1 << 20));
    let place = launch(&engine, demo(&prompt)).unwrap();
    harness.run(&["wait", place.id.as_str()]).exits(0);
    let error = Engine::embedded(engine.environment.clone(), "/no/such/ostler".into())
        .and_then(|engine| launch(&engine, command(&["true"])))
        .unwrap_err();
    assert!(error.to_string().contains("cannot start a holder"), "{error}");
}
