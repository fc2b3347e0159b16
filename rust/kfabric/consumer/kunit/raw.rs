// SPDX-License-Identifier: GPL-2.0

//! Unit tests of raw keys.

#[kernel::macros::kunit_tests(kfabric_consumer_raw)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain, //
                Fake,
                IN_TWO,
            }, //
            *,
        },
        region::rawkey::MAPPED, //
    };
    use kernel::prelude::*;

    const fn piece(key: u64, base: u64, len: u64) -> RemotePiece {
        RemotePiece { key, base, len }
    }

    #[test]
    fn a_region_is_found_behind_its_raw_key() -> Result {
        let _provider = Fake::register()?;
        let mr = domain()?.reg(bytes(0, 10)?, Options::new(access()).requested_key(7))?;
        let raw = mr.raw_key()?;
        assert!(raw.base() == mr.base() && raw.as_bytes().len() == 48);
        let peer = domain()?;
        let mapped = peer.map_raw(raw.base(), raw.as_bytes())?;
        assert!(mapped.key() & MAPPED != 0);
        let parts = mapped.resolve(raw.base() + 2, 8)?;
        assert!(parts.as_slice() == [piece(7, mr.base() + 2, 8)]);
        let refused = |addr, len| mapped.resolve(addr, len).err() == Some(Errno::EINVAL);
        assert!(refused(raw.base(), 11) && refused(raw.base(), 0) && refused(raw.base() - 1, 1));
        Ok(())
    }

    #[test]
    fn a_region_of_two_has_a_longer_raw_key() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let mr = domain.reg(bytes(0, 10)?, Options::new(access()).requested_key(IN_TWO))?;
        let raw = mr.raw_key()?;
        assert!(raw.as_bytes().len() == 72);
        let mapped = domain.map_raw(100, raw.as_bytes())?;
        let whole = mapped.resolve(100, 10)?;
        let [first, second] = [piece(IN_TWO, 0x1000, 4), piece(IN_TWO + 1, 0x8000, 6)];
        assert!(whole.as_slice() == [first, second]);
        let second = mapped.resolve(105, 5)?;
        assert!(second.as_slice() == [piece(IN_TWO + 1, 0x8001, 5)]);
        Ok(())
    }

    #[test]
    fn mapped_keys_keep_their_domain_open() -> Result {
        let _provider = Fake::register()?;
        let (one, other) = (domain()?, domain()?);
        let raw = one.reg(bytes(0, 10)?, access())?.raw_key()?;
        let mapped = other.map_raw(0, raw.as_bytes())?;
        assert!(Domain::close(other).err().map(|e| e.errno()) == Some(Errno::EBUSY));
        // The mapped key keeps the domain open. The key isn't told that the region is closed.
        assert!(mapped.resolve(9, 1)?.len() == 1);
        let other = mapped.domain().clone();
        drop(mapped);
        Domain::close(other)?;
        Ok(())
    }

    #[test]
    fn malformed_raw_keys_are_refused() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let raw = domain.reg(bytes(0, 10)?, access())?.raw_key()?;
        let refused = |raw: &[u8]| domain.map_raw(0, raw).err() == Some(Errno::EINVAL);
        assert!(refused(&[]) && refused(&[0; 48]) && refused(&[0; 200]));
        assert!(domain.map_raw(u64::MAX, raw.as_bytes()).is_err());
        assert!(domain.map_raw(0, raw.as_bytes()).is_ok());
        let cut_off = raw.as_bytes().split_last().ok_or(EINVAL)?.1;
        assert!(refused(cut_off));
        Ok(())
    }
}
