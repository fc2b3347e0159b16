// SPDX-License-Identifier: GPL-2.0

//! A list of what is open in an object, which each entry leaves by itself, and whose entries can be
//! ended all at once.
//!
//! It has a part for each CPU, more or less: who opens and closes on one CPU takes no lock that
//! others do.
//!
//! Lock order: `ending`, then what ending an entry takes. The parts' locks are leaves.

mod kunit;

use crate::{
    new_irq_lock,
    support::{
        hlist::{
            Head,
            Node, //
        },
        irqlock::IrqLock,
        num, //
    }, //
};
use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    cpu::CpuId,
    new_condvar,
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        CondVar,
        Mutex, //
    }, //
};

/// Ends what has an entry. Sleeps until that is done.
///
/// # Safety
///
/// The entry is in a roster, and doesn't leave it before this has returned.
pub(crate) type End = unsafe fn(NonNull<ChildEntry>);

/// What all entries of one kind have in common.
#[repr(align(16))]
pub(crate) struct ChildKind {
    /// Says that there is one.
    pub(crate) open: &'static CStr,
    /// Ends one, if there is anything to end.
    pub(crate) end: Option<End>,
}

/// What is open in an object.
#[pin_data]
pub struct ChildList {
    #[pin]
    parts: [Part; PARTS],
    /// Held by who ends what is open.
    #[pin]
    ending: Mutex<()>,
}

/// More CPUs than these share some.
const PARTS: usize = 16;

/// Apart from each other, so that CPUs don't meet.
#[repr(align(64))]
#[pin_data]
struct Part {
    /// How many have been announced, and are not in yet.
    coming: Atomic<usize>,
    /// Whether somebody waits for them.
    awaited: Atomic<bool>,
    #[pin]
    lists: IrqLock<Lists>,
    /// An entry isn't being ended any more, or none is coming any more.
    #[pin]
    changed: CondVar,
}

/// The entries of a part. Used by shared references only, since entries point to the heads.
///
/// # Invariants
///
/// - Both lists consist of the nodes of entries that have joined this part and not left it.
/// - `now` is null, or such an entry that is being ended.
struct Lists {
    open: Head,
    ended: Head,
    now: Cell<*const ChildEntry>,
}

// SAFETY: Entries may be listed by any thread; what they are in may be used by any.
unsafe impl Send for Lists {}

/// A place in the list, to be part of what is listed.
///
/// What it is in is pinned, and has left the roster before it is dropped.
///
/// # Invariants
///
/// `kind` is a pointer to a [`ChildKind`], in whose low bits, which are 0 in that, is the part of the roster.
pub(crate) struct ChildEntry {
    // One word for both: there is an entry in each region.
    kind: *const ChildKind,
    node: Node,
}

// SAFETY: What all of a kind have in common doesn't change, and nodes are used under the lock of their list.
unsafe impl Send for ChildEntry {}
// SAFETY: As for `Send`.
unsafe impl Sync for ChildEntry {}

/// The bits of a pointer to a [`ChildKind`] that are 0.
const PART_BITS: usize = align_of::<ChildKind>() - 1;

/// Which part of a roster something is in.
///
/// # Invariants
///
/// Less than [`PARTS`].
#[derive(Clone, Copy)]
pub(crate) struct PartOf(usize);

const _: () = assert!(PARTS - 1 <= PART_BITS);

impl ChildList {
    /// An empty one.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            parts <- pin_init::pin_init_array_from_fn(|_| Part::new()),
            ending <- new_mutex!((), "kfabric_child_list_ending"),
        })
    }

    fn part(&self, PartOf(index): PartOf) -> &Part {
        let [first, ..] = &self.parts;
        self.parts.get(index).unwrap_or(first)
    }

    /// Announces an entry, which either [joins](Self::join) or is [given up](Self::give_up). Who
    /// ends what is open waits for it. Any context.
    pub(crate) fn announce(&self) -> PartOf {
        // INVARIANT: A remainder.
        let part = PartOf(num::index(CpuId::current().as_u32()) % PARTS);
        self.part(part).coming.fetch_add(1, Full);
        part
    }

    /// What was announced doesn't come. Any context.
    pub(crate) fn give_up(&self, part: PartOf) {
        self.part(part).arrived();
    }

    /// Puts in an entry that was announced for its part. Any context.
    ///
    /// # Safety
    ///
    /// Called once for each time that the entry was announced. The entry doesn't move, and
    /// [leaves](Self::leave) before what its kind ends is dropped.
    pub(crate) unsafe fn join(&self, entry: &ChildEntry) {
        let part = self.part(entry.part());
        part.lists.with(|lists| {
            // SAFETY: The entry is in no list: it joins once. The lock is held. The entry stays where it
            // is until it leaves, and the head is part of the roster, which is pinned.
            unsafe { entry.node.link(&lists.open) }
        });
        part.arrived();
    }

    /// Takes out an entry. Sleeps while it is being ended; of a kind that has nothing to end: any
    /// context.
    ///
    /// # Safety
    ///
    /// The entry has joined this roster, and not left it.
    pub(crate) unsafe fn leave(&self, entry: &ChildEntry) {
        let part = self.part(entry.part());
        part.lists.with(|lists| {
            while ptr::eq(lists.now.get(), entry) {
                part.changed.wait(lists);
            }
            // SAFETY: In a list of this part, whose lock is held.
            unsafe { entry.node.unlink() };
        });
    }

    /// Takes out an entry, unless it is being ended, and announces it again: it [joins](Self::join)
    /// again, or is [given up](Self::give_up) and has left. Returns whether it was taken out. Any context.
    ///
    /// # Safety
    ///
    /// The entry has joined this roster, and not left it.
    pub(crate) unsafe fn try_withdraw(&self, entry: &ChildEntry) -> bool {
        let part = self.part(entry.part());
        part.lists.with(|lists| {
            let withdrawn = !ptr::eq(lists.now.get(), entry);
            if withdrawn {
                // Under the lock, so that the task that ends the entries finds it or waits for it.
                part.coming.fetch_add(1, Full);
                // SAFETY: The entry is in a list of this part, whose lock is held.
                unsafe { entry.node.unlink() };
            }
            withdrawn
        })
    }

    /// Says what is open, if there is something. Any context.
    pub(crate) fn why_busy(&self) -> Option<&'static CStr> {
        self.parts.iter().find_map(|part| {
            part.lists.with(|lists| {
                // SAFETY: The lock is held. By the invariant of `Lists`, each node is that of an entry.
                unsafe {
                    let first = lists.open.first().or(lists.ended.first())?;
                    Some(ChildEntry::of(first).as_ref().kind().open)
                }
            })
        })
    }

    /// Ends all that is open, whatever it is: a region is out of reach for peers afterwards. It is
    /// still there for who has opened it to be closed, but does nothing any more. For a provider
    /// whose device goes away, once nothing new can be opened. Sleeps until that is done; not to be
    /// called by what is called to end something.
    pub fn end(&self) {
        let _one = self.ending.lock();
        self.parts.iter().for_each(Part::end);
    }
}

impl Part {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            coming: Atomic::new(0),
            awaited: Atomic::new(false),
            // INVARIANT: No entry.
            lists <- new_irq_lock!(
                Lists {
                    open: Head::new(),
                    ended: Head::new(),
                    now: Cell::new(ptr::null()),
                },
                c"kfabric_child_list"
            ),
            changed <- new_condvar!("kfabric_child_list"),
        })
    }

    fn arrived(&self) {
        // Both are ordered: this one sees that it is awaited, or who waits sees that it is here.
        if self.coming.fetch_sub(1, Full) == 1 && self.awaited.load(Relaxed) {
            self.lists.with(|_| self.changed.notify_all());
        }
    }

    fn end(&self) {
        self.awaited.xchg(true, Full);
        while let Some((entry, end)) = self.next() {
            // SAFETY: It is in this part, and doesn't leave it while it is the one that is ended now.
            unsafe { end(entry) };
            self.lists.with(|lists| {
                lists.now.set(ptr::null());
                self.changed.notify_all();
            });
        }
        self.awaited.store(false, Relaxed);
    }

    /// Returns the next entry that has an end, which is being ended from here on. Sleeps until no entry
    /// is announced that has not joined.
    fn next(&self) -> Option<(NonNull<ChildEntry>, End)> {
        self.lists.with(|lists| loop {
            // One that was withdrawn may join again at any time.
            while self.coming.load(Relaxed) > 0 {
                self.changed.wait(lists);
            }
            // SAFETY: The lock is held. By the invariant of `Lists`, `first` is the node of an entry that
            // has joined this part; it is unlinked before it is linked again, and both heads are pinned.
            let (entry, end) = unsafe {
                let first = lists.open.first()?;
                let entry = ChildEntry::of(first);
                first.as_ref().unlink();
                first.as_ref().link(&lists.ended);
                (entry, entry.as_ref().kind().end)
            };
            if let Some(end) = end {
                // INVARIANT: It is in a list.
                lists.now.set(entry.as_ptr());
                return Some((entry, end));
            }
        })
    }
}

impl ChildEntry {
    /// In no roster yet, for that part of one.
    pub(crate) fn new(kind: &'static ChildKind, PartOf(part): PartOf) -> Self {
        // INVARIANT: It fits there, as was asserted.
        Self {
            kind: ptr::from_ref(kind).map_addr(|address| address | part),
            node: Node::new(),
        }
    }

    /// What it has in common with others.
    fn kind(&self) -> &'static ChildKind {
        // SAFETY: By the type invariant, without these bits it is a pointer to one.
        unsafe { &*self.kind.map_addr(|address| address & !PART_BITS) }
    }

    /// Which part of a roster it is for.
    pub(crate) fn part(&self) -> PartOf {
        // INVARIANT: As it was when the entry was made.
        PartOf(self.kind.addr() & PART_BITS)
    }

    /// The entry that has this node.
    ///
    /// # Safety
    ///
    /// It is an entry's.
    unsafe fn of(node: NonNull<Node>) -> NonNull<Self> {
        // SAFETY: By the requirements of this function; a field of what is there is not null.
        unsafe { NonNull::new_unchecked(kernel::container_of!(node.as_ptr(), Self, node)) }
    }
}
