//! Which file systems a store may lie on.

use crate::error::{Code, OrCode, Result};
use std::path::Path;

/// File systems whose locks or whose `fsync` cannot be trusted across machines, by the magic number of statfs(2).
/// FUSE is among them, because what stands behind it is not known; virtiofs shows the same number.
const NETWORK: &[(u32, &str)] = &[
    (0x0000_6969, "nfs"),
    (0x0000_517B, "smb"),
    (0xFE53_4D42, "smb2"),
    (0xFF53_4D42, "cifs"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "afs"),
    (0x00C3_6400, "ceph"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x0BD0_0BD0, "lustre"),
    (0x7375_7245, "coda"),
];

/// The name of the network file system that this path lies on; `None` where it is a local one.
pub fn file_system(path: &Path) -> Result<Option<&'static str>> {
    let found = rustix::fs::statfs(path)
        .or_code(Code::StoreUnusable, || format!("cannot ask for the file system of '{}'", path.display()))?;
    // The number has 32 bits; some architectures hand it over sign-extended.
    let magic = u32::try_from(i128::from(found.f_type) & 0xFFFF_FFFF).unwrap_or(0);
    Ok(network_name(magic))
}

fn network_name(magic: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_named_and_local_ones_are_not() {
        for (magic, name) in [
            (0x6969, "nfs"),
            (0xFF53_4D42, "cifs"),
            (0xFE53_4D42, "smb2"),
            (0x517B, "smb"),
            (0x0102_1997, "9p"),
            (0x6573_5546, "fuse"),
            (0x00C3_6400, "ceph"),
            (0x0BD0_0BD0, "lustre"),
        ] {
            assert_eq!(network_name(magic), Some(name));
        }
        // ext4, btrfs, xfs, tmpfs, overlayfs, zfs.
        for local in [0xEF53, 0x9123_683E, 0x5846_5342, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1] {
            assert_eq!(network_name(local), None, "{local:x}");
        }
        let mut numbers: Vec<u32> = NETWORK.iter().map(|(magic, _)| *magic).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), NETWORK.len());
        assert_eq!(file_system(Path::new("/proc")).unwrap(), None);
    }
}
