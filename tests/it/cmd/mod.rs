//! The commands from outside: their flags, their statuses, their output.

mod contract;
mod front;
mod hostile;
mod voice;
