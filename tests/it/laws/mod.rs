//! Properties of the source itself.

mod codes;
mod commands;
mod generated;
mod invariants;
mod layers;
mod manual;
mod operations;
mod pages;
mod references;
mod roff;
mod schema;
mod shells;
mod tidy;
