//! The commands from outside: their flags, their statuses, their output.

mod claim;
mod front;
mod settle;
mod stop;
mod submit;
mod voice;
mod wait;
