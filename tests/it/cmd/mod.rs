//! The commands from outside: their flags, their statuses, their output.

mod front;
mod voice;
