//! Commands that take several sessions: an error with one session does not prevent the action on the others.

use crate::exit::{Code, Failure, Result};
use crate::say::tell;

/// Applies `action` to each. Reports each error, and returns the code of the first that did not succeed.
pub fn each<T>(things: impl IntoIterator<Item = T>, mut action: impl FnMut(T) -> Result<Code>) -> Code {
    let mut code = Code::Succeeded;
    for thing in things {
        let came_of_it = action(thing).unwrap_or_else(|failure| complain(&failure));
        if code == Code::Succeeded {
            code = came_of_it;
        }
    }
    code
}

fn complain(failure: &Failure) -> Code {
    tell!("ostler: {failure}");
    failure.code
}
