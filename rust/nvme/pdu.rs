// SPDX-License-Identifier: GPL-2.0

//! The driver's part of a request of the block layer.

use crate::{
    command::Command,
    data::DataList,
    prelude::*,
    state::PduState, //
};

/// The parts of a queue that a [`Transport`](crate::Transport) owns.
pub trait TagParts: Sized + Send + Sync + 'static {
    /// The memory of a command that is sent. Each tag has one as long as it exists, also over several
    /// connections.
    type Capsule: Send;

    /// The part of a tag besides the capsule, for example the region of a request's data.
    type Slot: Send;

    /// A connected queue. Dropping it may sleep. No event comes after that.
    type Queue: Send + Sync;
}

/// The transport's part of a tag.
pub(crate) struct Place<T: TagParts> {
    pub(crate) capsule: Option<T::Capsule>,
    pub(crate) slot: T::Slot,
}

/// The content of a response.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    /// Status and phase bit, as in the response.
    pub(crate) status: u16,
    pub(crate) result: u64,
}

impl Answer {
    /// The answer of a request without a response.
    pub(crate) const NONE: Self = Self {
        status: PATH_ERROR << 1,
        result: 0,
    };

    /// The answer of a request whose data a device keeps. Another attempt would have the same pages.
    pub(crate) const KEPT: Self = Self {
        status: KEPT << 1,
        result: 0,
    };
}

/// The status of a request that its host could not send (`NVME_SC_HOST_PATH_ERROR`).
const PATH_ERROR: u16 = 0x370;
/// The status of a request whose data a device keeps: `NVME_SC_READ_ERROR | NVME_STATUS_DNR`. An error of the
/// medium is not one of the path, so device-mapper's multipath doesn't repeat the request, either.
pub(crate) const KEPT: u16 = 0x4281;

/// The driver's part of a request.
///
/// The holder of the state's right uses `command`, `answer` and `place`: see [`PduState`].
#[repr(C)]
pub(crate) struct Pdu<T: TagParts> {
    /// First, since nvme-core finds it there.
    request: Opaque<b::nvme_request>,
    pub(crate) command: UnsafeCell<Command>,
    pub(crate) state: PduState,
    pub(crate) answer: UnsafeCell<Answer>,
    pub(crate) place: UnsafeCell<Place<T>>,
    pub(crate) data: Arc<DataList>,
}

impl<T: TagParts> Pdu<T> {
    /// The size of a pdu, for the tag set.
    pub(crate) const SIZE: u32 = {
        // The block layer puts it behind a request.
        assert!(align_of::<Self>() <= align_of::<bindings::request>());
        assert!(size_of::<Self>() < 1 << 16);
        size_of::<Self>() as u32
    };

    /// Returns the place of the pdu: behind the request (`blk_mq_rq_to_pdu()`).
    fn behind(rq: NonNull<bindings::request>) -> *mut Self {
        rq.as_ptr().wrapping_add(1).cast()
    }

    /// Returns the pdu of a request.
    ///
    /// # Safety
    ///
    /// The pdu must be initialised, and must stay while `'a` lasts.
    pub(crate) unsafe fn of<'a>(rq: NonNull<bindings::request>) -> &'a Self {
        // SAFETY: The caller promises that the pdu is initialised. Fields that change are cells.
        unsafe { &*Self::behind(rq) }
    }

    /// Initialises the pdu of a new request. May sleep.
    ///
    /// # Safety
    ///
    /// `rq` must be a new request of a tag set with pdus of this size. `ctrl` must be its
    /// controller, and exist as long.
    pub(crate) unsafe fn init(
        rq: NonNull<bindings::request>,
        ctrl: *mut b::nvme_ctrl,
        (capsule, slot): (T::Capsule, T::Slot),
        data: Arc<DataList>,
    ) {
        let pdu = Self::behind(rq);
        // SAFETY: All bits zero are a valid value of the type, which nvme-core relies on, too.
        let mut request: b::nvme_request = unsafe { core::mem::zeroed() };
        request.ctrl = ctrl;
        // SAFETY: The caller promises that there are `SIZE` bytes, which nobody uses yet.
        unsafe {
            request.cmd = (&raw mut (*pdu).command).cast();
            pdu.write(Self {
                request: Opaque::new(request),
                command: UnsafeCell::new(Command::zeroed()),
                state: PduState::new(),
                answer: UnsafeCell::new(Answer::NONE),
                place: UnsafeCell::new(Place {
                    capsule: Some(capsule),
                    slot,
                }),
                data,
            });
        }
    }

    /// Ends the transport's part of a request, and leaks its pages if they are lent. If it
    /// returns true, the caller must end the request with [`Answer::KEPT`]. Any context.
    #[must_use]
    pub(crate) fn end(&self) -> bool {
        let is_kept = self.data.leak();
        self.state.end();
        is_kept
    }

    /// Drops the transport's part of a request. May sleep.
    ///
    /// # Safety
    ///
    /// The pdu must be initialised. Nobody uses the request any more.
    pub(crate) unsafe fn exit(rq: NonNull<bindings::request>) {
        // SAFETY: The caller promises that the pdu is initialised and not used.
        unsafe { Self::behind(rq).drop_in_place() };
    }
}
