// SPDX-License-Identifier: GPL-2.0

//! `kfi_mr_bind()`: counters and endpoints.
//!
//! The bonds of a region, or those that it needs before it is enabled.

use super::{
    bind_slots::BindSlots,
    prelude::*, //
};
use crate::object::{
    cntr::CounterBody,
    ep::EndpointBody, //
};

impl Binds for MrBody {
    fn bind(mr: &MrObject, other: Other<'_>) -> Result<(), Refusal> {
        let domain = mr.parent();
        let counters = domain.mr_limits.flags & c::KFI_RMA_EVENT != 0;
        if !counters && !domain.has_mode(c::KFI_MR_ENDPOINT) {
            return Err(Refusal::new(
                Errno::ENOSYS,
                c"the provider can't report accesses to a region",
            ));
        }
        if let Ok(counter) = other.object::<CounterBody>() {
            if !counters {
                return Err(Refusal::new(
                    Errno::ENOSYS,
                    c"the provider can't count accesses to a region",
                ));
            }
            let counter = other.bind(domain, counter, widen_u32(c::KFI_REMOTE_WRITE))?;
            return mr.bind(|bonds| bonds.counter.bind(counter));
        }
        if let Ok(endpoint) = other.object::<EndpointBody>() {
            let endpoint = other.bind(domain, endpoint, 0)?;
            return mr.bind(|bonds| bonds.endpoint.bind(endpoint));
        }
        Err(Refusal::new(
            Errno::EINVAL,
            c"neither a counter nor an endpoint",
        ))
    }
}

impl MrObject {
    /// Binds it, if it isn't enabled yet. Any context.
    fn bind(
        &self,
        bind: impl FnOnce(&mut BindSlots<Arc<CntrCore>, Arc<EndpointMrs>>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.inner.with(|inner| {
            inner.state.check_disabled()?;
            match &mut inner.rare {
                Some(rare) => bind(rare.as_mut().project().bonds),
                None => bind(&mut BindSlots::wanted(false, false)),
            }
        })
    }
}
