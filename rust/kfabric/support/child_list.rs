// SPDX-License-Identifier: GPL-2.0

//! The list of an object's open children. Each child leaves it by itself, and all can be ended at
//! once.
//!
//! The list has a part for each CPU, up to a maximum. Tasks that open and close children on
//! different CPUs take different locks.
//!
//! Lock order: `ending`, then the locks that ending a child takes. The lock of a part is taken before those that
//! describing a child takes.

use crate::{
    prelude::*,
    support::{
        hlist::{
            Head,
            Node, //
        },
        num, //
    }, //
};
use core::cell::Cell;
use kernel::{
    cpu::CpuId,
    sync::atomic::Full, //
};
use kfi_bindings::kfi_helper_object;

/// Ends a child. Sleeps until that is done.
///
/// # Safety
///
/// The entry is in a list of children, and doesn't leave it before this has returned.
pub(crate) type End = unsafe fn(NonNull<ChildEntry>);

/// Fills in the listing entry of a child. Any context; the lock of the list is held.
///
/// # Safety
///
/// The entry is in a list of children, and doesn't leave it before this has returned.
pub(crate) type Describe = unsafe fn(NonNull<ChildEntry>, &mut kfi_helper_object);

/// The common properties of all children of one kind.
#[repr(align(16))]
pub(crate) struct ChildKind {
    /// Says that a child of this kind is open.
    pub(crate) open: &'static CStr,
    /// Ends a child; `None` if there is nothing to end.
    pub(crate) end: Option<End>,
    pub(crate) describe: Describe,
}

/// The open children of an object.
#[pin_data]
pub struct ChildList {
    #[pin]
    parts: [Part; PARTS],
    /// Held by the task that ends the children.
    #[pin]
    ending: Mutex<()>,
}

/// Maximum number of parts. More CPUs share them.
const PARTS: usize = 16;

/// A part of the list, in cache lines of its own.
#[repr(align(64))]
#[pin_data]
struct Part {
    /// Number of entries that have been announced and have not joined.
    coming: Atomic<usize>,
    /// Whether a task waits for them.
    awaited: Atomic<bool>,
    #[pin]
    lists: IrqLock<Lists>,
    /// Notified when an entry has been ended, or when no announced entry is left.
    #[pin]
    changed: CondVar,
}

/// The entries of a part. Used by shared references only, since entries point to the heads.
///
/// # Invariants
///
/// - The list consists of the nodes of entries that have joined this part and not left it, and of placeholders.
/// - `mark` is in the list.
/// - `now` is null, or the entry that is being ended, which is in the list.
struct Lists {
    /// How many entries have joined for the first time.
    joined: Cell<u32>,
    all: Head,
    /// A placeholder between the entries that have been ended and those that have not.
    mark: ChildEntry,
    now: Cell<*const ChildEntry>,
}

/// The kind of a placeholder, which keeps a place in a list and never joins.
static PLACEHOLDER: ChildKind = ChildKind {
    open: c"",
    end: None,
    describe: |_, _| (),
};

/// Maximum number of entries that are described without releasing the lock.
const STEP: usize = 64;

// SAFETY: Any thread may list an entry, and use the object that the entry is in.
unsafe impl Send for Lists {}

/// An entry of a list of children, a field of the child.
///
/// The child is pinned. The entry leaves the list before the child is dropped.
///
/// # Invariants
///
/// `kind` is a pointer to a [`ChildKind`]. The low bits of the pointer, which are 0 in the address
/// of a [`ChildKind`], are the index of the part.
pub(crate) struct ChildEntry {
    // One word for both: there is an entry in each region.
    kind: *const ChildKind,
    node: Node,
    /// The number among the entries of the part, or 0 before it has joined. It may wrap.
    number: Atomic<u32>,
    /// When it joined, in seconds since the machine was started.
    since: Cell<u32>,
}

// SAFETY: A `ChildKind` doesn't change, and the other fields are used under the lock of their list.
unsafe impl Send for ChildEntry {}
// SAFETY: A `ChildKind` doesn't change, and the other fields are used under the lock of their list.
unsafe impl Sync for ChildEntry {}

/// The bits of a pointer to a [`ChildKind`] that are 0.
const PART_BITS: usize = align_of::<ChildKind>() - 1;

/// The index of a part.
///
/// # Invariants
///
/// The index is less than [`PARTS`].
#[derive(Clone, Copy)]
pub(crate) struct PartOf(usize);

const _: () = assert!(PARTS - 1 <= PART_BITS);

impl ChildList {
    /// Returns an initialiser of an empty list.
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

    /// Announces an entry, which then either [joins](Self::join) or is [given up](Self::give_up). A
    /// task that ends the children waits for that. Any context.
    pub(crate) fn announce(&self) -> PartOf {
        // INVARIANT: A remainder.
        let part = PartOf(num::index(CpuId::current().as_u32()) % PARTS);
        self.part(part).coming.fetch_add(1, Full);
        part
    }

    /// Takes back the announcement of an entry. Any context.
    pub(crate) fn give_up(&self, part: PartOf) {
        self.part(part).arrived();
    }

    /// Adds an entry that was announced for its part. Any context.
    ///
    /// # Safety
    ///
    /// The caller adds the entry once for each announcement. The entry doesn't move, and
    /// [leaves](Self::leave) before the child is dropped.
    pub(crate) unsafe fn join(&self, entry: &ChildEntry) {
        let part = self.part(entry.part());
        part.lists.with(|lists| {
            if entry.number.load(Relaxed) == 0 {
                let number = lists.joined.get().wrapping_add(1).max(1);
                lists.joined.set(number);
                entry.number.store(number, Relaxed);
                entry.since.set(seconds());
            }
            // SAFETY: The entry is in no list: it joins once. The lock is held. The entry stays where it
            // is until it leaves, and the mark is in the list.
            unsafe { entry.node.link_behind(&lists.mark.node) }
        });
        part.arrived();
    }

    /// Takes out an entry. Sleeps while the entry is being ended. If its kind has nothing to end:
    /// any context.
    ///
    /// # Safety
    ///
    /// The entry has joined this list, and not left it.
    pub(crate) unsafe fn leave(&self, entry: &ChildEntry) {
        let part = self.part(entry.part());
        part.lists.with(|lists| {
            while ptr::eq(lists.now.get(), entry) {
                part.changed.wait(lists);
            }
            // SAFETY: The entry has joined and not left, so it is in a list of this part. The lock
            // of the part is held.
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

    /// Returns words for an open child, if there is one. Any context.
    pub(crate) fn why_busy(&self) -> Option<&'static CStr> {
        self.parts.iter().find_map(|part| {
            part.lists.with(|lists| {
                // SAFETY: The lock is held. By the invariant of `Lists`, each node is that of an entry.
                unsafe {
                    Some(
                        ChildEntry::joined_from(lists.all.first())?
                            .as_ref()
                            .kind()
                            .open,
                    )
                }
            })
        })
    }

    /// Calls `each` with the listing entry of each child that stays in the list meanwhile, once. Those that join or leave
    /// meanwhile may be missing. `each` runs with a lock held and interrupts off, at most [`STEP`] times in a row. Any
    /// context.
    pub(crate) fn describe(&self, mut each: impl FnMut(kfi_helper_object)) {
        for part in &self.parts {
            // Everything before its node has been described.
            let here = ChildEntry::new(&PLACEHOLDER, PartOf(0));
            part.lists.with(|lists| {
                // SAFETY: The lock is held. The local variable doesn't move, and is unlinked below.
                unsafe { here.node.link(&lists.all) }
            });
            let mut step = || {
                let mut at = NonNull::from(&here.node);
                for _ in 0..STEP {
                    // SAFETY: The lock is held, `at` is in the list, and each node is that of an entry by the invariant
                    // of `Lists`. No entry leaves before the lock is free.
                    unsafe {
                        let Some(next) = at.as_ref().next() else {
                            here.node.unlink();
                            return false;
                        };
                        let entry = ChildEntry::of(next);
                        if entry.as_ref().has_joined() {
                            each(entry.as_ref().about(entry));
                        }
                        at = next;
                    }
                }
                // SAFETY: The lock is held, and `here` and `at` are different nodes in the list.
                unsafe {
                    here.node.unlink();
                    here.node.link_behind(at.as_ref());
                }
                true
            };
            while part.lists.with(|_| step()) {}
        }
    }

    /// Ends all children. Peers can't reach a region afterwards. A child stays open until its owner
    /// closes it, but does nothing any more. Providers call this when their device goes away, once
    /// no child can be opened any more. Sleeps until that is done. The callbacks that end a child
    /// must not call it.
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
            lists <- new_irq_lock!(
                Lists {
                    joined: Cell::new(0),
                    all: Head::new(),
                    mark: ChildEntry::new(&PLACEHOLDER, PartOf(0)),
                    now: Cell::new(ptr::null()),
                },
                c"kfabric_child_list"
            ),
            changed <- new_condvar!("kfabric_child_list"),
        })
        .pin_chain(|part| {
            part.lists.with(|lists| {
                // INVARIANT: The list has the mark, and no entry.
                // SAFETY: The lock is held. The mark and the head are fields of a pinned part.
                unsafe { lists.mark.node.link(&lists.all) }
            });
            Ok(())
        })
    }

    fn arrived(&self) {
        // Both accesses are fully ordered: either this task sees `awaited`, or the waiter sees the
        // new count.
        if self.coming.fetch_sub(1, Full) == 1 && self.awaited.load(Relaxed) {
            self.lists.with(|_| self.changed.notify_all());
        }
    }

    fn end(&self) {
        self.awaited.xchg(true, Full);
        while let Some((entry, end)) = self.next() {
            // SAFETY: `next` has returned the entry, which is in this part. It doesn't leave while
            // `now` names it.
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
            // An entry that was withdrawn may join again at any time.
            while self.coming.load(Relaxed) > 0 {
                self.changed.wait(lists);
            }
            // Entries keep their order, so that a task that describes them misses none.
            // SAFETY: The lock is held. By the invariant of `Lists`, the mark is in the list, and each node is that of an
            // entry. The mark is unlinked before it is linked again, and it is pinned.
            let (entry, end) = unsafe {
                let entry = ChildEntry::joined_from(lists.mark.node.next())?;
                lists.mark.node.unlink();
                lists.mark.node.link_behind(&entry.as_ref().node);
                (entry, entry.as_ref().kind().end)
            };
            if let Some(end) = end {
                // INVARIANT: The entry is in the list.
                lists.now.set(entry.as_ptr());
                return Some((entry, end));
            }
        })
    }
}

/// Returns the seconds since the machine was started. Any context.
pub(crate) fn seconds() -> u32 {
    // SAFETY: The function has no requirements.
    let seconds = unsafe { kernel::bindings::ktime_get_seconds() };
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

impl ChildEntry {
    /// Makes an entry for a part. It is in no list.
    pub(crate) fn new(kind: &'static ChildKind, PartOf(part): PartOf) -> Self {
        // INVARIANT: A part index fits into the low bits, as the assertion above has checked.
        Self {
            kind: ptr::from_ref(kind).map_addr(|address| address | part),
            node: Node::new(),
            number: Atomic::new(0),
            since: Cell::new(0),
        }
    }

    /// Returns the kind of the child.
    fn kind(&self) -> &'static ChildKind {
        // SAFETY: By the type invariant, the pointer without these bits points to a `ChildKind`,
        // which is static.
        unsafe { &*self.kind.map_addr(|address| address & !PART_BITS) }
    }

    /// Returns the part that the entry is for.
    pub(crate) fn part(&self) -> PartOf {
        // INVARIANT: `new` has put the index of a part there.
        PartOf(self.kind.addr() & PART_BITS)
    }

    /// Returns the number of the child, as a listing shows it, once the entry has joined. Any context.
    pub(crate) fn number(&self) -> u64 {
        let PartOf(part) = self.part();
        u64::from(self.number.load(Relaxed)) * num::widen(PARTS) + num::widen(part)
    }

    /// Returns the listing entry of the child.
    ///
    /// # Safety
    ///
    /// - `this` points to this entry, and to the child that it is a field of.
    /// - The caller holds the lock of the part, and the entry is in it.
    unsafe fn about(&self, this: NonNull<Self>) -> kfi_helper_object {
        let mut about = kfi_helper_object {
            id: self.number(),
            age: seconds().saturating_sub(self.since.get()),
            ..pin_init::zeroed()
        };
        // SAFETY: `this` is an entry in the list, whose lock is held.
        unsafe { (self.kind().describe)(this, &mut about) };
        about
    }

    /// Returns whether this is no placeholder. The caller holds the lock of the part, and the entry is in it.
    fn has_joined(&self) -> bool {
        self.number.load(Relaxed) != 0
    }

    /// Returns the entry of `node` or of the next node after it that is no placeholder.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of a part, and `node` is the node of an entry in its list.
    unsafe fn joined_from(mut node: Option<NonNull<Node>>) -> Option<NonNull<Self>> {
        loop {
            // SAFETY: `node` is the node of an entry in the list, whose lock is held.
            let (entry, next) = unsafe { (Self::of(node?), node?.as_ref().next()) };
            // SAFETY: The entry is in the list, whose lock is held.
            if unsafe { entry.as_ref() }.has_joined() {
                return Some(entry);
            }
            node = next;
        }
    }

    /// Returns the entry that has this node.
    ///
    /// # Safety
    ///
    /// `node` points to the node of an entry.
    unsafe fn of(node: NonNull<Node>) -> NonNull<Self> {
        // SAFETY: The caller promises that `node` is a field of an entry, and the address of an
        // entry is not null.
        unsafe { NonNull::new_unchecked(kernel::container_of!(node.as_ptr(), Self, node)) }
    }
}

#[kernel::macros::kunit_tests(kfabric_child_list)]
mod tests {
    use super::{
        ChildEntry,
        ChildKind,
        ChildList, //
    };
    use crate::{
        prelude::*,
        support::{
            num,
            workqueue::OwnedQueue, //
        }, //
    };
    use kernel::{
        sync::atomic::{
            Acquire,
            Release, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };
    use kfi_bindings::kfi_helper_object;

    static PLAIN: ChildKind = ChildKind {
        open: c"a plain thing is open",
        end: None,
        describe,
    };

    static ENDED: ChildKind = ChildKind {
        open: c"a thing with an end is open",
        end: Some(end),
        describe,
    };

    /// Something that is listed.
    #[pin_data]
    struct Thing {
        roster: Arc<ChildList>,
        entry: ChildEntry,
        /// How often it has begun to be ended.
        ended: Atomic<usize>,
        /// It takes a while to end it.
        is_slow: bool,
        /// That is done.
        done: Atomic<bool>,
    }

    unsafe fn end(entry: NonNull<ChildEntry>) {
        // SAFETY: All entries of these tests are those of things, and valid until they have left.
        let thing = unsafe { &*kernel::container_of!(entry.as_ptr(), Thing, entry) };
        thing.ended.fetch_add(1, Relaxed);
        if thing.is_slow {
            fsleep(Delta::from_millis(20));
        }
        thing.done.store(true, Release);
    }

    unsafe fn describe(entry: NonNull<ChildEntry>, about: &mut kfi_helper_object) {
        // SAFETY: All entries of these tests are those of things, and valid until they have left.
        let thing = unsafe { &*kernel::container_of!(entry.as_ptr(), Thing, entry) };
        about.length = 1 + num::widen(thing.ended());
    }

    impl Thing {
        fn join(
            roster: &Arc<ChildList>,
            kind: &'static ChildKind,
            is_slow: bool,
        ) -> Result<Arc<Self>> {
            let thing = Arc::pin_init(
                pin_init!(Self {
                    roster: roster.clone(),
                    entry: ChildEntry::new(kind, roster.announce()),
                    ended: Atomic::new(0),
                    is_slow,
                    done: Atomic::new(false),
                }),
                GFP_KERNEL,
            )?;
            // SAFETY: Pinned, and each test has it leave.
            unsafe { roster.join(&thing.entry) };
            Ok(thing)
        }

        fn leave(&self) {
            // SAFETY: It has joined, and leaves once.
            unsafe { self.roster.leave(&self.entry) };
        }

        fn try_withdraw(&self) -> bool {
            // SAFETY: The entry has joined, and not left.
            unsafe { self.roster.try_withdraw(&self.entry) }
        }

        fn try_leave(&self) -> bool {
            let withdrawn = self.try_withdraw();
            if withdrawn {
                self.roster.give_up(self.entry.part());
            }
            withdrawn
        }

        fn rejoin(&self) {
            // SAFETY: The entry was withdrawn. It is pinned, and each test has it leave.
            unsafe { self.roster.join(&self.entry) };
        }

        fn ended(&self) -> usize {
            self.ended.load(Relaxed)
        }
    }

    fn roster() -> Result<Arc<ChildList>> {
        Arc::pin_init(ChildList::new(), GFP_KERNEL)
    }

    #[test]
    fn says_what_is_open() -> Result {
        let roster = roster()?;
        let is = |open: Option<&CStr>| assert_eq!(roster.why_busy(), open);
        is(None);
        let plain = Thing::join(&roster, &PLAIN, false)?;
        is(Some(PLAIN.open));
        // Ended, it is still open.
        roster.end();
        is(Some(PLAIN.open));
        plain.leave();
        is(None);
        Ok(())
    }

    #[test]
    fn each_is_described_once() -> Result {
        let roster = roster()?;
        let things = [
            Thing::join(&roster, &PLAIN, false)?,
            Thing::join(&roster, &ENDED, false)?,
            Thing::join(&roster, &ENDED, false)?,
        ];
        // Ended children are described, too; those that have left are not.
        roster.end();
        let [plain, ended, left] = &things;
        left.leave();
        // A child that joins again keeps its number.
        assert!(plain.try_withdraw());
        let listed = || {
            let mut all = KVec::new();
            let mut room = KVec::<(u64, u64)>::with_capacity(4, GFP_KERNEL)?;
            roster.describe(|about| {
                let _ = room.push_within_capacity((about.id, about.length));
            });
            all.extend_from_slice(&room, GFP_KERNEL)?;
            Ok::<_, Error>(all)
        };
        let without = listed()?;
        plain.rejoin();
        let both = listed()?;
        assert_eq!((without.len(), both.len()), (1, 2));
        assert!(without.iter().all(|(id, length)| *id != 0 && *length == 2));
        assert!(both.contains(without.first().ok_or(EINVAL)?));
        assert!(both.iter().any(|(_, length)| *length == 1));
        let again = listed()?;
        assert_eq!(*both, *again);
        plain.leave();
        ended.leave();
        Ok(())
    }

    #[test]
    fn each_is_ended_once() -> Result {
        let roster = roster()?;
        let mut things = KVec::new();
        for _ in 0..5 {
            things.push(Thing::join(&roster, &ENDED, false)?, GFP_KERNEL)?;
            things.push(Thing::join(&roster, &PLAIN, false)?, GFP_KERNEL)?;
        }
        // The first, one from the middle, the last.
        for index in [0, 4, 9] {
            things.get(index).ok_or(EINVAL)?.leave();
        }
        roster.end();
        roster.end();
        for (index, thing) in things.iter().enumerate() {
            let has_end = index % 2 == 0 && index != 0 && index != 4;
            assert_eq!(thing.ended(), usize::from(has_end));
            if ![0, 4, 9].contains(&index) {
                thing.leave();
            }
        }
        assert_eq!(roster.why_busy(), None);
        // One that comes later is ended by the next.
        let late = Thing::join(&roster, &ENDED, false)?;
        roster.end();
        assert_eq!(late.ended(), 1);
        late.leave();
        Ok(())
    }

    /// Ends a roster from another thread, and says when that is done.
    fn end_later(queue: &OwnedQueue, roster: &Arc<ChildList>) -> Result<Arc<Atomic<bool>>> {
        let done = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let (roster, told) = (roster.clone(), done.clone());
        queue.try_spawn(GFP_KERNEL, move || {
            roster.end();
            told.store(true, Release);
        })?;
        Ok(done)
    }

    #[test]
    fn who_leaves_waits_for_its_end() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, true)?;
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        end_later(&queue, &roster)?;
        while thing.ended() == 0 {
            fsleep(Delta::from_millis(1));
        }
        // `try_leave()` fails while the entry is being ended. If it succeeds, the entry has been
        // ended.
        if !thing.try_leave() {
            thing.leave();
        }
        assert!(thing.done.load(Acquire));
        assert_eq!(roster.why_busy(), None);
        Ok(())
    }

    #[test]
    fn who_is_not_ended_leaves_at_once() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, false)?;
        assert!(thing.try_leave());
        roster.end();
        assert_eq!((thing.ended(), roster.why_busy()), (0, None));
        Ok(())
    }

    #[test]
    fn an_entry_that_is_withdrawn_is_ended_when_it_is_back() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, false)?;
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        assert!(thing.try_withdraw());
        let done = end_later(&queue, &roster)?;
        // Time enough for an end that doesn't wait.
        fsleep(Delta::from_millis(50));
        assert_eq!((thing.ended(), done.load(Acquire)), (0, false));
        thing.rejoin();
        queue.flush();
        assert_eq!((thing.ended(), done.load(Acquire)), (1, true));
        thing.leave();
        assert_eq!(roster.why_busy(), None);
        Ok(())
    }

    #[test]
    fn who_was_announced_is_waited_for() -> Result {
        let roster = roster()?;
        let (one, two) = (roster.announce(), roster.announce());
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        let done = end_later(&queue, &roster)?;
        fsleep(Delta::from_millis(20));
        roster.give_up(one);
        fsleep(Delta::from_millis(20));
        assert!(!done.load(Acquire));
        roster.give_up(two);
        drop(queue);
        assert!(done.load(Acquire));
        Ok(())
    }
}
