// SPDX-License-Identifier: GPL-2.0

//! Unit tests of copying injected bytes.

#[kernel::macros::kunit_tests(kfabric_post_injected)]
mod tests {
    use super::super::{
        super::buffers::RawList,
        *, //
    };
    use core::ptr::null;
    use kfi_bindings::kvec;

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
        // SAFETY: `list` has `list.len()` entries; there are no descriptors.
        let buffers = unsafe { Buffers::list(RawList::Kvec(list.as_ptr()), null(), list.len()) };
        let copied = buffers.and_then(|list| InjectCopy::copy(&list, &SEND, &RULES, max_len, find));
        copied.map_err(|refusal| refusal.errno())
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
