// SPDX-License-Identifier: GPL-2.0

//! Bytes that the core copies while the consumer posts a transfer (`KFI_INJECT`).

use super::{
    local::{
        Buffers,
        DescMr,
        LocalPieces,
        LocalRules,
        MAX_INJECT, //
    },
    op::Op, //
};
use crate::{
    prelude::*,
    region::{
        extents::MappedAs,
        segment_list::Source, //
    }, //
};
use kernel::bindings;

/// A copy of the bytes of one transfer.
#[derive(Clone, Copy, Debug)]
pub struct InjectCopy {
    bytes: [u8; MAX_INJECT],
    len: usize,
}

impl InjectCopy {
    /// Copies at most `max_len` bytes from a consumer's buffers. The memory is not checked: any kernel
    /// address may be copied from. Any context.
    ///
    /// # Errors
    ///
    /// - The errors of [`LocalPieces::check`].
    /// - `EMSGSIZE`: there are more than `max_len` bytes.
    /// - `EFAULT`: there is no memory at an address.
    /// - `EOPNOTSUPP`: only the device has addresses of the memory.
    #[inline(never)] // Its `LocalPieces` is large, and most transfers inject nothing.
    pub(crate) fn copy(
        buffers: &Buffers<'_>,
        op: &Op,
        rules: &LocalRules,
        max_len: usize,
        find: impl Fn(usize) -> Result<DescMr, Refusal>,
    ) -> Result<Self, Refusal> {
        let mut checked = LocalPieces::none();
        checked.check(buffers, op, rules, find)?;
        if checked.bytes() > widen(max_len.min(MAX_INJECT)) {
            let refusal = Refusal::new(Errno::EMSGSIZE, c"more bytes than inject_size");
            return Err(refusal.value(checked.bytes()));
        }
        let mut injected = Self {
            bytes: [0; MAX_INJECT],
            len: 0,
        };
        let Some(source) = &buffers.source else {
            return Ok(injected);
        };
        for (at, segment) in source.segments(rules.segments)?.enumerate() {
            let added = segment.and_then(|(start, len)| {
                let none = Refusal::new(Errno::EFAULT, c"a segment without memory");
                injected.add(address(source, rules.mapped, start.ok_or(none)?)?, len)
            });
            added.map_err(|refusal| refusal.at(at))?;
        }
        Ok(injected)
    }

    /// Returns at most `len` bytes from `at` on.
    pub(super) fn part(&self, at: u64, len: u64) -> Self {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let rest = self.bytes().get(index(at)..).unwrap_or(&[]);
        let mut part = Self {
            bytes: [0; MAX_INJECT],
            len: index(len).min(rest.len()),
        };
        let bytes = part.bytes.iter_mut().zip(rest).take(part.len);
        bytes.for_each(|(to, from)| *to = *from);
        part
    }

    /// Adds a copy of the `len` bytes at a kernel address.
    fn add(&mut self, from: *const c_void, len: u64) -> Result<(), Refusal> {
        let len = usize::try_from(len).map_err(|_| Errno::EMSGSIZE)?;
        let room = self.bytes.get_mut(self.len..);
        let to = room.and_then(|room| room.get_mut(..len));
        copy_nofault(to.ok_or(Errno::EMSGSIZE)?, from)?;
        self.len += len;
        Ok(())
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

/// Returns the kernel address of a segment that starts at `start`.
///
/// # Errors
///
/// - `EOPNOTSUPP`: only the device has an address of it.
fn address(source: &Source<'_>, mapped: MappedAs, start: u64) -> Result<*const c_void, Refusal> {
    match (source, mapped) {
        (Source::Kvec(_), _) | (Source::Sgl(_), MappedAs::Linear) => {
            let address = usize::try_from(start).map_err(|_| Errno::EFAULT)?;
            Ok(ptr::without_provenance(address))
        }
        (Source::Bvec(_), _) | (Source::Sgl(_), MappedAs::Physical) => {
            // SAFETY: The helper computes an address from any physical one, and reads nothing there.
            Ok(unsafe { kfi_bindings::kfi_helper_linear_address(start) })
        }
        (Source::Sgl(_), MappedAs::Device) => Err(Refusal::new(
            Errno::EOPNOTSUPP,
            c"what is mapped for the device can't be injected",
        )),
    }
}

/// Copies as many bytes as `to` has from a kernel address. Any context.
///
/// # Errors
///
/// - `EFAULT`: there is no memory at the address.
pub(crate) fn copy_nofault(to: &mut [u8], from: *const c_void) -> Result<(), Refusal> {
    // SAFETY: `to` has `to.len()` bytes that may be written to. The function may be given any address to
    // read from: it returns an error if there is no memory.
    let ret = unsafe { bindings::copy_from_kernel_nofault(to.as_mut_ptr().cast(), from, to.len()) };
    match ret {
        0 => Ok(()),
        _ => {
            let refusal = Refusal::new(Errno::EFAULT, c"no memory at this address");
            Err(refusal.value(widen(from.addr())))
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_post_injected)]
mod tests {
    use super::*;
    use core::ptr::null;
    use kfi_bindings::kfi_iov_type_KFI_KVEC as KVEC;

    const SEND: Op = Op::Send {
        data: None,
        invalidates: None,
    };

    const RULES: LocalRules = LocalRules {
        by_region: false,
        mapped: MappedAs::Device,
        peer_to_peer: false,
        segments: 3,
        pieces: 1,
        bytes: 4096,
    };

    fn copy(list: &[kvec], max_len: usize) -> Result<InjectCopy, Errno> {
        let find = |_| Err(Errno::EINVAL.into());
        // SAFETY: `list` has `list.len()` kvecs; there are no descriptors.
        let buffers = unsafe { Buffers::list(KVEC, list.as_ptr().cast(), null(), list.len()) };
        let copied = buffers.and_then(|list| InjectCopy::copy(&list, &SEND, &RULES, max_len, find));
        copied.map_err(|refusal| refusal.errno())
    }

    #[test]
    fn parts_are_within_the_bytes() {
        let Ok(all) = copy(&[entry(&[1, 2, 3, 4])], 64) else {
            panic!("not copied");
        };
        for (at, len, part) in [
            (0, 4, &[1, 2, 3, 4][..]),
            (1, 2, &[2, 3]),
            (3, 9, &[4]),
            (4, 1, &[]),
            (u64::MAX, u64::MAX, &[]),
        ] {
            assert_eq!(all.part(at, len).bytes(), part);
        }
    }

    fn entry(bytes: &[u8]) -> kvec {
        kvec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        }
    }

    fn at(address: usize) -> kvec {
        kvec {
            iov_base: core::ptr::without_provenance_mut(address),
            iov_len: 8,
        }
    }

    #[test]
    fn a_list_is_copied_in_order() {
        // On the stack, in the image, and empty.
        let copied = copy(&[entry(&[1, 2, 3]), entry(b"45")], 5);
        assert!(copied.is_ok_and(|copied| copied.bytes() == [1, 2, 3, b'4', b'5']));
        assert!(copy(&[], 5).is_ok_and(|copied| copied.bytes().is_empty()));
    }

    #[test]
    fn no_more_than_may_be() {
        let (bytes, errno) = ([1; MAX_INJECT + 1], |list: &[kvec], max| {
            copy(list, max).err()
        });
        assert_eq!(errno(&[entry(&bytes[..5])], 5), None);
        assert_eq!(errno(&[entry(&bytes[..6])], 5), Some(Errno::EMSGSIZE));
        assert_eq!(errno(&[entry(&bytes[1..])], usize::MAX), None);
        assert_eq!(errno(&[entry(&bytes)], usize::MAX), Some(Errno::EMSGSIZE));
        let four = [0, 1, 2, 3].map(|n| entry(&bytes[n..=n]));
        assert_eq!(errno(&four, 5), Some(Errno::EINVAL));
        assert_eq!(errno(&[entry(&[])], 5), Some(Errno::EINVAL));
    }

    #[test]
    fn bad_addresses_are_errors() {
        // NULL, of user space, and of nobody.
        for bad in [0, 8, 0x1000, usize::MAX - 64, 1 << (usize::BITS - 2)] {
            for list in [[at(bad), entry(b"1")], [entry(b"1"), at(bad)]] {
                assert_eq!(copy(&list, 64).err(), Some(Errno::EFAULT));
            }
        }
    }
}
