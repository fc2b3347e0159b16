// SPDX-License-Identifier: GPL-2.0

//! The driver's part of a request of the block layer.

use crate::{
    command::Command,
    data::DataList,
    state::PduState,
    tag::TagParts, //
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::Arc, //
};
use nvme_bindings as b;

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
}

/// The status of a request that its host could not send (`NVME_SC_HOST_PATH_ERROR`).
const PATH_ERROR: u16 = 0x370;

/// The driver's part of a request.
///
/// The holder of the state's right uses `answer`, `command` and `place`: see [`PduState`].
#[repr(C)]
pub(crate) struct Pdu<T: TagParts> {
    /// First, since nvme-core finds it there.
    request: b::nvme_request,
    command: Command,
    state: PduState,
    answer: Answer,
    place: MaybeUninit<Place<T>>,
    data: MaybeUninit<Arc<DataList>>,
}

impl<T: TagParts> Pdu<T> {
    /// The size of a pdu, for the tag set.
    pub(crate) const SIZE: u32 = {
        // The block layer puts it behind a request.
        assert!(align_of::<Self>() <= align_of::<bindings::request>());
        assert!(size_of::<Self>() < 1 << 16);
        size_of::<Self>() as u32
    };

    /// Returns the pdu of a request. Its fields are valid if the request is.
    pub(crate) fn of(rq: NonNull<bindings::request>) -> NonNull<Self> {
        // The block layer allocates the pdu behind the request (`blk_mq_rq_to_pdu()`).
        // SAFETY: The result is at most one past the end of the request.
        unsafe { rq.add(1) }.cast()
    }

    /// Initialises the pdu of a new request. May sleep.
    ///
    /// # Safety
    ///
    /// `rq` is a new request of a tag set with pdus of this size. `ctrl` is its controller, and
    /// exists as long.
    pub(crate) unsafe fn init(
        rq: NonNull<bindings::request>,
        ctrl: *mut b::nvme_ctrl,
        (capsule, slot): (T::Capsule, T::Slot),
        data: Arc<DataList>,
    ) {
        let place = Place {
            capsule: Some(capsule),
            slot,
        };
        let pdu = Self::of(rq).as_ptr();
        // SAFETY: All bits zero are a valid value of the type, which nvme-core relies on, too.
        let mut request: b::nvme_request = unsafe { core::mem::zeroed() };
        request.ctrl = ctrl;
        request.cmd = Self::command(rq).as_ptr().cast();
        // SAFETY: The caller promises that there are `SIZE` bytes, which nobody uses yet.
        unsafe {
            pdu.write(Self {
                request,
                command: Command::zeroed(),
                state: PduState::new(),
                answer: Answer::NONE,
                place: MaybeUninit::new(place),
                data: MaybeUninit::new(data),
            })
        };
    }

    /// Drops the transport's part of a request. May sleep.
    ///
    /// # Safety
    ///
    /// The pdu was initialised. Nobody uses the request any more.
    pub(crate) unsafe fn exit(rq: NonNull<bindings::request>) {
        let pdu = Self::of(rq).as_ptr();
        // SAFETY: The caller promises that both are initialised and not used.
        unsafe {
            (*pdu).place.assume_init_drop();
            (*pdu).data.assume_init_drop();
        }
    }

    /// Returns the state of a request.
    ///
    /// # Safety
    ///
    /// The pdu is initialised, and stays while `'a` lasts.
    pub(crate) unsafe fn state<'a>(rq: NonNull<bindings::request>) -> &'a PduState {
        // SAFETY: The caller promises that the pdu is initialised. Only this field is borrowed.
        unsafe { &(*Self::of(rq).as_ptr()).state }
    }

    /// Returns the list of the data of a request.
    ///
    /// # Safety
    ///
    /// The pdu is initialised, and stays while `'a` lasts.
    pub(crate) unsafe fn data<'a>(rq: NonNull<bindings::request>) -> &'a Arc<DataList> {
        // SAFETY: The caller promises that the pdu is initialised. Only this field is borrowed.
        unsafe { (*Self::of(rq).as_ptr()).data.assume_init_ref() }
    }

    /// Returns the command of a request.
    pub(crate) fn command(rq: NonNull<bindings::request>) -> NonNull<Command> {
        let command = Self::of(rq)
            .as_ptr()
            .wrapping_byte_add(core::mem::offset_of!(Self, command));
        // SAFETY: The offset of a field does not make a pointer null.
        unsafe { NonNull::new_unchecked(command.cast()) }
    }

    /// Returns the answer of a request.
    pub(crate) fn answer(rq: NonNull<bindings::request>) -> NonNull<Answer> {
        let answer = Self::of(rq)
            .as_ptr()
            .wrapping_byte_add(core::mem::offset_of!(Self, answer));
        // SAFETY: The offset of a field does not make a pointer null.
        unsafe { NonNull::new_unchecked(answer.cast()) }
    }

    /// Returns the transport's part of a request.
    pub(crate) fn place(rq: NonNull<bindings::request>) -> NonNull<Place<T>> {
        let place = Self::of(rq)
            .as_ptr()
            .wrapping_byte_add(core::mem::offset_of!(Self, place));
        // SAFETY: The offset of a field does not make a pointer null.
        unsafe { NonNull::new_unchecked(place.cast()) }
    }
}
