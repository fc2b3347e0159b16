// SPDX-License-Identifier: GPL-2.0

//! The parts of a region's object. They come from the caches, or from the domain's reserve, before the region is valid.
//!
//! The reserve has the parts of regions that must not fail for lack of memory. A closed region returns them.
//!
//! Lock order: the lock of a reserve is a leaf.

use super::{
    prelude::*,
    reference::Memory, //
};
use crate::{
    object::{
        children::Coming,
        descs::DescEntry, //
    },
    support::{
        task::frees_memory,
        vec::Fifo, //
    }, //
};
use kernel::sync::UniqueArc;

/// The parts of a region's object, in its memory.
pub(crate) struct MrParts {
    /// `None` if it could not be recovered from a closed region. Then another one is allocated when it is needed.
    memory: Option<Memory>,
    /// The part that most regions don't need.
    rare: Option<Pin<MrExtBox<MrExt>>>,
    /// Whether the parts return to the domain's reserve when the region is closed.
    reserved: bool,
}

impl MrParts {
    /// No parts yet: they are allocated when the region of a request is known.
    const NONE: Self = Self {
        memory: None,
        rare: None,
        reserved: false,
    };

    /// Allocates the parts of one region after the other, each of up to `segments` segments. May sleep.
    fn reserved(segments: usize) -> Result<Self, Refusal> {
        Ok(Self {
            memory: Some(ObjectBox::new_uninit(GFP_KERNEL)?),
            rare: Some(MrExt::with_capacity(segments)?),
            reserved: true,
        })
    }

    /// Takes parts from the domain's reserve, if the request fits, or else [none](Self::NONE). Process context. May sleep.
    ///
    /// In a domain that registers on endpoints, the reserve serves tasks that free memory, and requests that
    /// [found none](Self::take_last). Other requests there use device regions that the peer has ended. These keep
    /// their rights, and a device region of the reserve may get any.
    fn take(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        later: Option<EnableConditions>,
    ) -> Self {
        let parts = match later.is_some_and(|later| later.endpoint) && !frees_memory() {
            true => None,
            false => Self::take_last(domain, request),
        };
        parts.unwrap_or(Self::NONE)
    }

    /// Takes parts from the domain's reserve, for a request that has found no memory. May sleep.
    fn take_last(domain: &DomainObject, request: &MrRequest<'_>) -> Option<Self> {
        let parts = of(domain)?.take(request)?;
        domain.imp.use_reserve(true);
        Some(parts)
    }

    /// Returns the parts to the domain's reserve, if they came from there, or frees them. May sleep, but not after
    /// [`MrOps::close_now`](crate::provider::MrOps::close_now).
    fn put_back(mut self, domain: &DomainObject) {
        if let (true, Some(reserve)) = (self.reserved, of(domain)) {
            if let Some(rare) = &mut self.rare {
                rare.as_mut().clear();
            }
            domain.imp.use_reserve(false);
            reserve.put(self);
        }
    }

    /// Frees the object of a closed region, or returns its parts to the domain's reserve, if they are `reserved`. May
    /// sleep, but not after [`MrOps::close_now`](crate::provider::MrOps::close_now).
    pub(super) fn free(object: MrRef, reserved: bool, domain: &DomainObject) {
        if !reserved {
            return drop(object);
        }
        let (memory, rare) = object.take_apart().unzip();
        let parts = Self {
            memory,
            rare: rare.flatten(),
            reserved,
        };
        parts.put_back(domain);
    }

    /// Completes the parts for the region of a request. May sleep.
    #[inline(always)]
    fn fit(
        &mut self,
        domain: &DomainObject,
        request: &MrRequest<'_>,
        later: Option<EnableConditions>,
    ) -> Result<(), Refusal> {
        if self.memory.is_none() {
            self.memory = Some(ObjectBox::new_uninit(GFP_KERNEL)?);
        }
        MrExt::fit(&mut self.rare, domain, request, later)
    }
}

/// The reserve of a domain.
#[pin_data]
pub(crate) struct Reserve {
    /// Most pages, and segments, of a region.
    pages: usize,
    /// In the order in which they came back, so that no key is used again soon.
    #[pin]
    free: IrqLock<Fifo<MrParts>>,
}

impl Reserve {
    /// Allocates the parts of `count` regions of up to `pages` pages. May sleep.
    pub(crate) fn new(
        domain: &DomainObject,
        count: usize,
        pages: usize,
    ) -> Result<Arc<Self>, Refusal> {
        let mut free = Fifo::with_capacity(count)?;
        for _ in 0..count {
            free.push_reserved(MrParts::reserved(segments(domain, pages))?);
        }
        let place = UniqueArc::<Self>::new_uninit(GFP_KERNEL)?;
        // The last that can fail: nothing takes it back from the provider.
        domain.imp.reserve(count, pages)?;
        let reserve = pin_init!(Self {
            pages,
            free <- new_irq_lock!(free, c"kfabric_reserve"),
        });
        match place.pin_init_with(reserve) {
            Ok(reserve) => Ok(reserve.into()),
            Err(never) => match never {},
        }
    }

    /// Takes the parts of a region, if the request fits the reserve. Any context.
    fn take(&self, request: &MrRequest<'_>) -> Option<MrParts> {
        let shape = request.shape;
        let fits = shape.pages() <= widen(self.pages)
            && request.source.count() <= self.pages
            && shape.gap().is_none();
        if fits {
            self.free.with(|free| free.pop())
        } else {
            None
        }
    }

    /// Takes the parts of a closed region back. Any context.
    fn put(&self, parts: MrParts) {
        self.free.with(|free| free.push_reserved(parts));
    }
}

/// Returns how many segments of a region the core keeps, for a refresh.
fn segments(domain: &DomainObject, pages: usize) -> usize {
    match domain.mr_limits.refresh {
        Ok(()) => pages,
        Err(_) => 0,
    }
}

/// Returns the reserve of a domain, if it has one.
fn of(domain: &DomainObject) -> Option<&Reserve> {
    domain.reserve.as_ref()?.downcast_ref()
}

/// All that the object of a region takes but the provider's part. Nothing is left to fail when the provider has
/// registered the region.
///
/// A task that ends all open objects waits for the place. The place is given up when nothing of the region is left.
pub(super) struct PreallocatedMr<'a> {
    domain: &'a DomainObject,
    memory: Memory,
    /// The parts except `memory`.
    parts: MrParts,
    told: bool,
    local: DescEntry,
    context: *mut c_void,
    place: Coming<MrBody>,
}

/// Allocates the parts of the object for the region of a request, and then has the provider `make` its own part. The
/// parts come from the domain's reserve if the reserve serves the request, or if there is no memory. May sleep.
///
/// # Errors
///
/// - `ENOSPC`: `mr_cnt` regions are open.
/// - `ENOMEM`
/// - The errors of `make`.
#[inline(always)]
pub(super) fn preallocate<'a, T>(
    domain: &'a DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
    later: Option<EnableConditions>,
    mut make: impl FnMut() -> Result<T, Refusal>,
) -> Result<(PreallocatedMr<'a>, T), Refusal> {
    // Dropped after the parts have gone back.
    let most = u32::try_from(domain.mr_limits.regions).unwrap_or(u32::MAX);
    let place = Coming::new_below(domain, most).map_err(|errno| match errno {
        Errno::ENOSPC => Refusal::new(errno, c"mr_cnt regions are open").value(u64::from(most)),
        other => other.into(),
    })?;
    let mut attempt = |mut parts: MrParts| {
        request.reserved.set(parts.reserved);
        let made = parts.fit(domain, request, later).and_then(|()| make());
        match (made, parts.memory.take()) {
            (Ok(made), Some(memory)) => Ok((memory, parts, made)),
            (made, memory) => {
                let reserved = parts.reserved;
                MrParts { memory, ..parts }.put_back(domain);
                Err((made.err().unwrap_or(Errno::EIO.into()), reserved))
            }
        }
    };
    let first = MrParts::take(domain, request, later);
    let (memory, mut parts, made) = attempt(first).or_else(|(refusal, reserved)| {
        let no_memory = refusal.errno() == Errno::ENOMEM && !reserved;
        let last = no_memory
            .then(|| MrParts::take_last(domain, request))
            .flatten();
        attempt(last.ok_or(refusal)?).map_err(|(refusal, _)| refusal)
    })?;
    MrExt::lease(&mut parts.rare, request.take_lease());
    let start = request.kernel_start().unwrap_or(0);
    let preallocated = PreallocatedMr {
        domain,
        memory,
        parts,
        told: later.is_some_and(|later| later.told),
        local: DescEntry::new(start, request.shape.bytes(), request.access),
        context,
        place,
    };
    Ok((preallocated, made))
}

impl PreallocatedMr<'_> {
    /// Returns the domain of the region.
    pub(super) fn domain(&self) -> &DomainObject {
        self.domain
    }

    /// Returns the parts to their source: the region could not be registered. May sleep.
    pub(super) fn undo(mut self) {
        // The memory is the consumer's again.
        drop(MrExt::lease(&mut self.parts.rare, None));
        self.parts.memory = Some(self.memory);
        self.parts.put_back(self.domain);
    }

    /// Makes the object of a region. Peers reach the region by `keys`; without keys it is disabled. Any context.
    #[inline(always)]
    pub(super) fn object(self, mr: ProviderMr, keys: Option<&Keys>) -> MrRef {
        let c = Public::new(self.domain, keys).to_c(MrObject::fid(self.context));
        let state = match keys {
            Some(_) => MrState::Enabled,
            None => MrState::Disabled,
        };
        let inner = Inner {
            state,
            mr: Some(mr),
            rare: self.parts.rare,
            held: false,
            awaited: false,
            told: self.told,
            reserved: self.parts.reserved,
        };
        let local = self.local;
        let body = pin_init!(MrBody {
            local,
            inner <- new_irq_lock!(inner, c"kfabric_mr"),
        });
        let object = MrRef::new(self.memory, Obj::new(c, body, self.place.take()));
        if let Some(keys) = keys {
            object.reveal(keys);
        }
        object
    }
}
