//! The journal's disk operations, as a trait, so that tests can substitute a full or failing disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::files;

/// Creates segment files.
pub(super) trait Disk: Send + Sync {
    /// A new file; fails if it already exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>>;
}

/// An open segment file.
pub(super) trait SegmentFile: Send + Sync {
    /// One `pwrite(2)`, unless the kernel takes less than it was given.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn cut(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

/// The machine's file system.
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>> {
        Ok(Arc::new(files::private().write(true).create_new(true).open(path)?))
    }
}

impl SegmentFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
