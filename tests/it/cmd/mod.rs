//! The commands from outside: their flags, their statuses, their output.

mod decide;
mod front;
mod show;
mod stop;
mod voice;
mod wait;
