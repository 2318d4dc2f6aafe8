//! Making a store, adopting a copied one, upgrading an old one.

use crate::error::Result;
use crate::store::{self, Store};
use std::path::Path;
use std::time::Duration;

/// Makes a store; says whether there was none before.
pub fn init(root: &Path, unsafe_fs: bool, wait: Option<Duration>) -> Result<bool> {
    store::create(root, unsafe_fs, wait)
}

/// Makes a copied store at home here.
pub fn adopt(root: &Path, wait: Option<Duration>) -> Result<()> {
    let mut store = Store::open_anywhere(root, wait)?;
    store::adopt(&mut store)
}

/// Brings an older store to this version; says from which it came.
pub fn upgrade(root: &Path, wait: Option<Duration>) -> Result<i64> {
    store::upgrade(root, wait)
}
