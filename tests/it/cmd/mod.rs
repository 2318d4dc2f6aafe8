//! The commands from outside: their flags, their statuses, their output.

mod contract;
mod evidence;
mod front;
mod fsck;
mod hostile;
mod voice;
