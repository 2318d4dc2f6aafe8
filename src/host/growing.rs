//! A file that another process appends to, read as it grows.

use super::dir;
use crate::error::{Code, OrCode as _, Result};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// What was read of it so far. Once it was opened it stays readable, also when its name goes.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
}

impl Growing {
    /// The file at this path, which may not be there yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, offset: 0 }
    }

    /// How many bytes were read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Hands on what is new, in pieces, until `told` says that it is enough. Says whether all was handed on.
    pub fn read(&mut self, told: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let what = || format!("cannot read '{}'", self.path.display());
        if self.file.is_none() {
            // What is no file holds nothing that a worker printed.
            self.file = if dir::is_no_file(&self.path) { None } else { File::open(&self.path).ok() };
        }
        let Some(file) = &mut self.file else { return Ok(true) };
        file.seek(SeekFrom::Start(self.offset)).or_code(Code::StoreUnusable, what)?;
        let mut block = [0; 16 << 10];
        loop {
            match file.read(&mut block).or_code(Code::StoreUnusable, what)? {
                0 => return Ok(true),
                n => {
                    self.offset += n as u64;
                    if !told(&block[..n])? {
                        return Ok(false);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn only_what_is_new_is_handed_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut growing = Growing::new(&path);
        let read = |growing: &mut Growing| {
            let mut all = Vec::new();
            growing
                .read(&mut |bytes| {
                    all.extend_from_slice(bytes);
                    Ok(true)
                })
                .unwrap();
            String::from_utf8(all).unwrap()
        };
        assert_eq!(read(&mut growing), "");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one").unwrap();
        assert_eq!(read(&mut growing), "one");
        std::fs::remove_file(&path).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!((read(&mut growing).as_str(), growing.offset()), ("two", 6));
    }
}
