//! The store as files: who may read them, where they are found, what is durable, and what happens without room.

mod columns;
mod durable;
mod find;
mod flips;
mod links;
mod modes;
mod power;
mod room;
mod versions;
mod words;
