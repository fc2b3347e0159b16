// SPDX-License-Identifier: GPL-2.0

//! The entries of an event queue, and the bounded FIFO of unread ones.

use crate::object::{
    info::InfoChain,
    prelude::*, //
};
use core::mem::{
    take,
    ManuallyDrop, //
};

/// A bounded FIFO that reports lost entries at their position.
///
/// An entry is lost if the ring is full. The reader gets the entries before it, then `EOVERRUN` once, then
/// the later entries.
///
/// The slots are linked, so removing any entry takes constant time.
///
/// # Invariants
///
/// - The slots with an entry are linked from `first` by `after`, and from `last` by `before`.
/// - The slots without an entry are linked from `free` by `after`.
pub(super) struct EqRing<T> {
    slots: KVVec<Slot<T>>,
    first: Link,
    last: Link,
    free: Link,
    /// Entries before the first one were lost.
    lost: bool,
    /// The number of entries ever pushed. It never wraps.
    pushed: u64,
    /// The number of slots that were accessed.
    #[cfg(CONFIG_KUNIT = "y")]
    looked_at: usize,
}

/// The index of a slot.
type Link = Option<usize>;

struct Slot<T> {
    entry: Option<T>,
    before: Link,
    after: Link,
    /// The sequence number of its entry, or of its last one.
    number: u64,
    /// Entries after this one were lost.
    lost_next: bool,
}

/// The position of an entry that is unread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EqPosition {
    slot: usize,
    number: u64,
}

impl<T> EqRing<T> {
    /// Creates a ring of `size` entries, or of one entry if `size` is 0. May sleep.
    pub(super) fn new(size: usize) -> Result<Self, AllocError> {
        let size = size.max(1);
        let mut slots = KVVec::with_capacity(size, GFP_KERNEL)?;
        for index in 0..size {
            let slot = Slot {
                entry: None,
                before: None,
                after: Some(index + 1).filter(|&next| next < size),
                number: 0,
                lost_next: false,
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        // INVARIANT: All slots are free, and linked from the first one.
        Ok(Self {
            slots,
            first: None,
            last: None,
            free: Some(0),
            lost: false,
            pushed: 0,
            #[cfg(CONFIG_KUNIT = "y")]
            looked_at: 0,
        })
    }

    /// Creates a ring without slots.
    pub(super) const fn without_room() -> Self {
        // INVARIANT: There are no slots.
        Self {
            slots: KVVec::new(),
            first: None,
            last: None,
            free: None,
            lost: false,
            pushed: 0,
            #[cfg(CONFIG_KUNIT = "y")]
            looked_at: 0,
        }
    }

    fn slot(&mut self, link: Link) -> Option<&mut Slot<T>> {
        #[cfg(CONFIG_KUNIT = "y")]
        {
            self.looked_at += 1;
        }
        self.slots.get_mut(link?)
    }

    /// Appends an entry. Returns `None` if the ring is full. Any context.
    pub(super) fn try_push(&mut self, entry: T) -> Option<EqPosition> {
        let (at, last, number) = (self.free, self.last, self.pushed);
        let slot = self.slot(at)?;
        let free = slot.after;
        *slot = Slot {
            entry: Some(entry),
            before: last,
            after: None,
            number,
            lost_next: false,
        };
        // INVARIANT: The first free slot becomes the last slot with an entry.
        match self.slot(last) {
            Some(last) => last.after = at,
            None => self.first = at,
        }
        self.last = at;
        self.free = free;
        self.pushed += 1;
        at.map(|slot| EqPosition { slot, number })
    }

    /// Appends an entry. If the ring is full, the entry is lost and the reader gets `EOVERRUN`. Any context.
    pub(super) fn push(&mut self, entry: T) -> Option<EqPosition> {
        let place = self.try_push(entry);
        if place.is_none() {
            let last = self.last;
            if let Some(last) = self.slot(last) {
                last.lost_next = true;
            }
        }
        place
    }

    /// Returns whether there is nothing to read. Any context.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && !self.lost
    }

    /// Returns the first entry. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the ring is empty.
    /// - `EOVERRUN`: entries were lost at this position.
    pub(super) fn first(&self) -> Result<&T, Errno> {
        if self.lost {
            return Err(Errno::EOVERRUN);
        }
        match self.first.and_then(|first| self.slots.get(first)) {
            Some(Slot {
                entry: Some(entry), ..
            }) => Ok(entry),
            _ => Err(Errno::EAGAIN),
        }
    }

    /// Removes the first entry or loss, and returns the entry. Any context.
    pub(super) fn advance(&mut self) -> Option<T> {
        match take(&mut self.lost) {
            true => None,
            false => self.take(self.first),
        }
    }

    /// Removes all entries for which `goes` returns true. Any context.
    pub(super) fn remove_if(&mut self, mut goes: impl FnMut(&T) -> bool) {
        let mut at = self.first;
        while let Some(slot) = at.and_then(|at| self.slots.get(at)) {
            let here = core::mem::replace(&mut at, slot.after);
            if slot.entry.as_ref().is_some_and(&mut goes) {
                self.take(here);
            }
        }
    }

    /// Removes an entry, unless it was read. Any context.
    pub(super) fn remove(&mut self, place: EqPosition) {
        let at = Some(place.slot);
        if self
            .slot(at)
            .is_some_and(|slot| slot.number == place.number)
        {
            self.take(at);
        }
    }

    /// Removes the entry of a slot. A loss after the entry moves before the next one.
    fn take(&mut self, at: Link) -> Option<T> {
        let free = self.free;
        let slot = self.slot(at)?;
        let entry = slot.entry.take()?;
        let (before, after, lost) = (slot.before, slot.after, slot.lost_next);
        slot.after = free;
        // INVARIANT: The two neighbours are linked to each other, and the slot is free.
        self.free = at;
        match self.slot(before) {
            Some(before) => {
                before.after = after;
                before.lost_next |= lost;
            }
            None => {
                self.first = after;
                self.lost |= lost;
            }
        }
        match self.slot(after) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
        Some(entry)
    }
}

/// The longest structure that a consumer can write, in bytes.
pub(super) const ENTRY_MAX: usize = crate::support::num::index(c::KFI_EQ_ENTRY_MAX);

/// The private data of a peer.
pub(super) type PeerData = Option<Arc<KVec<u8>>>;

/// An event.
pub(super) struct EqEvent {
    pub(super) number: u32,
    body: Body,
}

enum Body {
    /// An event of the core.
    Entry(c::kfi_eq_entry),
    /// An event about a connection.
    Connection {
        head: c::kfi_eq_cm_entry,
        /// The info that `head` points to. A reader takes it over.
        info: InfoChain,
        data: PeerData,
    },
    /// An event that a consumer wrote.
    Written { len: usize, bytes: [u8; ENTRY_MAX] },
}

// SAFETY: The pointers are passed to the reader, and never dereferenced here.
unsafe impl Send for EqEvent {}

impl EqEvent {
    /// Creates an event of the core.
    pub(super) fn new(number: u32, fid: *mut kfid, context: *mut c_void, data: u64) -> Self {
        Self {
            number,
            body: Body::Entry(c::kfi_eq_entry { fid, context, data }),
        }
    }

    /// Creates an event about a connection. A connection request has an info for the reader.
    pub(super) fn connection(number: u32, fid: *mut kfid, info: InfoChain, data: PeerData) -> Self {
        let head = c::kfi_eq_cm_entry {
            fid,
            info: info.as_ptr(),
            data: Default::default(),
        };
        let body = Body::Connection { head, info, data };
        Self { number, body }
    }

    /// Returns whether the event is about this object.
    pub(super) fn is_about(&self, fid: *mut kfid) -> bool {
        match &self.body {
            Body::Entry(entry) => ptr::eq(entry.fid, fid),
            Body::Connection { head, .. } => ptr::eq(head.fid, fid),
            Body::Written { .. } => false,
        }
    }

    /// Returns the handle of the connection request in the event, if there is one.
    pub(super) fn request(&mut self) -> Option<*mut kfid> {
        match &mut self.body {
            Body::Connection { info, .. } => Some(info.fields_mut()?.handle),
            _ => None,
        }
    }

    /// Releases the info to the reader, who frees it.
    pub(super) fn given(self) {
        if let Body::Connection { info, .. } = self.body {
            let _readers = ManuallyDrop::new(info);
        }
    }

    /// Creates an event with a copy of a consumer's bytes. Returns `None` if `len` is 0 or more than
    /// [`ENTRY_MAX`].
    ///
    /// # Safety
    ///
    /// `buf` is valid for reads of `len` bytes.
    pub(super) unsafe fn written(number: u32, buf: *const u8, len: usize) -> Option<Self> {
        let mut bytes = [0; ENTRY_MAX];
        if len == 0 || len > bytes.len() {
            return None;
        }
        // SAFETY: `buf` is valid for reads of `len` bytes, and `bytes` has at least as many.
        unsafe { ptr::copy_nonoverlapping(buf, bytes.as_mut_ptr(), len) };
        let body = Body::Written { len, bytes };
        Some(Self { number, body })
    }

    /// Returns the address and the length of the C structure of the event.
    pub(super) fn bytes(&self) -> (*const u8, usize) {
        match &self.body {
            Body::Entry(entry) => (ptr::from_ref(entry).cast(), size_of_val(entry)),
            Body::Connection { head, .. } => (ptr::from_ref(head).cast(), size_of_val(head)),
            Body::Written { len, bytes } => (bytes.as_ptr(), *len),
        }
    }

    /// Returns the peer's data, which follows the structure.
    pub(super) fn more(&self) -> &[u8] {
        match &self.body {
            Body::Connection {
                data: Some(data), ..
            } => data,
            _ => &[],
        }
    }
}

/// An error event.
#[derive(Clone)]
pub(super) struct EqFailure {
    pub(super) fid: *mut kfid,
    pub(super) context: *mut c_void,
    /// The positive errno.
    pub(super) errno: c_int,
    pub(super) prov_errno: c_int,
    pub(super) data: PeerData,
}

// SAFETY: The pointers are passed to the reader, and never dereferenced here.
unsafe impl Send for EqFailure {}

impl EqFailure {
    /// Returns the C structure of the event. Its data stays valid while `self` or a clone exists.
    pub(super) fn entry(&self) -> c::kfi_eq_err_entry {
        let mut entry = c::kfi_eq_err_entry {
            fid: self.fid,
            context: self.context,
            err: self.errno,
            prov_errno: self.prov_errno,
            ..pin_init::zeroed()
        };
        if let Some(data) = &self.data {
            entry.err_data = data.as_ptr().cast_mut().cast();
            entry.err_data_size = data.len();
        }
        entry
    }
}

#[kernel::macros::kunit_tests(kfabric_eq_ring)]
mod tests {
    use super::*;

    /// Reads everything; `None` stands for what was lost.
    fn drain(ring: &mut EqRing<u32>) -> Result<KVec<Option<u32>>> {
        let mut all = KVec::new();
        loop {
            match ring.first() {
                Err(Errno::EAGAIN) => return Ok(all),
                Err(_) => all.push(None, GFP_KERNEL)?,
                Ok(entry) => all.push(Some(*entry), GFP_KERNEL)?,
            }
            ring.advance();
        }
    }

    #[test]
    fn in_order_and_round_and_round() -> Result {
        let mut ring = EqRing::new(3)?;
        for start in 0..10 {
            ring.push(start);
            ring.push(start + 1);
            assert!(!ring.is_empty());
            assert_eq!(&*drain(&mut ring)?, &[Some(start), Some(start + 1)]);
            assert!(ring.is_empty());
        }
        Ok(())
    }

    #[test]
    fn what_is_lost_is_told_where_it_was() -> Result {
        let mut ring = EqRing::new(2)?;
        for entry in 1..=4 {
            ring.push(entry);
        }
        ring.advance();
        ring.push(5);
        ring.push(6);
        let all = [Some(2), None, Some(5), None];
        assert_eq!(&*drain(&mut ring)?, &all);
        ring.push(7);
        assert_eq!(&*drain(&mut ring)?, &[Some(7)]);
        Ok(())
    }

    #[test]
    fn a_refused_entry_is_not_lost() -> Result {
        let mut ring = EqRing::new(1)?;
        assert!(ring.try_push(1).is_some());
        assert!(ring.try_push(2).is_none());
        assert_eq!(&*drain(&mut ring)?, &[Some(1)]);
        Ok(())
    }

    #[test]
    fn removal_keeps_the_order_and_makes_room() -> Result {
        let mut ring = EqRing::new(4)?;
        for entry in 0..3 {
            ring.push(entry);
            ring.advance();
        }
        let mut places = KVec::new();
        for entry in 1..=5 {
            places.push(ring.push(entry), GFP_KERNEL)?;
        }
        for place in places.iter().skip(1).step_by(2).flatten() {
            ring.remove(*place);
        }
        ring.push(6);
        ring.push(7);
        ring.push(8);
        let all = [Some(1), Some(3), None, Some(6), Some(7), None];
        assert_eq!(&*drain(&mut ring)?, &all);
        Ok(())
    }

    #[test]
    fn removal_never_hides_a_loss() -> Result {
        let mut ring = EqRing::new(1)?;
        let place = ring.push(1).ok_or(EINVAL)?;
        ring.push(2);
        ring.remove(place);
        assert!(!ring.is_empty());
        ring.push(3);
        assert_eq!(&*drain(&mut ring)?, &[None, Some(3)]);
        Ok(())
    }

    #[test]
    fn what_was_read_is_not_removed_again() -> Result {
        let mut ring = EqRing::new(2)?;
        let place = ring.push(1).ok_or(EINVAL)?;
        ring.advance();
        ring.remove(place);
        // In the slot of the first one.
        ring.push(2);
        ring.push(3);
        ring.remove(place);
        assert_eq!(&*drain(&mut ring)?, &[Some(2), Some(3)]);
        ring.remove(place);
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn removal_takes_no_longer_with_many() -> Result {
        const MANY: u32 = 1 << 13;
        let mut ring = EqRing::new(index(MANY))?;
        let mut places = KVVec::new();
        for entry in 0..MANY {
            places.push(ring.push(entry).ok_or(EINVAL)?, GFP_KERNEL)?;
        }
        // From both ends to the middle: neither is a short cut.
        let before = ring.looked_at;
        while let Some(last) = places.pop() {
            ring.remove(last);
            if let Some(middle) = places.get(places.len() / 2) {
                ring.remove(*middle);
            }
        }
        assert!(ring.is_empty());
        assert!(ring.looked_at - before <= 8 * index(MANY));
        Ok(())
    }
}
