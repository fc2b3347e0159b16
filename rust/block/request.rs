// SPDX-License-Identifier: GPL-2.0

//! Requests, and the status that they end with.

use block_bindings as b;
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    bindings::{
        self,
        bio_vec, //
    },
    prelude::*, //
};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To have on the disk what was written before.
    Flush,
    /// To forget what is there.
    Discard,
    /// To write zeroes.
    WriteZeroes,
    /// Something else, which this crate doesn't know.
    Other,
}

/// A list of pieces of memory, with room for more.
#[derive(Default)]
pub struct Pieces(KVec<bio_vec>);

// SAFETY: A piece only names memory, and any thread may have the name.
unsafe impl Send for Pieces {}
// SAFETY: A shared list is only read, and a piece only names memory.
unsafe impl Sync for Pieces {}

impl Pieces {
    /// Makes an empty list with space for `count` pieces. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn with_capacity(count: usize) -> Result<Self> {
        Ok(Self(KVec::with_capacity(count, GFP_KERNEL)?))
    }

    /// Returns the pieces. Any context.
    pub fn as_slice(&self) -> &[bio_vec] {
        &self.0
    }
}

/// A request that is the driver's.
///
/// It is ended once: by [`end`](Self::end), or by being dropped, which is a failure, or it goes back to
/// be queued again. As long as it is there, so is its memory, and its disk.
///
/// # Examples
///
/// ```ignore
/// fn carry_out(&self, mut request: Request) {
///     let status = match request.op() {
///         Op::Read => self.read(&mut request),
///         Op::Write => self.write(&request),
///         _ => Status::NotSupported,
///     };
///     request.end(status);
/// }
/// ```
///
/// # Invariants
///
/// It points to a request that was started, and that nobody else will end.
pub struct Request(NonNull<bindings::request>);

// SAFETY: Any task may end a request, in any context.
unsafe impl Send for Request {}
// SAFETY: A shared reference only reads fields that stay the same until the end.
unsafe impl Sync for Request {}

impl Request {
    /// Starts a request.
    ///
    /// # Safety
    ///
    /// The block layer has queued `raw` with the driver. Nobody else starts or ends it.
    pub(crate) unsafe fn start(raw: NonNull<bindings::request>) -> Self {
        // SAFETY: The block layer has queued the request with the driver, and nobody has started or
        // ended it, as the caller promises.
        unsafe { bindings::blk_mq_start_request(raw.as_ptr()) };
        // INVARIANT: Just started.
        Self(raw)
    }

    /// Checks whether this is the request `raw`.
    pub(crate) fn is(&self, raw: NonNull<bindings::request>) -> bool {
        self.0 == raw
    }

    /// Gives it back without ending it.
    pub(crate) fn into_raw(self) -> NonNull<bindings::request> {
        ManuallyDrop::new(self).0
    }

    /// Returns what is asked for. Any context.
    pub fn op(&self) -> Op {
        match self.flags() & ((1 << bindings::REQ_OP_BITS) - 1) {
            bindings::req_op_REQ_OP_READ => Op::Read,
            bindings::req_op_REQ_OP_WRITE => Op::Write,
            bindings::req_op_REQ_OP_FLUSH => Op::Flush,
            bindings::req_op_REQ_OP_DISCARD => Op::Discard,
            bindings::req_op_REQ_OP_WRITE_ZEROES => Op::WriteZeroes,
            _ => Op::Other,
        }
    }

    /// Checks whether the written data must be on the disk when the request ends. Any context.
    pub fn is_fua(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_FUA) != 0
    }

    /// Checks whether the disk may free the space of zeroes that it has written. Any context.
    pub fn may_unmap(&self) -> bool {
        self.flags() & (1 << bindings::req_flag_bits___REQ_NOUNMAP) == 0
    }

    /// Returns where on the disk it begins, in sectors of 512 bytes. Any context.
    pub fn sector(&self) -> u64 {
        // SAFETY: By the type invariant; it doesn't change until the end.
        unsafe { (*self.0.as_ptr()).__sector }
    }

    /// Returns how many bytes it is about. Any context.
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the type invariant the request is ours; its length doesn't change until the end.
        unsafe { (*self.0.as_ptr()).__data_len }
    }

    /// Returns its number among those of its queue that are under way, from 0 and less than the depth of
    /// the tag set. Any context.
    pub fn tag(&self) -> u32 {
        // SAFETY: By the type invariant; one that was started has a tag until it has ended.
        u32::try_from(unsafe { (*self.0.as_ptr()).tag }).unwrap_or(0)
    }

    /// Returns the number of its queue in the tag set, from 0. Any context.
    pub fn queue(&self) -> u32 {
        // SAFETY: By the type invariant; one that was queued has a hardware context.
        unsafe { (*(*self.0.as_ptr()).mq_hctx).queue_num }
    }

    fn flags(&self) -> u32 {
        // SAFETY: By the type invariant; it doesn't change until the end.
        unsafe { (*self.0.as_ptr()).cmd_flags }
    }

    /// Lists its memory in `list`, instead of what was there. The pages stay where they are until the
    /// request has ended; what is to be read from the disk may be written there, and what is to be written
    /// to it may be read. Nothing is listed of one that has no memory. Any context; only allocates if the
    /// list is too short.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn pieces(&self, list: &mut Pieces) -> Result {
        let list = &mut list.0;
        loop {
            list.clear();
            let room = list.spare_capacity_mut();
            let space = u32::try_from(room.len())?;
            // SAFETY: By the type invariant, the request is started and not ended. `room` has space
            // for `space` entries.
            let count =
                unsafe { b::block_helper_bvecs(self.0.as_ptr(), room.as_mut_ptr().cast(), space) };
            let count = usize::try_from(count)?;
            if count <= list.capacity() {
                // SAFETY: As many were written, and there was room for them.
                unsafe { list.inc_len(count) };
                return Ok(());
            }
            list.reserve(count, GFP_NOWAIT)?;
        }
    }

    /// Copies from the memory of the request, which is to be written, until `to` is full. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are fewer bytes.
    pub fn copy_out(&self, to: &mut [u8]) -> Result {
        let len = u32::try_from(to.len())?;
        // SAFETY: By the type invariant, the request is started and not ended. `to` has `len`
        // bytes.
        let done =
            unsafe { b::block_helper_copy_out(self.0.as_ptr(), to.as_mut_ptr().cast(), len) };
        (done == len).then_some(()).ok_or(EINVAL)
    }

    /// Copies all of `from` to the memory of the request, which is to be read. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is less room, or it isn't one that reads.
    pub fn copy_in(&mut self, from: &[u8]) -> Result {
        if self.op() != Op::Read {
            return Err(EINVAL);
        }
        let len = u32::try_from(from.len())?;
        // SAFETY: By the type invariant, the request is started and not ended. `from` has `len`
        // bytes. Memory of requests that read may be written.
        let done = unsafe { b::block_helper_copy_in(self.0.as_ptr(), from.as_ptr().cast(), len) };
        (done == len).then_some(()).ok_or(EINVAL)
    }

    /// Ends it. Any context.
    pub fn end(self, status: Status) {
        // SAFETY: By the type invariant; this is the only one to end it.
        unsafe { bindings::blk_mq_end_request(self.into_raw().as_ptr(), status.raw()) };
    }

    /// Has it queued again, as soon as its queue isn't [quiet](crate::TagSet::quiesce). Any context.
    pub fn requeue(self) {
        // SAFETY: By the type invariant; from here on it isn't the driver's.
        unsafe { bindings::blk_mq_requeue_request(self.into_raw().as_ptr(), true) };
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody else ends it, and it isn't used any more.
        unsafe { bindings::blk_mq_end_request(self.0.as_ptr(), Status::Io.raw()) };
    }
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Well.
    Ok,
    /// The disk can't do that.
    NotSupported,
    /// It took too long.
    Timeout,
    /// No room is left on the disk.
    NoSpace,
    /// The way to the disk has failed; another one may do.
    Transport,
    /// The disk has failed for good.
    Target,
    /// Somebody else has reserved it.
    Reserved,
    /// The data can't be read, or written.
    Medium,
    /// The data and what protects them don't match.
    Protection,
    /// There was not enough memory.
    NoMemory,
    /// The disk is gone.
    Offline,
    /// The request makes no sense to the disk.
    Invalid,
    /// Anything else.
    Io,
}

impl Status {
    /// Returns the errno of the status.
    const fn errno(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::NotSupported => bindings::EOPNOTSUPP,
            Self::Timeout => bindings::ETIMEDOUT,
            Self::NoSpace => bindings::ENOSPC,
            Self::Transport => bindings::ENOLINK,
            Self::Target => bindings::EREMOTEIO,
            Self::Reserved => bindings::EBADE,
            Self::Medium => bindings::ENODATA,
            Self::Protection => bindings::EILSEQ,
            Self::NoMemory => bindings::ENOMEM,
            Self::Offline => bindings::ENODEV,
            Self::Invalid => bindings::EINVAL,
            Self::Io => bindings::EIO,
        }
    }

    /// Returns the status as the block layer has it.
    pub(crate) fn raw(self) -> bindings::blk_status_t {
        let errno = i32::try_from(self.errno()).unwrap_or(0);
        // SAFETY: Any number may be asked about.
        unsafe { bindings::errno_to_blk_status(-errno) }
    }
}
