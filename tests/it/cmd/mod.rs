//! The commands from outside: their flags, their statuses, their output.

mod evidence;
mod front;
mod fsck;
mod voice;
