//! A consistent copy of the database, made by SQLite itself while others work. Copying its files would not be one.

use super::{Columns, Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::error::{Code, Error, Result};
use crate::host::dir;
use rusqlite::limits::Limit;
use std::path::Path;

impl Store {
    /// Writes a copy of the database as it is now into a directory where there is none yet.
    pub fn copy_to(&self, folder: &Path) -> Result<()> {
        let what = "copy the database";
        let path = super::open::database(folder);
        let text =
            path.to_str().ok_or_else(|| Error::new(Code::BadInput, format!("'{}' is not UTF-8", path.display())))?;
        // Making the copy attaches it, which is forbidden at all other times.
        self.connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1).sql(what)?;
        let copied = self.connection.execute("VACUUM INTO ?1", [text]).sql(what);
        self.connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).sql(what)?;
        copied?;
        dir::close_to_others(&path)?;
        super::open::finish_copy(folder)
    }
}

impl View<'_> {
    /// The objects that are kept as files, and where, below the store's directory.
    pub fn object_files(&self) -> Result<Vec<(Digest, String)>> {
        let sql = "SELECT digest FROM objects WHERE bytes IS NULL ORDER BY digest";
        let mut statement = self.connection.prepare(sql).sql("list the objects")?;
        let read = |row: &rusqlite::Row<'_>| Columns::of(row, "an object", 0).digest();
        let digests: Vec<Digest> = statement.query_map([], read).and_then(Iterator::collect).sql("list the objects")?;
        let place = |digest: Digest| {
            let name = digest.to_string();
            (digest, format!("objects/{}/{}", &name[..2], &name[2..]))
        };
        Ok(digests.into_iter().map(place).collect())
    }
}
