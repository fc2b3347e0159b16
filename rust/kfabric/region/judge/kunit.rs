// SPDX-License-Identifier: GPL-2.0

//! Unit tests of what may be registered.

#[kernel::macros::kunit_tests(kfabric_judge)]
mod tests {
    use crate::region::judge::*;

    const READ: Use = Use {
        writes: false,
        peer_to_peer: false,
    };
    const WRITE: Use = Use {
        writes: true,
        ..READ
    };

    #[test]
    fn a_plain_page_may_be_used() {
        assert_eq!(WRITE.allows(0), Ok(()));
    }

    #[test]
    fn each_of_these_speaks_against_any_use() {
        let facts = [
            NO_PAGE,
            OFFLINE,
            DEVICE_PRIVATE,
            RESERVED,
            POISONED,
            NOBODYS,
            UNMAPPED,
            READ_ONLY,
        ];
        for fact in facts {
            for peer_to_peer in [false, true] {
                let region = Use {
                    peer_to_peer,
                    ..READ
                };
                assert!(region.allows(fact).is_err());
                assert!(region.allows(fact | PEER_TO_PEER).is_err());
            }
        }
    }

    #[test]
    fn zero_pages_are_read_only() {
        assert_eq!(READ.allows(ZERO), Ok(()));
        assert_eq!(READ.allows(ZERO | READ_ONLY), Ok(()));
        assert!(WRITE.allows(ZERO).is_err());
        assert!(READ.allows(ZERO | POISONED).is_err());
    }

    #[test]
    fn pci_memory_is_for_who_can_reach_it() {
        let able = Use {
            peer_to_peer: true,
            ..WRITE
        };
        assert_eq!(able.allows(PEER_TO_PEER), Ok(()));
        assert!(WRITE.allows(PEER_TO_PEER).is_err());
    }
}
