//! Content by its digest: what is small in the database, what is large as a file that is synced before it is named.
//!
//! INVARIANT `named-or-held`: a file under `objects/` that no row names is removed only by who holds the write lock and
//! `locks/objects.lock` alone. Who makes such a file shares that lock from before the file is there until it is named, so
//! no file is taken away from under the transaction that names it. How old a file is proves nothing.

use super::jobs::erased::Json as _;
use super::{Ledger, Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::error::{Code, Error, OrCode as _, Result, is_limit};
use crate::fault;
use crate::host::dir;
use crate::host::lock::{self, Lock};
use rusqlite::{OptionalExtension as _, params};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Content up to this size is kept in the database.
const INLINE_MAX: u64 = 16 << 10;

/// Content that is ready to be named by a transaction: large content is already in its file, synced.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its digest.
    pub digest: Digest,
    size: u64,
    bytes: Option<Vec<u8>>,
    /// What keeps its file from being taken for a leftover until it is named.
    _held: Option<Arc<Lock>>,
}

/// Where a large object lies.
pub(super) fn file_of(root: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    root.join("objects").join(&name[..2]).join(&name[2..])
}

/// Why an object's file could not be read: it is lost, or the system does not let us read it now.
fn unreadable(digest: &Digest, error: &std::io::Error) -> Error {
    let denied = Errno::from_io_error(error).is_some_and(|errno| errno == Errno::ACCESS || is_limit(errno));
    if denied {
        return Error::new(Code::StoreUnusable.fitting(error), format!("cannot read object '{digest}': {error}"));
    }
    Error::new(Code::StoreDamaged, format!("object '{digest}' has lost its file: {error}"))
}

fn beginning_of(path: &Path, most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Where content is prepared; it needs no database, so it works beside an open transaction.
#[derive(Clone, Debug)]
pub struct Spool {
    root: PathBuf,
    wait: Option<Duration>,
    held: Arc<OnceLock<Arc<Lock>>>,
}

/// The lock that says: files are being made that no row names yet.
pub(super) fn objects_lock(root: &Path) -> PathBuf {
    root.join("locks/objects.lock")
}

impl Store {
    /// Where content is prepared.
    pub fn spool(&self) -> Spool {
        Spool { root: self.root.clone(), wait: self.wait, held: Arc::default() }
    }

    /// Keeps every file of content in its place until this is dropped, for who reads many of them by what the database
    /// said a while ago.
    pub fn hold_objects(&self) -> Result<Lock> {
        lock::share(&objects_lock(&self.root), self.wait)
    }
}

impl Spool {
    /// The share in the lock that all files prepared here need.
    fn hold(&self) -> Result<Arc<Lock>> {
        if let Some(held) = self.held.get() {
            return Ok(Arc::clone(held));
        }
        let held = Arc::new(lock::share(&objects_lock(&self.root), self.wait)?);
        Ok(Arc::clone(self.held.get_or_init(|| held)))
    }

    /// Prepares content; to be named with [`Ledger::put`].
    pub fn prepare(&self, bytes: &[u8]) -> Result<Object> {
        let digest = Digest::of_content(bytes);
        let size = bytes.len() as u64;
        if size <= INLINE_MAX {
            return Ok(Object { digest, size, bytes: Some(bytes.to_vec()), _held: None });
        }
        let held = self.hold()?;
        let path = file_of(&self.root, &digest);
        // A link in its place is not the content: it is replaced, not followed.
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == size) {
            dir::expect(&self.root.join("objects"))?;
            dir::private_dir(path.parent().unwrap_or(&self.root))?;
            dir::write_durable(&path, bytes)?;
        }
        Ok(Object { digest, size, bytes: None, _held: Some(held) })
    }

    /// Prepares the content of a file of ours, which is taken over when it is large. Memory stays small whatever its
    /// size. `None` when it is empty, not there, or no file.
    pub fn prepare_file(&self, path: &Path) -> Result<Option<Object>> {
        let what = || format!("cannot keep '{}'", path.display());
        if dir::is_no_file(path) {
            return Ok(None);
        }
        let Ok(mut file) = File::open(path) else { return Ok(None) };
        let size = file.metadata().or_code(Code::StoreUnusable, what)?.len();
        if size == 0 {
            return Ok(None);
        }
        if size <= INLINE_MAX {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).or_code(Code::StoreUnusable, what)?;
            return self.prepare(&bytes).map(Some);
        }
        let mut hash = <sha2::Sha256 as sha2::Digest>::new();
        let mut block = vec![0; 64 << 10];
        loop {
            match file.read(&mut block).or_code(Code::StoreUnusable, what)? {
                0 => break,
                n => sha2::Digest::update(&mut hash, &block[..n]),
            }
        }
        let digest = Digest::from_content(hash);
        file.sync_all().or_code(Code::StoreUnusable, what)?;
        let held = self.hold()?;
        let to = file_of(&self.root, &digest);
        let folder = to.parent().unwrap_or(&self.root);
        dir::expect(&self.root.join("objects"))?;
        dir::private_dir(folder)?;
        // A link, not a rename: should the transaction fail, the attempt's directory is still complete.
        match std::fs::hard_link(path, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::new(Code::StoreUnusable.fitting(&error), format!("{}: {error}", what()))),
        }
        dir::sync_dir(folder)?;
        Ok(Some(Object { digest, size, bytes: None, _held: Some(held) }))
    }
}

impl Ledger<'_> {
    /// Names prepared content.
    pub fn put(&mut self, object: &Object) -> Result<Digest> {
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO objects (digest, size, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
            .sql("keep an object")?;
        statement
            .execute(params![object.digest.bytes(), i64::try_from(object.size).unwrap_or(i64::MAX), object.bytes])
            .sql("keep an object")?;
        Ok(object.digest)
    }
}

impl View<'_> {
    /// An object's size, if it is named.
    pub fn object_size(&self, digest: &Digest) -> Result<Option<i64>> {
        let sql = "SELECT size FROM objects WHERE digest = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("read an object")?;
        statement.query_row([digest.bytes()], |row| row.get(0)).optional().sql("read an object")
    }

    /// An object's content, verified against its digest.
    pub fn object(&self, digest: &Digest) -> Result<Vec<u8>> {
        let sql = "SELECT bytes FROM objects WHERE digest = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("read an object")?;
        let row: Option<Option<Vec<u8>>> =
            statement.query_row([digest.bytes()], |row| row.get(0)).optional().sql("read an object")?;
        let missing = || Error::new(Code::NotFound, format!("no object '{digest}'"));
        let bytes = match row.ok_or_else(missing)? {
            Some(bytes) => bytes,
            None => {
                fault::point("object.named");
                let path = file_of(self.root, digest);
                dir::expect(&self.root.join("objects"))?;
                std::fs::read(&path).map_err(|error| unreadable(digest, &error))?
            }
        };
        if Digest::of_content(&bytes) == *digest {
            return Ok(bytes);
        }
        Err(Error::new(Code::StoreDamaged, format!("object '{digest}' has changed")))
    }

    /// The beginnings of objects, at most so many bytes of each, with their sizes. They are for people to recognise and
    /// are not verified; what cannot be read is left out.
    pub fn beginnings(&self, digests: &[Digest], most: usize) -> Result<BTreeMap<Digest, (Vec<u8>, u64)>> {
        if digests.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<String> = digests.iter().map(ToString::to_string).collect();
        let sql = "SELECT digest, size, substr(bytes, 1, ?2) FROM objects
                   WHERE digest IN (SELECT unhex(value) FROM json_each(?1))";
        let mut statement = self.connection.prepare_cached(sql).sql("read beginnings")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
        };
        let rows = statement.query_map(params![names.json(), i64::try_from(most).unwrap_or(i64::MAX)], read);
        let rows: Vec<_> = rows.and_then(Iterator::collect).sql("read beginnings")?;
        let beginning = |(digest, size, bytes): (Vec<u8>, i64, Option<Vec<u8>>)| {
            let digest = Digest::from_bytes(&digest)?;
            let bytes = bytes.or_else(|| beginning_of(&file_of(self.root, &digest), most))?;
            Some((digest, (bytes, u64::try_from(size).unwrap_or(0))))
        };
        Ok(rows.into_iter().filter_map(beginning).collect())
    }

    /// Makes a file of an object's content, to be handed to a worker.
    pub fn object_to_file(&self, digest: &Digest, path: &Path) -> Result<()> {
        dir::write_private(path, &self.object(digest)?)
    }
}
