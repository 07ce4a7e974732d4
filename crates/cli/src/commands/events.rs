use crate::args::Events;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
pub fn run(_context: &Context, _args: &Events) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
