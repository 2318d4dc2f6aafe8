//! The commands from outside: their flags, their statuses, their output.

mod claim;
mod contract;
mod evidence;
mod front;
mod fsck;
mod hostile;
mod settle;
mod stop;
mod submit;
mod voice;
mod wait;
