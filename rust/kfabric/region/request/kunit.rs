// SPDX-License-Identifier: GPL-2.0

//! Unit tests of requests.

#[kernel::macros::kunit_tests(kfabric_request)]
mod tests {
    use crate::region::request::*;

    const LIMITS: MrLimits = MrLimits {
        regions: 10,
        segments: 4,
        pages: 8,
        bytes: 1 << 20,
        ..MrLimits::NONE
    };
    const ARGUMENTS: Arguments<'static> = Arguments {
        access: Access::REMOTE_READ.bits(),
        offset: 0,
        requested_key: 7,
        flags: 0,
        auth_key: AuthKey::None,
        together: false,
    };

    fn kvec(base: usize, len: usize) -> kfi_bindings::kvec {
        kfi_bindings::kvec {
            iov_base: core::ptr::without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn parse(list: &[kfi_bindings::kvec], arguments: Arguments<'_>) -> Result<(), Errno> {
        MrRequest::parse(Source::kvecs(list), arguments, &LIMITS)
            .map(|_| ())
            .map_err(|e| e.errno())
    }

    #[test]
    fn arguments_are_checked_in_order() {
        let good = [kvec(0x10000, 10)];
        let bad = Arguments {
            access: 1,
            offset: 1,
            flags: 1,
            auth_key: AuthKey::Some(&[1]),
            ..ARGUMENTS
        };
        assert_eq!(parse(&good, ARGUMENTS), Ok(()));
        assert_eq!(parse(&good, bad), Err(Errno::EOPNOTSUPP));
        let bad = Arguments {
            auth_key: AuthKey::Missing,
            ..bad
        };
        assert_eq!(parse(&good, bad), Err(Errno::EINVAL));
        let bad = Arguments {
            auth_key: AuthKey::None,
            ..bad
        };
        assert_eq!(parse(&good, bad), Err(Errno::EBADFLAGS));
        let bad = Arguments { flags: 0, ..bad };
        assert_eq!(parse(&good, bad), Err(Errno::EINVAL));
        let unknown = Arguments {
            access: 1 | Access::READ.bits(),
            ..ARGUMENTS
        };
        assert_eq!(parse(&good, unknown), Err(Errno::EINVAL));
        assert_eq!(
            parse(
                &good,
                Arguments {
                    offset: 1,
                    ..ARGUMENTS
                }
            ),
            Err(Errno::EINVAL)
        );
    }

    #[test]
    fn long_lists_are_read_to_the_limit_only() {
        let page = kernel::page::PAGE_SIZE;
        let ok = kvec(page, page);
        let zero = kvec(page, 0);
        assert_eq!(parse(&[ok, ok, ok, ok], ARGUMENTS), Ok(()));
        assert_eq!(parse(&[ok, ok, ok, ok, ok], ARGUMENTS), Err(Errno::E2BIG));
        assert_eq!(
            parse(&[ok, ok, ok, zero, ok], ARGUMENTS),
            Err(Errno::EINVAL)
        );
        assert_eq!(parse(&[ok, ok, ok, ok, zero], ARGUMENTS), Err(Errno::E2BIG));
    }

    #[test]
    fn pieces_have_no_gaps() {
        let page = kernel::page::PAGE_SIZE;
        let limits = MrLimits {
            pieces: 4,
            ..LIMITS
        };
        let list = [kvec(page, 10), kvec(3 * page, 10), kvec(9 * page, 9 * page)];
        assert!(MrRequest::parse(Source::kvecs(&list), ARGUMENTS, &limits).is_ok());
        assert_eq!(parse(&list, ARGUMENTS), Err(Errno::EINVAL));
    }

    #[test]
    fn pages_and_gaps_are_limited() {
        let page = kernel::page::PAGE_SIZE;
        assert_eq!(parse(&[kvec(page, 8 * page)], ARGUMENTS), Ok(()));
        assert_eq!(
            parse(&[kvec(page, 8 * page + 1)], ARGUMENTS),
            Err(Errno::E2BIG)
        );
        assert_eq!(
            parse(&[kvec(page + 1, 8 * page)], ARGUMENTS),
            Err(Errno::E2BIG)
        );
        assert_eq!(
            parse(&[kvec(page, 10), kvec(3 * page, 10)], ARGUMENTS),
            Err(Errno::EINVAL)
        );
    }
}
