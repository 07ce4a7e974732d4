//! A transcript that its owner lost is put back before the conversation goes on: gemini deletes conversations when another
//! gemini starts in the same folder, and files are emptied, cut and replaced behind an agent's back.

use crate::bed::{Bed, for_every_agent};
use ostler_model::agents::Agent;

fn is_brought_back(agent: Agent) {
    goes_on_whole_after(agent, |transcript| std::fs::remove_file(transcript).unwrap());
}

fn is_brought_back_into_an_empty_file(agent: Agent) {
    goes_on_whole_after(agent, |transcript| std::fs::write(transcript, "").unwrap());
}

fn goes_on_whole_after(agent: Agent, loss: fn(&str)) {
    let Some(bed) = Bed::new(agent) else { return };
    bed.follow("say one").exits(0);
    let session = bed.last();
    let transcript = session.show().transcript.unwrap();
    loss(&transcript);
    let resumed = bed.harness.run(&["resume", session.id(), "say two"]).exits(0);
    assert!(resumed.stderr.contains("its transcript was gone"), "{}", resumed.stderr);
    let told = bed.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    assert!(std::fs::read_to_string(&transcript).unwrap().contains("say one"));
    bed.proves("a lost transcript is brought back at the resume");
}

for_every_agent!(is_brought_back:
    a_transcript_of_claude_is_brought_back Claude,
    a_transcript_of_codex_is_brought_back Codex,
    a_transcript_of_gemini_is_brought_back Gemini,
);

for_every_agent!(is_brought_back_into_an_empty_file:
    an_emptied_transcript_of_claude_is_brought_back Claude,
    an_emptied_transcript_of_codex_is_brought_back Codex,
    an_emptied_transcript_of_gemini_is_brought_back Gemini,
);
