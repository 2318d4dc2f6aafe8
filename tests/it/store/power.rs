//! Losses of power, for real: a small ext4 file system on a loop device is shut down under the store, which drops
//! everything that was not synced, and mounted again. What was acknowledged is there, and the store works on. A file
//! that nobody synced shows that the loss is one.

use crate::harness::{Lab, has, skipped};
use crate::run::eventually;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

/// Rounds; each loses power once.
const ROUNDS: usize = 6;

/// `EXT4_IOC_SHUTDOWN` of linux/fs/ext4/ext4.h, and its flag that also drops the journal's unwritten part.
const SHUTDOWN: libc::Ioctl = 0x8004_587d;
const NO_LOG_FLUSH: u32 = 2;

struct Disk {
    lab: Lab,
    at: PathBuf,
}

impl Disk {
    /// A fresh file system; `None`, and counted, where this machine has none to give.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("only root can mount a disk to take the power from");
            return None;
        }
        if !has("mkfs.ext4") {
            return None;
        }
        let lab = Lab::new();
        let at = lab.path().join("disk");
        let made = lab.sh("truncate -s 64M image && PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q -F image && mkdir disk");
        assert_eq!(made.status, 0, "{made:?}");
        let disk = Self { lab, at };
        if disk.mount() {
            return Some(disk);
        }
        skipped("this machine mounts no loop device");
        None
    }

    fn mount(&self) -> bool {
        self.lab.sh("PATH=$PATH:/usr/sbin:/sbin mount -o loop image disk").status == 0
    }

    /// Takes the power away and gives it back.
    #[expect(unsafe_code, reason = "there is no other door to this call of the kernel")]
    fn fail(&self) {
        let root = File::open(&self.at).unwrap();
        let flag = NO_LOG_FLUSH;
        // SAFETY: the call reads four bytes from a number that outlives it.
        let done = unsafe { libc::ioctl(root.as_raw_fd(), SHUTDOWN, &raw const flag) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        drop(root);
        assert_eq!(self.lab.sh("PATH=$PATH:/usr/sbin:/sbin umount disk").status, 0);
        // Whoever makes itself a mount namespace meanwhile has the disk in it, which is without power until it is let go.
        eventually("the disk is let go", || {
            self.lab.sh("PATH=$PATH:/usr/sbin:/sbin losetup -j image").out.is_empty().then_some(())
        });
        assert!(self.mount(), "it is mounted again");
    }

    fn ares(&self, script: &str) -> String {
        let ran = self.lab.sh(&format!("cd disk; export ARES_DIR=$PWD/store; {script}"));
        assert_eq!(ran.status, 0, "{script}: {ran:?}");
        ran.out
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may not be mounted; then there is nothing to undo.
        self.lab.sh("PATH=$PATH:/usr/sbin:/sbin umount -l disk 2>/dev/null");
    }
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power() {
    let Some(disk) = Disk::new() else { return };
    disk.ares("ares init -q >/dev/null");
    let (mut acknowledged, mut lost) = (0, 0);
    for round in 0..ROUNDS {
        // The last of these commands is the one whose sync is put to the test; a different one in each round.
        let last = [
            "ares submit -- true",
            "printf '{\"argv\":[\"true\"]}\\n{\"argv\":[\"true\"]}\\n' | ares submit --stdin",
            "ares submit -- true; ares submit -- head -c 40000 /dev/zero; ares run --drain -q >/dev/null",
        ][round % 3];
        acknowledged += disk.ares(last).lines().count();
        let states = disk.ares("ares list --all --format '%(job) %(state)'");
        fs::write(disk.at.join(format!("unsynced-{round}")), "x".repeat(100)).unwrap();
        disk.fail();
        let kept = fs::read(disk.at.join(format!("unsynced-{round}"))).unwrap_or_default();
        lost += usize::from(kept.len() < 100);
        assert_eq!(disk.ares("ares list --all --format '%(job) %(state)'"), states, "round {round}: {last}");
        // That a directory was removed may be lost; it is no evidence, and is removed again.
        assert_eq!(disk.ares("ares reconcile; ares fsck --full"), "", "round {round}");
    }
    assert_eq!(disk.ares("ares list --count").trim(), acknowledged.to_string());
    assert_eq!(lost, ROUNDS, "a file that nobody synced is lost each time, or the power did not fail");
    disk.ares("ares submit -- true; ares run --drain -q");
}
