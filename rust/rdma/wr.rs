// SPDX-License-Identifier: GPL-2.0

//! Work requests, and the owners of their memory.

use crate::{
    gather::Gather,
    prelude::*,
    segments::Segments, //
};
use rdma_bindings as b;

/// A request for a send queue that is not posted, with the owner of its memory.
///
/// # Invariants
///
/// The region of `wr` and the memory of `segments` are valid as long as `_kept`. If `wr` is inline,
/// only the driver reads the memory, while the request is being posted.
///
/// # Examples
///
/// ```ignore
/// // The region is lent: it can be had back when the request has ended.
/// let lender = InFlight::new(region)?;
/// let memory = Gather::part(lender.lend(), 0..4096)?;
/// let write = WorkRequest::write(memory, Remote { address, key }).fenced();
/// ```
pub struct WorkRequest<K> {
    wr: SendWr,
    segments: Segments,
    _kept: K,
}

/// The C structure of a send request: a `struct ib_send_wr`, or the structure that begins with one.
///
/// # Invariants
///
/// All bytes are initialized, so each member of the union has a valid value.
pub(crate) struct SendWr(b::rdma_helper_send_wr);

// SAFETY: Any task may post a request. The pointers are not dereferenced here.
unsafe impl Send for SendWr {}

// SAFETY: Shared references give access to numbers only.
unsafe impl Sync for SendWr {}

impl SendWr {
    /// Creates a request without memory.
    fn new(opcode: b::ib_wr_opcode) -> Self {
        // INVARIANT: The default is zero in all bytes.
        let mut this = Self(Default::default());
        this.send_mut().opcode = opcode;
        this
    }

    /// Creates a request that registers a region with its key.
    pub(crate) fn register<L: DmaList>(mr: &PreparedMr<L>) -> Self {
        let mut this = Self::new(b::ib_wr_opcode_IB_WR_REG_MR);
        // SAFETY: Each member of the union is valid by the type invariant.
        let reg = unsafe { this.0.reg.as_mut() };
        (reg.mr, reg.key) = (mr.as_raw(), mr.rkey());
        let access: u32 = mr.access().into();
        reg.access = c_int::from_ne_bytes(access.to_ne_bytes());
        this
    }

    /// Creates a request that invalidates the region with this key.
    pub(crate) fn invalidate(key: u32) -> Self {
        let mut this = Self::new(b::ib_wr_opcode_IB_WR_LOCAL_INV);
        this.send_mut().ex.bindgen_union_field = key;
        this
    }

    /// Creates a write of no bytes, which needs no key of the peer, like that of `__ib_drain_sq()`.
    pub(crate) fn empty() -> Self {
        Self::new(b::ib_wr_opcode_IB_WR_RDMA_WRITE)
    }

    /// Completes a request without memory for posting: signaled, not linked, with `cqe`. The result is valid until `self`
    /// is moved or dropped.
    pub(crate) fn arm(&mut self, cqe: *mut b::ib_cqe) -> NonNull<b::rdma_helper_send_wr> {
        let send = self.send_mut();
        send.next = null_mut();
        send.send_flags |= b::ib_send_flags_IB_SEND_SIGNALED;
        // SAFETY: `wr_cqe` is the member that kernel users set.
        *unsafe { send.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
        NonNull::from(&mut self.0)
    }

    fn send_mut(&mut self) -> &mut b::ib_send_wr {
        // SAFETY: Each member of the union is valid by the type invariant.
        unsafe { self.0.send.as_mut() }
    }

    fn rdma_mut(&mut self) -> &mut b::ib_rdma_wr {
        // SAFETY: Each member of the union is valid by the type invariant.
        unsafe { self.0.rdma.as_mut() }
    }

    fn atomic_mut(&mut self) -> &mut b::ib_atomic_wr {
        // SAFETY: Each member of the union is valid by the type invariant.
        unsafe { self.0.atomic.as_mut() }
    }
}

/// A request for a receive queue that is not posted, with the owner of its memory.
///
/// # Invariants
///
/// The memory of `segments` is valid as long as `_kept`.
pub struct Receive<K> {
    segments: Segments,
    _kept: K,
}

/// Memory of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Its address there.
    pub address: u64,
    /// The key for it.
    pub key: u32,
}

/// The flag of requests whose bytes the driver copies.
const INLINE: b::ib_send_flags = b::ib_send_flags_IB_SEND_INLINE;

/// The length of what atomic operations go to, in bytes; its address is a multiple of that.
const ATOMIC: u64 = 8;

impl<K> WorkRequest<K> {
    /// Creates a request without memory. `kept` owns the region that the request names, if any.
    pub(crate) fn new(wr: SendWr, kept: K) -> Self {
        // INVARIANT: There are no segments, and `kept` owns the region.
        Self {
            wr,
            segments: Segments::new(),
            _kept: kept,
        }
    }

    /// Sends memory to the peer.
    pub fn send(memory: Gather<K>) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_SEND, memory)
    }

    /// Sends memory to the peer, and a number that it gets with its completion.
    pub fn send_with_imm(memory: Gather<K>, imm: u32) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_SEND_WITH_IMM, memory).with_imm(imm)
    }

    /// Sends memory to the peer, whose device invalidates a key of its, and says so in the
    /// completion.
    pub fn send_with_inv(memory: Gather<K>, key: u32) -> Self {
        let mut this = Self::transfer(b::ib_wr_opcode_IB_WR_SEND_WITH_INV, memory);
        this.wr.send_mut().ex.bindgen_union_field = key;
        this
    }

    /// Writes memory to the peer's.
    pub fn write(memory: Gather<K>, to: Remote) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_WRITE, memory).at(to)
    }

    /// Writes memory to the peer's; a receive of the peer completes then, with a number.
    pub fn write_with_imm(memory: Gather<K>, to: Remote, imm: u32) -> Self {
        let this = Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM, memory);
        this.at(to).with_imm(imm)
    }

    /// Reads the peer's memory.
    ///
    /// # Errors
    ///
    /// `EACCES` if the device may not write to the memory that is read to.
    pub fn read(memory: Gather<K>, from: Remote) -> Result<Self> {
        check_written(&memory)?;
        Ok(Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_READ, memory).at(from))
    }

    /// Reads the peer's memory into `segments` of memory that `kept` keeps. The device may write there.
    pub(crate) fn read_into(kept: K, segments: Segments, from: Remote) -> Self {
        // INVARIANT: `kept` owns the memory of `segments`: only `Sink` calls this, with its own
        // segments.
        Self {
            wr: SendWr::new(b::ib_wr_opcode_IB_WR_RDMA_READ),
            segments,
            _kept: kept,
        }
        .at(from)
    }

    /// Sets 8 bytes of the peer's, in the peer's order, if they are as expected, at once. The
    /// memory gets what they were before.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if either memory isn't 8 bytes, the peer's aligned.
    /// - `EACCES` if the device may not write to the memory.
    pub fn compare_and_swap(
        memory: Gather<K>,
        at: Remote,
        expected: u64,
        new: u64,
    ) -> Result<Self> {
        let opcode = b::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP;
        let mut this = Self::atomic(opcode, memory, at)?;
        let wr = this.wr.atomic_mut();
        (wr.compare_add, wr.swap) = (expected, new);
        Ok(this)
    }

    /// Adds to 8 bytes of the peer's, in the peer's order, at once. The memory gets what they were
    /// before.
    ///
    /// # Errors
    ///
    /// The errors of [`WorkRequest::compare_and_swap`].
    pub fn fetch_and_add(memory: Gather<K>, at: Remote, by: u64) -> Result<Self> {
        let opcode = b::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        let mut this = Self::atomic(opcode, memory, at)?;
        this.wr.atomic_mut().compare_add = by;
        Ok(this)
    }

    /// Lets it wait until all reads and atomic operations before it have completed.
    pub fn fenced(mut self) -> Self {
        self.fence();
        self
    }

    /// Lets it wait like [`fenced`](Self::fenced).
    pub fn fence(&mut self) {
        self.wr.send_mut().send_flags |= b::ib_send_flags_IB_SEND_FENCE;
    }

    /// Has the peer interrupted, if it only asks for that.
    pub fn solicited(self) -> Self {
        self.with_flag(b::ib_send_flags_IB_SEND_SOLICITED)
    }

    fn transfer(opcode: b::ib_wr_opcode, memory: Gather<K>) -> Self {
        let mut wr = SendWr::new(opcode);
        if memory.inline {
            wr.send_mut().send_flags = INLINE;
        }
        // INVARIANT: `kept` owns the memory of the segments.
        Self {
            wr,
            segments: memory.segments,
            _kept: memory.kept,
        }
    }

    fn atomic(opcode: b::ib_wr_opcode, memory: Gather<K>, at: Remote) -> Result<Self> {
        check_written(&memory)?;
        check_atomic(memory.bytes(), memory.segments.len(), at)?;
        let mut this = Self::transfer(opcode, memory);
        let wr = this.wr.atomic_mut();
        (wr.remote_addr, wr.rkey) = (at.address, at.key);
        Ok(this)
    }

    fn at(mut self, remote: Remote) -> Self {
        let wr = self.wr.rdma_mut();
        (wr.remote_addr, wr.rkey) = (remote.address, remote.key);
        self
    }

    fn with_imm(mut self, imm: u32) -> Self {
        self.wr.send_mut().ex.bindgen_union_field = imm.to_be();
        self
    }

    fn with_flag(mut self, flag: b::ib_send_flags) -> Self {
        self.wr.send_mut().send_flags |= flag;
        self
    }

    /// Completes the C structure for posting: signaled, not linked, with `cqe`. It refers to `self`, and
    /// is valid until `self` is moved or dropped. The driver of the queue pair copies at most `inline` bytes.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the request has more inline bytes: it was [made](Gather::copied) for another queue pair.
    ///   pvrdma and mlx4 would let the device read them at their addresses of the processor.
    pub(crate) fn fill(
        &mut self,
        cqe: *mut b::ib_cqe,
        inline: u32,
    ) -> Result<NonNull<b::rdma_helper_send_wr>> {
        let send = self.wr.send_mut();
        let bytes = || {
            self.segments
                .iter()
                .map(|segment| segment.length)
                .sum::<u32>()
        };
        if send.send_flags & INLINE != 0 && bytes() > inline {
            return Err(EINVAL);
        }
        send.next = null_mut();
        send.send_flags |= b::ib_send_flags_IB_SEND_SIGNALED;
        send.sg_list = sg_list(&self.segments);
        send.num_sge = self.segments.len().try_into()?;
        // SAFETY: `wr_cqe` is the member that kernel users set.
        *unsafe { send.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
        Ok(NonNull::from(&mut self.wr.0))
    }

    /// Posts the request. `inline` is as for [`fill`](Self::fill). Any context.
    ///
    /// # Errors
    ///
    /// After an error, the request was not posted.
    ///
    /// - The errors of [`fill`](Self::fill), and of the driver.
    ///
    /// # Safety
    ///
    /// - `this` must be valid, and no other task may use it, until the request is posted.
    /// - `qp` must be valid until the request has completed or the queue pair has been destroyed.
    ///   Until then, the region and the memory of the request must stay valid.
    /// - `cqe` must stay valid until then, and until its callback has returned.
    pub(crate) unsafe fn post(
        this: *mut Self,
        qp: *mut b::ib_qp,
        cqe: *mut b::ib_cqe,
        inline: u32,
    ) -> Result {
        // The driver gets a copy. The request can complete, and be freed, before the driver has returned: rxe
        // reads `next` last. So no reference to the request may exist then.
        // SAFETY: `this` is valid, and nobody else uses it, until the request is posted below.
        let filled = unsafe { (*this).fill(cqe, inline) }?;
        // SAFETY: `filled` points to the structure in `this`.
        let mut copy = SendWr(unsafe { filled.read() });
        // SAFETY: `qp`, `cqe` and the memory of the request are valid by the function's contract. The driver
        // does not use the structure after the call.
        to_result(unsafe { b::rdma_helper_post_send(qp, copy.send_mut()) })
    }
}

impl WorkRequest<()> {
    /// Creates a write of no bytes.
    pub(crate) fn empty() -> Self {
        Self::new(SendWr::empty(), ())
    }
}

impl<K> Receive<K> {
    /// Takes what the peer sends to memory.
    ///
    /// # Errors
    ///
    /// `EACCES` if the device may not write there.
    pub fn new(memory: Gather<K>) -> Result<Self> {
        check_written(&memory)?;
        // INVARIANT: The segments refer to what is kept.
        Ok(Self {
            segments: memory.segments,
            _kept: memory.kept,
        })
    }

    /// Returns the C structure to post. It refers to `self`, and is valid until `self` is moved or
    /// dropped.
    pub(crate) fn copy(&mut self, cqe: *mut b::ib_cqe) -> Result<b::ib_recv_wr> {
        let mut wr = b::ib_recv_wr {
            sg_list: sg_list(&self.segments),
            num_sge: self.segments.len().try_into()?,
            ..Default::default()
        };
        // SAFETY: `wr_cqe` is the member that kernel users set.
        *unsafe { wr.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
        Ok(wr)
    }
}

/// Returns the C list of segments, null if it is empty. irdma reads the first entry of a list that
/// is not null, whatever the number of entries.
fn sg_list(segments: &[b::ib_sge]) -> *mut b::ib_sge {
    match segments.is_empty() {
        true => null_mut(),
        false => segments.as_ptr().cast_mut(),
    }
}

/// Checks that the device may write to memory.
fn check_written<K>(memory: &Gather<K>) -> Result {
    match memory.written {
        true => Ok(()),
        false => Err(EACCES),
    }
}

/// Checks what atomic operations go to.
fn check_atomic(bytes: u64, segments: usize, at: Remote) -> Result {
    if bytes == ATOMIC && segments == 1 && at.address % ATOMIC == 0 {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

#[kernel::macros::kunit_tests(rdma_wr)]
mod tests {
    use super::*;

    #[test]
    fn atomic_operations_go_to_words() {
        let at = |address| Remote { address, key: 1 };
        assert!(check_atomic(8, 1, at(0x1008)).is_ok());
        assert!(check_atomic(8, 1, at(0x1004)).is_err());
        assert!(check_atomic(4, 1, at(0x1008)).is_err());
        assert!(check_atomic(8, 2, at(0x1008)).is_err());
    }

    #[test]
    fn what_is_asked_for() {
        let none = Gather::none;
        let mut request = WorkRequest::send_with_imm(none(), 0x0102_0304);
        let send = request.wr.send_mut();
        assert_eq!(send.opcode, b::ib_wr_opcode_IB_WR_SEND_WITH_IMM);
        assert_eq!(send.ex.bindgen_union_field.to_ne_bytes(), [1, 2, 3, 4]);
        let mut request = WorkRequest::send_with_inv(none(), 7).solicited().fenced();
        let send = request.wr.send_mut();
        assert_eq!((send.ex.bindgen_union_field, send.send_flags), (7, 4 | 1));
        let to = Remote { address: 9, key: 5 };
        let mut request = WorkRequest::write_with_imm(none(), to, 1);
        let wr = request.wr.rdma_mut();
        assert_eq!((wr.remote_addr, wr.rkey), (9, 5));
        assert!(WorkRequest::fetch_and_add(none(), to, 1).is_err());
        assert!(Receive::new(none()).is_ok());
        let bytes = || KVec::from_elem(0, 3, GFP_KERNEL).map(|bytes| Gather::inline(bytes, 3));
        if let Ok(bytes) = bytes() {
            let mut request = WorkRequest::send(bytes);
            assert_eq!(request.wr.send_mut().send_flags, 8);
            assert!(request.fill(null_mut(), 2).is_err_and(|e| e == EINVAL));
            assert!(request.fill(null_mut(), 3).is_ok());
        }
        if let Ok(bytes) = bytes() {
            assert!(WorkRequest::read(bytes, to).is_err_and(|e| e == EACCES));
        }
    }

    #[test]
    fn a_request_is_posted_again_as_at_first() -> Result {
        let mut request = WorkRequest::send(Gather::none()).fenced();
        let mut cqe = b::ib_cqe { done: None };
        let first = request.fill(&mut cqe, 0)?.cast::<b::ib_send_wr>();
        // SAFETY: `first` points to the structure in `request`.
        unsafe {
            // As in an unsignaled request of a chain.
            (*first.as_ptr()).next = first.as_ptr();
            (*first.as_ptr()).send_flags = b::ib_send_flags_IB_SEND_FENCE;
        }
        request.fill(&mut cqe, 0)?;
        let send = request.wr.send_mut();
        assert!(send.next.is_null());
        assert_eq!((send.send_flags, send.num_sge), (1 | 2, 0));
        Ok(())
    }
}
