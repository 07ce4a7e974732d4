//! Commands that take several sessions: what is wrong with one of them does not keep the others from being dealt with.

use crate::exit::{Code, Failure, Result};
use crate::say::tell;

/// Does something with each of them. Complains about each that fails, and returns the code of the first that did not go
/// as it should.
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
