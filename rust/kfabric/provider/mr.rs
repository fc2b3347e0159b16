// SPDX-License-Identifier: GPL-2.0

//! Regions of a provider. The core keeps a small one in the region's own object ([`ProviderMr`]).

use crate::{
    prelude::*,
    provider::{
        cntr::CntrCore,
        ep::EpCore, //
    },
    region::{
        rawkey::RemotePiece,
        request::MrRequest, //
    }, //
};
use core::{
    any::Any,
    cell::UnsafeCell,
    mem::MaybeUninit,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

/// A region: created disabled, enabled at most once, closed once, then dropped.
///
/// The core makes these calls one at a time and in that order, so there are no states to check.
/// May be called by different threads.
pub trait MrOps: Any + Send + Sync {
    /// Registers the region with the device. Peers with the key can access the region after the return.
    ///
    /// After an error, peers can't access the region. After `EAGAIN`, the core may call this again. After any other error,
    /// the core closes the region next. If that fails, too, the caller gets `ENOTRECOVERABLE`, or the error of
    /// [`close`](Self::close).
    ///
    /// May sleep, except if the region is bound to a connected endpoint and is one region of the device: then any context.
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal>;

    /// Returns the pieces of an enabled region, in order, each with its own key. Most regions have one piece. The first
    /// piece has the key and the base that [`enable`](Self::enable) returned. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: the device is removed.
    /// - `EIO`: no peer can access the region any more.
    /// - `ENOMEM`
    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal>;

    /// Replaces the pages of an enabled region (`kfi_mr_refresh()`). `request` describes the whole region, with the same
    /// addresses, lengths and rights. Key and base stay the same. May sleep.
    ///
    /// After an error, either the region is unchanged, or no peer can access it any more. `ENOTRECOVERABLE` means that the
    /// device keeps the region: the consumer must never free the old or the new memory, and the close fails.
    fn refresh(&mut self, _request: &MrRequest<'_>) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        ))
    }

    /// Deregisters the region, because the device is removed ([`ChildList::end`](crate::ChildList::end)) or the region's
    /// endpoint is disconnected. [`close`](Self::close) follows and returns the error, if there is one. The core may call
    /// this more than once, also for a region that is not enabled, but never during [`enable`](Self::enable). May sleep.
    fn end(&mut self) {}

    /// Deregisters the region. On success, no peer can access the memory. The core calls this once, last, also for a
    /// region that is not enabled. May sleep.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device keeps the region. The consumer must never free its memory.
    fn close(&mut self) -> Result<(), Refusal>;

    /// Closes an enabled region if that needs no wait, and returns whether it did. If it didn't, the core calls
    /// [`close`](Self::close) next, or this again. Any context.
    fn close_now(&mut self) -> bool {
        false
    }

    /// Returns `self` as [`Any`], for calls of the provider's domain with several regions. Any context.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// An entry of a batch of regions that the provider enables ([`DomainOps::enable_many`](super::DomainOps::enable_many)) or
/// closes ([`DomainOps::close_many`](super::DomainOps::close_many)).
pub struct BatchEntry<'a, T> {
    /// The region.
    pub mr: &'a mut dyn MrOps,
    /// The bindings of a region that is enabled.
    pub bindings: &'a Bindings,
    /// The provider's answer: the result that [`MrOps::enable`] or [`MrOps::close`] would have.
    pub done: &'a mut Option<Result<T, Refusal>>,
}

/// The bindings of a region.
pub struct Bindings {
    /// The counter of writes of peers to the region. A closed counter ignores them.
    pub counter: Option<Arc<CntrCore>>,
    /// The endpoint through which alone peers reach the region (`KFI_MR_ENDPOINT`), as long as it
    /// is open.
    pub endpoint: Option<Arc<EpCore>>,
    /// Something that is posted on the endpoint follows at once (`KFI_MORE`).
    pub more: bool,
}

impl Bindings {
    /// No bindings.
    pub const NONE: Self = Self {
        counter: None,
        endpoint: None,
        more: false,
    };
}

/// How peers reach a region.
pub struct Keys {
    /// The key that a peer needs (`kfi_mr_key`).
    pub key: u64,
    /// The address of the region's first byte for a peer (`kfid_mr.iova`).
    pub base: u64,
    /// The local descriptor (`kfi_mr_desc`), meaningful to the provider.
    pub desc: usize,
    /// It is one region to the device, and not several (`KFI_MR_RAW`).
    pub whole: bool,
}

/// The size, in bytes, of what is kept in the region's object.
pub const PART_SIZE: usize = size_of::<Room>();

/// Room for a small part, or for a pointer to another.
type Room = [MaybeUninit<usize>; WORDS];

const WORDS: usize = 5;

/// A provider's part of a region.
///
/// # Invariants
///
/// `room` has a value of the type that `table` was made for.
pub struct ProviderMr {
    // A part may have something that changes by a shared reference.
    room: UnsafeCell<Room>,
    table: &'static Table,
}

// SAFETY: A shared reference gives only a shared reference to the part, and each `MrOps` is `Sync`.
unsafe impl Sync for ProviderMr {}

/// The functions for a value in a room.
struct Table {
    /// Returns the part that is the value, or that the value points to.
    ///
    /// # Safety
    ///
    /// - The room has a value of the type of the table.
    /// - The caller uses the part only as it may use the room.
    get: unsafe fn(*mut Room) -> *mut dyn MrOps,
    /// Drops the value.
    ///
    /// # Safety
    ///
    /// The room has a value of the type of the table, which no one uses after the call.
    drop: unsafe fn(*mut Room),
}

/// The tables for parts of one type.
struct Of<T>(PhantomData<T>);

impl<T: MrOps> Of<T> {
    /// Of a value in place.
    const IN_PLACE: Table = Table {
        get: Self::in_place,
        drop: Self::drop_in_place,
    };

    /// Of a value in a box, to which a pointer is there.
    const BOXED: Table = Table {
        get: Self::boxed,
        drop: Self::drop_boxed,
    };

    fn in_place(room: *mut Room) -> *mut dyn MrOps {
        room.cast::<T>()
    }

    /// Drops a value in place.
    ///
    /// # Safety
    ///
    /// `room` has a `T`, which no one uses after the call.
    unsafe fn drop_in_place(room: *mut Room) {
        // SAFETY: `room` has a `T`, which no one uses after the call.
        unsafe { ptr::drop_in_place(room.cast::<T>()) }
    }

    /// Returns the part in a box.
    ///
    /// # Safety
    ///
    /// `room` has a pointer to a `T`.
    unsafe fn boxed(room: *mut Room) -> *mut dyn MrOps {
        // SAFETY: `room` has a pointer to a `T`.
        unsafe { room.cast::<*mut T>().read() }
    }

    /// Drops a box.
    ///
    /// # Safety
    ///
    /// `room` has a pointer from a `KBox<T>`, which no one uses after the call.
    unsafe fn drop_boxed(room: *mut Room) {
        // SAFETY: `room` has a pointer from a `KBox<T>`, which no one uses after the call.
        drop(unsafe { KBox::from_raw(room.cast::<*mut T>().read()) })
    }
}

impl ProviderMr {
    /// Stores a part of at most [`PART_SIZE`] bytes. Any context.
    #[inline]
    pub fn new<T: MrOps>(part: T) -> Self {
        const {
            assert!(size_of::<T>() <= PART_SIZE && align_of::<T>() <= align_of::<Room>());
        }
        // SAFETY: The assertion checks that `T` fits, and the table is for a `T` in place.
        unsafe { Self::holding(part, const { &Of::<T>::IN_PLACE }) }
    }

    /// Stores a part of any size. Any context.
    pub fn boxed<T: MrOps>(part: KBox<T>) -> Self {
        // SAFETY: A pointer fits, and the table is for a pointer from a `KBox<T>`.
        unsafe { Self::holding(KBox::into_raw(part), const { &Of::<T>::BOXED }) }
    }

    /// Stores a value.
    ///
    /// # Safety
    ///
    /// - `V` fits into a [`Room`].
    /// - `table` is for `V`.
    unsafe fn holding<V>(value: V, table: &'static Table) -> Self {
        let room = UnsafeCell::new([MaybeUninit::uninit(); WORDS]);
        // SAFETY: `V` fits into the room.
        unsafe { room.get().cast::<V>().write(value) };
        // INVARIANT: `room` has the value that `table` is for.
        Self { room, table }
    }
}

impl Deref for ProviderMr {
    type Target = dyn MrOps;

    fn deref(&self) -> &dyn MrOps {
        // SAFETY: `room` has a value of the type of `table`, and `self` is borrowed.
        unsafe { &*(self.table.get)(self.room.get()) }
    }
}

impl DerefMut for ProviderMr {
    fn deref_mut(&mut self) -> &mut dyn MrOps {
        // SAFETY: `room` has a value of the type of `table`, and `self` is mutably borrowed.
        unsafe { &mut *(self.table.get)(self.room.get()) }
    }
}

impl Drop for ProviderMr {
    fn drop(&mut self) {
        // SAFETY: `room` has a value of the type of `table`, which no one uses after this.
        unsafe { (self.table.drop)(self.room.get()) };
    }
}

#[kernel::macros::kunit_tests(kfabric_part)]
mod tests {
    use super::*;
    use crate::{
        provider::{
            Bindings,
            Keys, //
        },
        region::rawkey::RemotePiece, //
    };
    use core::any::Any;

    /// Is closed `N` words long, and counts that and its end.
    struct Words<const N: usize> {
        words: [usize; N],
        ended: Arc<Atomic<usize>>,
    }

    impl<const N: usize> Words<N> {
        fn new(ended: &Arc<Atomic<usize>>) -> Self {
            Self {
                words: core::array::from_fn(|i| i),
                ended: ended.clone(),
            }
        }
    }

    impl<const N: usize> MrOps for Words<N> {
        fn enable(&mut self, _bindings: &Bindings) -> Result<Keys, Refusal> {
            Err(Errno::ENOSYS.into())
        }

        fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
            let mut pieces = KVec::new();
            for &word in &self.words {
                let piece = RemotePiece {
                    key: u64::try_from(word).map_err(|_| Errno::EINVAL)?,
                    base: 0,
                    len: 1,
                };
                pieces.push(piece, GFP_KERNEL)?;
            }
            Ok(pieces)
        }

        fn close(&mut self) -> Result<(), Refusal> {
            self.words = [7; N];
            Ok(())
        }

        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
    }

    impl<const N: usize> Drop for Words<N> {
        fn drop(&mut self) {
            self.ended.fetch_add(1, Relaxed);
        }
    }

    fn keys(part: &ProviderMr) -> Result<KVec<u64>> {
        let mut keys = KVec::new();
        for piece in part.pieces().map_err(|_| EINVAL)? {
            keys.push(piece.key, GFP_KERNEL)?;
        }
        Ok(keys)
    }

    #[test]
    fn a_part_is_what_was_put_there_wherever_it_goes() -> Result {
        let ended = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let small = ProviderMr::new(Words::<4>::new(&ended));
        let large = ProviderMr::boxed(KBox::new(Words::<9>::new(&ended), GFP_KERNEL)?);
        let mut moved = KVec::new();
        for part in [small, large] {
            moved.push(part, GFP_KERNEL)?;
        }
        assert!(keys(&moved[0])?.iter().copied().eq(0..4));
        assert!(keys(&moved[1])?.iter().copied().eq(0..9));
        for part in &mut moved {
            assert!(part.close().is_ok());
            assert!(keys(part)?.iter().all(|&key| key == 7));
        }
        assert!(moved[0].as_any().downcast_mut::<Words<4>>().is_some());
        assert!(moved[1].as_any().downcast_mut::<Words<9>>().is_some());
        assert!(moved[1].as_any().downcast_mut::<Words<4>>().is_none());
        assert_eq!(ended.load(Relaxed), 0);
        assert!(moved.pop().is_some());
        assert_eq!(ended.load(Relaxed), 1);
        drop(moved);
        assert_eq!(ended.load(Relaxed), 2);
        Ok(())
    }
}
