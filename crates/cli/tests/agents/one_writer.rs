//! Ten who resume one conversation at once: one does, nine are told who.

use crate::bed::Bed;
use ostler_model::agents::Agent;
use ostler_testkit::Started;

#[test]
fn of_ten_who_resume_at_once_one_runs_and_nine_are_refused() {
    let Some(bed) = Bed::new(Agent::Claude) else { return };
    bed.follow("say one").exits(0);
    let session = bed.last();
    // Long enough for the slowest to find somebody there.
    let started: Vec<Started> =
        (0..10).map(|_| bed.harness.start(&["resume", session.id(), "stream 40 100"])).collect();
    let outputs: Vec<_> = started.into_iter().map(Started::finish).collect();
    let ran = outputs.iter().filter(|output| output.code == Some(0)).count();
    let refused: Vec<_> = outputs.iter().filter(|output| output.code == Some(7)).collect();
    assert_eq!((ran, refused.len()), (1, 9), "{outputs:#?}");
    for output in refused {
        assert!(output.complaint().contains("holds the conversation"), "{output:?}");
    }
    bed.saw_once(&["say one", "stream 40 100"]);
    let shown = session.show();
    assert_eq!((shown.run, shown.turns, shown.queued), (2, 2, 0), "{shown:?}");
    bed.proves("one writer: of ten who resume, one does");
}
