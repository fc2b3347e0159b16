// SPDX-License-Identifier: GPL-2.0

//! A provider for the unit tests: it registers anything, and remembers how.

mod dma;
pub(super) mod extensions;
mod kept;

use self::{
    extensions::EXTENSIONS,
    kept::Kept, //
};
use crate::consumer::{
    Access,
    Domain,
    Fabric,
    Hints,
    MrMode, //
};
use crate::{
    api::registration::Registration,
    provider::{
        self,
        extension::Extension,
        offer::{
            Ends,
            Extras,
            Offer, //
        },
        Bindings,
        Dma,
        DomainRequest,
        Enabling,
        Keys,
        MrPart,
        Provider, //
    },
    region::{
        extent::Extent,
        limits::MrLimits,
        rawkey::RemotePiece,
        request::MrRequest,
        source::Source, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Domains and regions that are open.
pub(super) static OPEN: Atomic<i32> = Atomic::new(0);
/// Entries of scatterlists that are mapped.
pub(super) static MAPPED: Atomic<i32> = Atomic::new(0);
/// A requested key: the region is two to the device, of which the first has 4 bytes.
pub(super) const IN_TWO: u64 = 99;
/// The next region can't be enabled.
pub(super) static UNABLE: Atomic<bool> = Atomic::new(false);
/// A requested key: the region can't be enabled.
pub(super) const FAILS: u64 = 98;
/// A requested key: the provider keeps the memory in [`KEPT`].
pub(super) const KEEPS: u64 = 97;
/// A requested key: so, and then the registration fails.
pub(super) const KEEPS_AND_FAILS: u64 = 96;
/// A requested key: the region is not enabled while [`HOLD`] is set.
pub(super) const HOLDS: u64 = 95;
/// See [`HOLDS`].
pub(super) static HOLD: Atomic<bool> = Atomic::new(false);
/// How many regions were last enabled together.
pub(super) static TOGETHER: Atomic<usize> = Atomic::new(0);
/// Memory of a region, for longer than the region is open.
pub(super) static KEPT: Kept = Kept::new();
/// The next list is said to have been mapped with more entries than it has.
pub(super) static TOO_MANY: Atomic<bool> = Atomic::new(false);
/// Domains can't map scatterlists.
pub(super) static NO_DMA: Atomic<bool> = Atomic::new(false);
/// The next region won't close properly.
pub(super) static STUCK: Atomic<bool> = Atomic::new(false);

/// The rights that the tests ask for.
pub(super) fn access() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// Hints that find the provider.
pub(super) fn hints() -> Result<Hints, Errno> {
    let hints = Hints::new()?.prov_name(Fake::NAME)?;
    Ok(hints.mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY))
}

/// The first domain, opened.
pub(super) fn domain() -> Result<Arc<Domain>, Errno> {
    let offers = hints()?.getinfo()?;
    Domain::open(&Fabric::open(offers.first())?, offers.first())
}

/// Bytes that count up from `first`.
pub(super) fn bytes(first: u8, len: usize) -> Result<KVec<u8>> {
    let mut bytes = KVec::from_elem(0, len, GFP_KERNEL)?;
    for (byte, value) in bytes
        .iter_mut()
        .zip((0..=u8::MAX).cycle().skip(first.into()))
    {
        *byte = value;
    }
    Ok(bytes)
}

/// Counted in [`OPEN`].
struct Counted;

impl Counted {
    fn new() -> Self {
        OPEN.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Relaxed);
    }
}

/// The provider.
pub(super) struct Fake;

impl Fake {
    /// Registers the provider, for the length of a test.
    pub(super) fn register() -> Result<Registered> {
        Ok(Registered(Some(Registration::new()?)))
    }
}

/// The registered provider.
///
/// A test that has failed to close everything leaves it registered, since deregistering would wait
/// forever; then the next test fails, too.
pub(super) struct Registered(Option<Registration<Fake>>);

impl Drop for Registered {
    fn drop(&mut self) {
        if OPEN.load(Relaxed) != 0 {
            core::mem::forget(self.0.take());
        }
    }
}

impl Provider for Fake {
    const NAME: &'static CStr = c"kfabric_kunit";
    const VERSION: u32 = 1;

    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
        let mut offers = KVec::new();
        if !ends.is_none() {
            return Ok(offers);
        }
        for domain in [c"first", c"second"] {
            let offer = Offer {
                fabric: CString::try_from(c"fabric")?,
                domain: CString::try_from(domain)?,
                caps: 0b110,
                mr_mode: 0b11000,
                mr_key_size: 8,
                mr_iov_limit: 4,
                mr_cnt: 100,
                extras: Extras::default(),
                msg: None,
            };
            offers.push(offer, GFP_KERNEL)?;
        }
        Ok(offers)
    }

    fn open_fabric(_name: &CStr) -> Result<KBox<dyn provider::Fabric>, Refusal> {
        Ok(KBox::new(Fake, GFP_KERNEL)?)
    }
}

impl provider::Fabric for Fake {
    fn open_domain(
        &self,
        _request: &DomainRequest<'_>,
    ) -> Result<KBox<dyn provider::Domain>, Refusal> {
        let limits = MrLimits {
            regions: 100,
            segments: 4,
            pages: 100,
            bytes: 1 << 20,
            gaps: true,
            flags: 0b1,
            auth_keys: true,
            leases: true,
            ..MrLimits::NONE
        };
        let open = Counted::new();
        Ok(KBox::new(
            FakeDomain {
                limits,
                _open: open,
            },
            GFP_KERNEL,
        )?)
    }
}

struct FakeDomain {
    limits: MrLimits,
    _open: Counted,
}

impl provider::Domain for FakeDomain {
    fn mr_limits(&self) -> &MrLimits {
        &self.limits
    }

    /// Tells by the base which kind of list it was, and by the descriptor what else there was.
    fn create_mr(&self, request: &MrRequest<'_>) -> Result<MrPart, Refusal> {
        match request.requested_key() {
            KEEPS => KEPT.put(Extent::new(request)?)?,
            KEEPS_AND_FAILS => {
                KEPT.put(Extent::new(request)?)?;
                return Err(Errno::ENOSPC.into());
            }
            _ => (),
        }
        let kind = match request.source() {
            Source::Kvec(_) => 1,
            Source::Bvec(_) => 2,
            Source::Sgl(_) => 3,
        };
        let shape = request.shape();
        let auth_key = request.auth_key().map_or(0, <[u8]>::len);
        let mr = FakeMr {
            key: request.requested_key(),
            base: kind << 32 | shape.bytes(),
            desc: shape.segments() << 16 | auth_key,
            len: shape.bytes(),
            _open: Counted::new(),
        };
        Ok(MrPart::boxed(KBox::new(mr, GFP_KERNEL)?))
    }

    fn enable_many(&self, mrs: &mut [Enabling<'_>]) {
        TOGETHER.store(mrs.len(), Relaxed);
        for one in mrs {
            *one.done = Some(one.mr.enable(one.bindings));
        }
    }

    fn dma(&self) -> Option<&dyn Dma> {
        match NO_DMA.load(Relaxed) {
            false => Some(self),
            true => None,
        }
    }

    fn extensions(&self) -> &[Extension] {
        &EXTENSIONS
    }

    fn endpoints(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct FakeMr {
    key: u64,
    base: u64,
    desc: usize,
    len: u64,
    _open: Counted,
}

impl provider::Mr for FakeMr {
    fn enable(&mut self, _bindings: &Bindings) -> Result<Keys, Refusal> {
        while self.key == HOLDS && HOLD.load(Relaxed) {
            fsleep(Delta::from_millis(1));
        }
        if UNABLE.xchg(false, Relaxed) || self.key == FAILS {
            return Err(Errno::ENODEV.into());
        }
        Ok(Keys {
            key: self.key,
            base: self.base,
            desc: self.desc,
            whole: self.key != IN_TWO,
        })
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        let mut pieces = KVec::new();
        let whole = [(self.key, self.base, self.len)];
        let two = [(IN_TWO, 0x1000, 4), (IN_TWO + 1, 0x8000, self.len - 4)];
        let list = if self.key == IN_TWO { &two[..] } else { &whole };
        for &(key, base, len) in list {
            pieces.push(RemotePiece { key, base, len }, GFP_KERNEL)?;
        }
        Ok(pieces)
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match STUCK.xchg(false, Relaxed) {
            true => Err(Errno::EIO.into()),
            false => Ok(()),
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
