//! Models: the protocol of a crash, checked in all its states; and the commands, beside a model of what they should do.

mod commands;
mod protocol;
