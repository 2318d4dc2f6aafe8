//! The commands from outside: their flags, their statuses, their output.

mod claim;
mod contract;
mod decide;
mod evidence;
mod front;
mod fsck;
mod gc;
mod gc_export;
mod held;
mod hostile;
mod list;
mod nowhere;
mod packet;
mod settle;
mod show;
mod stop;
mod stop_running;
mod submit;
mod voice;
mod wait;
mod wait_ends;
