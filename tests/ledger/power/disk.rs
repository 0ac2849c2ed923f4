//! A simulated disk under a recorded run: what is certainly on it at each moment, and what may be.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::trace::{Call, Op};

/// A change that may not be synced yet; its number is that of its operation.
#[derive(Debug)]
struct Change<T> {
    op: usize,
    ended: usize,
    /// The operation from which on it is durable.
    durable: usize,
    what: T,
}

#[derive(Debug)]
enum Data {
    Write { offset: u64, bytes: Vec<u8> },
    Truncate(u64),
}

/// The change of a directory's names in one step.
#[derive(Debug)]
struct Names {
    removed: Option<String>,
    added: Option<(String, usize)>,
}

#[derive(Debug)]
enum Inode {
    File { base: Vec<u8>, changes: Vec<Change<Data>> },
    Dir { base: BTreeMap<String, usize>, changes: Vec<Change<Names>> },
}

/// The disk and all operations on it.
pub struct Disk {
    root: PathBuf,
    inodes: Vec<Inode>,
    /// Names as the running system has them.
    now: HashMap<PathBuf, usize>,
    ops: usize,
    /// Which inode each change belongs to, and whether it is one of names.
    changes: BTreeMap<usize, (usize, bool)>,
}

/// What remains of a change that was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    Whole,
    /// The first half of the written bytes.
    Half,
}

/// The changes that reached the disk.
pub type Reached = BTreeMap<usize, Left>;

/// Files by their path below the root; directories have no content.
pub type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl Disk {
    /// A disk on which everything below `root` has long been synced.
    pub fn of(root: &Path) -> Self {
        let mut disk = Self {
            root: root.to_owned(),
            inodes: Vec::new(),
            now: HashMap::new(),
            ops: 0,
            changes: BTreeMap::new(),
        };
        disk.take_in(root);
        disk
    }

    fn take_in(&mut self, path: &Path) -> usize {
        let number = self.inodes.len();
        self.now.insert(path.to_owned(), number);
        if path.is_file() {
            self.inodes
                .push(Inode::File { base: std::fs::read(path).unwrap(), changes: Vec::new() });
            return number;
        }
        self.inodes.push(Inode::Dir { base: BTreeMap::new(), changes: Vec::new() });
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let name = entry.file_name().into_string().unwrap();
            if (kind.is_file() || kind.is_dir()) && !name.ends_with("-shm") {
                names.insert(name, self.take_in(&entry.path()));
            }
        }
        if let Inode::Dir { base, .. } = &mut self.inodes[number] {
            *base = names;
        }
        number
    }

    /// Applies one operation.
    pub fn run(&mut self, op: &Op) {
        let number = self.ops;
        self.ops += 1;
        match &op.call {
            Call::Open { path, create, truncate } => match self.now.get(path).copied() {
                Some(file) if *truncate => self.data(file, number, op, Data::Truncate(0)),
                Some(_) => {}
                None => {
                    assert!(*create, "{path:?} is not known");
                    let file = Inode::File { base: Vec::new(), changes: Vec::new() };
                    self.add(path, file, number, op);
                }
            },
            Call::MakeDir { path } => {
                let dir = Inode::Dir { base: BTreeMap::new(), changes: Vec::new() };
                self.add(path, dir, number, op);
            }
            Call::Write { path, offset, bytes } => {
                let what = Data::Write { offset: *offset, bytes: bytes.clone() };
                self.data(self.known(path), number, op, what);
            }
            Call::Truncate { path, length } => {
                self.data(self.known(path), number, op, Data::Truncate(*length))
            }
            Call::Sync { path } => self.sync(self.known(path), number, op.began),
            Call::Link { from, to } => {
                let inode = self.known(from);
                self.now.insert(to.clone(), inode);
                self.names(
                    to,
                    number,
                    op,
                    Names { removed: None, added: Some((name_of(to), inode)) },
                );
            }
            Call::Unlink { path } => {
                self.names(path, number, op, Names { removed: Some(name_of(path)), added: None });
                self.now.remove(path);
            }
            Call::Rename { from, to } => self.rename(from, to, number, op),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path, number: usize, op: &Op) {
        assert_eq!(
            from.parent(),
            to.parent(),
            "a rename within a directory is one step, another is not"
        );
        let inode = self.known(from);
        let names = Names { removed: Some(name_of(from)), added: Some((name_of(to), inode)) };
        self.names(to, number, op, names);
        // Everything below moves along.
        let below: Vec<PathBuf> =
            self.now.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in below {
            let inode = self.now.remove(&path).unwrap();
            let rest = path.strip_prefix(from).unwrap();
            let path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            self.now.insert(path, inode);
        }
    }

    fn known(&self, path: &Path) -> usize {
        *self.now.get(path).unwrap_or_else(|| panic!("{path:?} is not known"))
    }

    fn add(&mut self, path: &Path, inode: Inode, number: usize, op: &Op) {
        self.inodes.push(inode);
        let inode = self.inodes.len() - 1;
        self.now.insert(path.to_owned(), inode);
        self.names(path, number, op, Names { removed: None, added: Some((name_of(path), inode)) });
    }

    fn data(&mut self, file: usize, number: usize, op: &Op, what: Data) {
        let Inode::File { changes, .. } = &mut self.inodes[file] else {
            panic!("a directory is written to")
        };
        changes.push(Change { op: number, ended: op.ended, durable: usize::MAX, what });
        self.changes.insert(number, (file, false));
    }

    fn names(&mut self, path: &Path, number: usize, op: &Op, what: Names) {
        let dir = self.known(path.parent().unwrap());
        let Inode::Dir { changes, .. } = &mut self.inodes[dir] else {
            panic!("{path:?} is below a file")
        };
        changes.push(Change { op: number, ended: op.ended, durable: usize::MAX, what });
        self.changes.insert(number, (dir, true));
    }

    /// A sync covers operations that had ended when it began, and is durable when it has ended.
    fn sync(&mut self, inode: usize, number: usize, began: usize) {
        fn cover<T>(changes: &mut [Change<T>], number: usize, began: usize) {
            for change in changes.iter_mut().filter(|change| change.ended < began) {
                change.durable = change.durable.min(number);
            }
        }
        match &mut self.inodes[inode] {
            Inode::File { changes, .. } => cover(changes, number, began),
            Inode::Dir { changes, .. } => cover(changes, number, began),
        }
    }

    /// The durable and the possible changes, if the power fails after operation `at`: the numbers
    /// of changes, with their inode and whether they are of names.
    pub fn at(&self, at: usize) -> (Reached, Vec<(usize, usize, bool)>) {
        let (mut certain, mut open) = (Reached::new(), Vec::new());
        for (op, (inode, of_names)) in self.changes.range(..=at) {
            let durable = match &self.inodes[*inode] {
                Inode::File { changes, .. } => durable(changes, *op),
                Inode::Dir { changes, .. } => durable(changes, *op),
            };
            if durable <= at {
                certain.insert(*op, Left::Whole);
            } else {
                open.push((*op, *inode, *of_names));
            }
        }
        (certain, open)
    }

    /// The files of the disk if exactly these changes reached it.
    pub fn files(&self, reached: &Reached) -> Files {
        let mut files = Files::new();
        self.collect(0, Path::new(""), reached, &mut files);
        files
    }

    fn collect(&self, inode: usize, path: &Path, reached: &Reached, files: &mut Files) {
        match &self.inodes[inode] {
            Inode::File { base, changes } => {
                files.insert(path.to_owned(), Some(content(base, changes, reached)));
            }
            Inode::Dir { base, changes } => {
                files.insert(path.to_owned(), None);
                for (name, inode) in names(base, changes, reached) {
                    self.collect(inode, &path.join(name), reached, files);
                }
            }
        }
    }

    /// The content of one file, if it is there.
    pub fn content(&self, path: &Path, reached: &Reached) -> Option<Vec<u8>> {
        let mut inode = 0;
        for name in path {
            let Inode::Dir { base, changes } = &self.inodes[inode] else { return None };
            inode = *names(base, changes, reached).get(name.to_str().unwrap())?;
        }
        match &self.inodes[inode] {
            Inode::File { base, changes } => Some(content(base, changes, reached)),
            Inode::Dir { .. } => None,
        }
    }

    /// Number of operations.
    pub fn ops(&self) -> usize {
        self.ops
    }

    /// Whether the running system's files match the recording.
    pub fn assert_complete(&self) {
        let reached: Reached = self.changes.keys().map(|op| (*op, Left::Whole)).collect();
        let recorded = self.files(&reached);
        let real = Self::of(&self.root).files(&Reached::new());
        let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&recorded), names(&real), "the recording misses files");
        for (path, content) in &recorded {
            assert!(real[path] == *content, "the recording of {path:?} is not complete");
        }
    }
}

fn content(base: &[u8], changes: &[Change<Data>], reached: &Reached) -> Vec<u8> {
    let mut content = base.to_vec();
    for change in changes {
        match (&change.what, reached.get(&change.op)) {
            (_, None) => {}
            (Data::Truncate(length), Some(_)) => {
                content.resize(usize::try_from(*length).unwrap(), 0)
            }
            (Data::Write { offset, bytes }, Some(Left::Whole)) => put(&mut content, *offset, bytes),
            (Data::Write { offset, bytes }, Some(Left::Half)) => {
                put(&mut content, *offset, &bytes[..bytes.len() / 2])
            }
        }
    }
    content
}

fn names(
    base: &BTreeMap<String, usize>,
    changes: &[Change<Names>],
    reached: &Reached,
) -> BTreeMap<String, usize> {
    let mut names = base.clone();
    for change in changes.iter().filter(|change| reached.contains_key(&change.op)) {
        if let Some(name) = &change.what.removed {
            names.remove(name);
        }
        if let Some((name, inode)) = &change.what.added {
            names.insert(name.clone(), *inode);
        }
    }
    names
}

fn durable<T>(changes: &[Change<T>], op: usize) -> usize {
    let place = changes.binary_search_by_key(&op, |change| change.op).unwrap();
    changes[place].durable
}

fn put(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let offset = usize::try_from(offset).unwrap();
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Writes files below a directory.
pub fn lay_out(files: &Files, root: &Path) {
    for (path, content) in files {
        let path = root.join(path);
        match content {
            Some(content) => std::fs::write(path, content).unwrap(),
            None => std::fs::create_dir_all(path).unwrap(),
        }
    }
}
