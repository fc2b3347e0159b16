// SPDX-License-Identifier: GPL-2.0

//! Bytes with memory of others behind them.

use super::{
    local::Run,
    *, //
};

/// A header of bytes, and memory in bio_vecs behind it. A transfer takes them as one message, without a
/// copy.
///
/// The header has at most a page. The memory has at most 15 bio_vecs, and fewer than the offer's
/// `iov_limit`.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::{BioVecs, Framed, Request};
///
/// /// Puts data behind the header of a request.
/// fn fill<M: BioVecs>(request: &mut Request<Framed<M>>, header: [u8; 4], data: M) -> Result {
///     let message = request.memory_mut();
///     *message.header_mut().first_chunk_mut().ok_or(EINVAL)? = header;
///     message.set_data(Some(data));
///     Ok(())
/// }
/// ```
pub struct Framed<M> {
    header: KVec<u8>,
    data: Option<M>,
}

impl<M: BioVecs> Framed<M> {
    /// Creates a message without data.
    pub fn new(header: KVec<u8>) -> Self {
        Self { header, data: None }
    }

    /// Returns the header.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the header.
    pub fn header_mut(&mut self) -> &mut [u8] {
        &mut self.header
    }

    /// Sets the data, and returns the data before.
    pub fn set_data(&mut self, data: Option<M>) -> Option<M> {
        core::mem::replace(&mut self.data, data)
    }
}

// SAFETY: `KVec<u8>` and `BioVecs` promise the same of their bytes. References to the header need
// access to the value.
unsafe impl<M: BioVecs> Local for Framed<M> {
    fn bytes(&self) -> usize {
        let data = self.data.iter().flat_map(|data| data.bio_vecs());
        let lengths = data.map(|bv| index(bv.bv_len));
        lengths.fold(self.header.len(), usize::saturating_add)
    }

    fn run(&self) -> Option<Run> {
        match self.data {
            None => self.header.run(),
            Some(_) => None,
        }
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        let len = u32::try_from(self.header.len()).map_err(|_| Errno::EINVAL)?;
        // An empty `KVec` may have no memory.
        if len > 0 {
            let mut header = bio_vec::default();
            let start = self.header.as_ptr().cast_mut().cast();
            // SAFETY: `KVec` has its bytes in the linear map. `header` is a local.
            unsafe { kfi_bindings::kfi_helper_bio_vec(&mut header, start, len) };
            list.push_bio_vec(&header)?;
        }
        let mut data = self.data.iter().flat_map(|data| data.bio_vecs());
        data.try_for_each(|bv| list.push_bio_vec(bv))
    }

    fn may_be_read(&self) -> bool {
        self.data.as_ref().is_none_or(BioVecs::is_readable)
    }

    fn may_be_written(&self) -> bool {
        self.data.as_ref().is_none_or(BioVecs::is_writable)
    }
}
