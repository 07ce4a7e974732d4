use crate::args::Attach;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::ui::style::Style;
use ostler_core::view::View;
use ostler_store::home::Place;
pub fn run(_context: &Context, _args: &Attach) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
pub fn terminal(_context: &Context, _place: &Place, _read_only: bool) -> Result<Code> {
    Err(Failure::ours("not built yet"))
}
pub fn ask_inline(_place: &Place, _view: &View, _style: Style) -> Result<()> {
    Err(Failure::ours("not built yet"))
}
