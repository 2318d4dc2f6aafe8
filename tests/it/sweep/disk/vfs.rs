//! A disk between SQLite and the files of one directory: it can fail at one operation, once or for good, and writes down
//! what was asked of it, so that a loss of power can be played. It stands in front of the ordinary one for every
//! connection of this process, and lets pass what is not below such a directory. Shared memory and locks pass too.

#![expect(unsafe_code, reason = "SQLite asks for its files through tables of C functions")]

use rusqlite::ffi;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Mutex, Once, OnceLock};

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Database,
    Log,
}

/// What was asked of the disk and done.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Write(Which, usize, Vec<u8>),
    Truncate(Which, usize),
    Sync(Which),
    /// So many steps were acknowledged.
    Told(usize),
}

/// What fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The first operation that fails, from 1 on.
    pub(super) at: usize,
    /// Whether all that follow fail too.
    pub(super) on: bool,
    /// Whether writes fail for want of room.
    pub(super) full: bool,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    passed: usize,
    ops: Vec<Op>,
}

/// The disk below one directory, for as long as this is kept.
pub(super) struct Disk {
    root: PathBuf,
    state: Arc<Mutex<State>>,
}

static DISKS: Mutex<Vec<(PathBuf, Arc<Mutex<State>>)>> = Mutex::new(Vec::new());

impl Disk {
    /// Puts one below this directory.
    pub(super) fn below(root: &Path) -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(register);
        let state = Arc::<Mutex<State>>::default();
        DISKS.lock().unwrap().push((root.to_owned(), Arc::clone(&state)));
        Self { root: root.to_owned(), state }
    }

    /// Lets an operation fail, or none.
    pub(super) fn fail(&self, plan: Option<Plan>) {
        let mut state = self.state.lock().unwrap();
        (state.plan, state.passed) = (plan, 0);
    }

    /// How many operations were asked for since.
    pub(super) fn passed(&self) -> usize {
        self.state.lock().unwrap().passed
    }

    /// Notes that so many steps were acknowledged.
    pub(super) fn told(&self, steps: usize) {
        self.state.lock().unwrap().ops.push(Op::Told(steps));
    }

    /// Everything since the last time.
    pub(super) fn take(&self) -> Vec<Op> {
        std::mem::take(&mut self.state.lock().unwrap().ops)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        DISKS.lock().unwrap().retain(|(root, _)| *root != self.root);
    }
}

/// An open file: ours in front, the ordinary one right behind it.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    disk: *const Disked,
}

/// What is known of a file below such a directory.
struct Disked {
    which: Which,
    state: Arc<Mutex<State>>,
}

/// The ordinary files behind everything.
static BEHIND: OnceLock<usize> = OnceLock::new();

fn behind() -> *mut ffi::sqlite3_vfs {
    *BEHIND.get().expect("it was registered") as *mut ffi::sqlite3_vfs
}

fn register() {
    // SAFETY: the ordinary one lives as long as the process and is only copied; the copy and its name are never freed.
    unsafe {
        let ordinary = ffi::sqlite3_vfs_find(ptr::null());
        assert!(!ordinary.is_null() && BEHIND.set(ordinary as usize).is_ok());
        let mut ours = *ordinary;
        ours.szOsFile += c_int::try_from(size_of::<File>()).expect("a small size");
        ours.zName = c"tests".as_ptr();
        ours.pNext = ptr::null_mut();
        ours.xOpen = Some(open);
        assert_eq!(ffi::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 1), ffi::SQLITE_OK);
    }
}

/// The ordinary file behind one of ours.
fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    file.cast::<File>().wrapping_add(1).cast()
}

/// Counts an operation; the code to fail with, where it is to fail.
fn gate(disk: &Disked, failed: c_int, writes: bool) -> Option<c_int> {
    let mut state = disk.state.lock().unwrap();
    state.passed += 1;
    let (passed, plan) = (state.passed, state.plan?);
    let due = passed == plan.at || (plan.on && passed > plan.at);
    due.then_some(if plan.full && writes { ffi::SQLITE_FULL } else { failed })
}

/// What is known of an open file, where it is below such a directory.
///
/// # Safety
/// `file` is one that [`open`] has filled.
unsafe fn disk<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a Disked> {
    // SAFETY: it was made by `open` and is freed by `close` only.
    unsafe { (*file.cast::<File>()).disk.as_ref() }
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let found = if name.is_null() { None } else { find(name) };
    if let Some(code) = found.as_ref().and_then(|disk| gate(disk, ffi::SQLITE_CANTOPEN, false)) {
        // SAFETY: SQLite gave room for a file, and reads this to see that there is nothing to close.
        unsafe { (*file).pMethods = ptr::null() };
        return code;
    }
    // SAFETY: the room that SQLite gave holds ours and the ordinary one behind it.
    unsafe {
        let done = ((*behind()).xOpen.expect("it opens"))(behind(), name, real(file), flags, out);
        let opened = !(*real(file)).pMethods.is_null();
        (*file).pMethods = if opened { &raw const METHODS } else { ptr::null() };
        let disk = found.filter(|_| opened).map_or(ptr::null(), |disk| Box::into_raw(Box::new(disk)).cast_const());
        (*file.cast::<File>()).disk = disk;
        done
    }
}

fn find(name: *const c_char) -> Option<Disked> {
    // SAFETY: SQLite gives a name that ends with NUL.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let which = match path.file_name()?.to_str()? {
        "ares.db" => Which::Database,
        "ares.db-wal" => Which::Log,
        _ => return None,
    };
    let disks = DISKS.lock().unwrap();
    let (_, state) = disks.iter().find(|(root, _)| path.parent() == Some(root))?;
    Some(Disked { which, state: Arc::clone(state) })
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: what `open` boxed is freed once; the ordinary file is open.
    unsafe {
        let disk = (*file.cast::<File>()).disk.cast_mut();
        if !disk.is_null() {
            drop(Box::from_raw(disk));
        }
        ((*(*real(file)).pMethods).xClose.expect("it closes"))(real(file))
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, len: c_int, at: i64) -> c_int {
    // SAFETY: the file is open and the bytes are there to be read.
    unsafe {
        if let Some(code) = disk(file).and_then(|disk| gate(disk, ffi::SQLITE_IOERR_WRITE, true)) {
            return code;
        }
        let done = ((*(*real(file)).pMethods).xWrite.expect("it writes"))(real(file), bytes, len, at);
        if let Some(disk) = disk(file).filter(|_| done == ffi::SQLITE_OK) {
            let len = usize::try_from(len).expect("a length");
            let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec();
            let at = usize::try_from(at).expect("an offset");
            disk.state.lock().unwrap().ops.push(Op::Write(disk.which, at, bytes));
        }
        done
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        if let Some(code) = disk(file).and_then(|disk| gate(disk, ffi::SQLITE_IOERR_TRUNCATE, false)) {
            return code;
        }
        let done = ((*(*real(file)).pMethods).xTruncate.expect("it truncates"))(real(file), size);
        if let Some(disk) = disk(file).filter(|_| done == ffi::SQLITE_OK) {
            let size = usize::try_from(size).expect("a size");
            disk.state.lock().unwrap().ops.push(Op::Truncate(disk.which, size));
        }
        done
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        if let Some(code) = disk(file).and_then(|disk| gate(disk, ffi::SQLITE_IOERR_FSYNC, false)) {
            return code;
        }
        let done = ((*(*real(file)).pMethods).xSync.expect("it syncs"))(real(file), flags);
        if let Some(disk) = disk(file).filter(|_| done == ffi::SQLITE_OK) {
            disk.state.lock().unwrap().ops.push(Op::Sync(disk.which));
        }
        done
    }
}

/// Methods that only pass, and those that pass where the disk does not fail with this code.
macro_rules! pass {
    ($($name:ident $method:ident ($($arg:ident: $type:ty),*) -> $answer:ty $(, $failed:expr)?;)*) => {
        $(unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> $answer {
            // SAFETY: the file is open, and the rest is handed on as it came.
            unsafe {
                $(if let Some(code) = disk(file).and_then(|disk| gate(disk, $failed, false)) {
                    return code;
                })?
                ((*(*real(file)).pMethods).$method.expect("it is there"))(real(file), $($arg),*)
            }
        })*
    };
}

pass! {
    read xRead(to: *mut c_void, len: c_int, at: i64) -> c_int, ffi::SQLITE_IOERR_READ;
    size xFileSize(size: *mut i64) -> c_int, ffi::SQLITE_IOERR_FSTAT;
    lock xLock(level: c_int) -> c_int;
    unlock xUnlock(level: c_int) -> c_int;
    reserved xCheckReservedLock(out: *mut c_int) -> c_int;
    control xFileControl(what: c_int, arg: *mut c_void) -> c_int;
    sector xSectorSize() -> c_int;
    traits xDeviceCharacteristics() -> c_int;
    map xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int, ffi::SQLITE_IOERR_SHMMAP;
    shm_lock xShmLock(offset: c_int, n: c_int, flags: c_int) -> c_int;
    barrier xShmBarrier() -> ();
    unmap xShmUnmap(delete: c_int) -> c_int;
}

/// Version 2: with shared memory, without mapping the database itself.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(traits),
    xShmMap: Some(map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(unmap),
    xFetch: None,
    xUnfetch: None,
};
