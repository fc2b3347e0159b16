// SPDX-License-Identifier: GPL-2.0

//! Domains of the provider "loop".

use crate::{
    ep::{
        self,
        Ep,
        Srx, //
    },
    mr::Mr,
    *, //
};
use kfabric::provider::{
    self,
    Direct,
    Dma,
    ProviderMr, //
};

/// The capability of atomic operations, which peers have, too.
const ATOMIC: u64 = widen_u32(kfi_bindings::KFI_ATOMIC);

/// An open domain: its keys, and the limits of its regions.
pub(crate) struct Domain {
    home: Arc<ExportedDomain>,
    mode: Mode,
    limits: MrLimits,
    msg_limits: MsgLimits,
    extensions: &'static [Extension],
}

impl Domain {
    /// Opens a domain with nothing in it. May sleep.
    pub(crate) fn open(
        request: &DomainRequest<'_>,
        extensions: &'static [Extension],
    ) -> Result<Self, Refusal> {
        let mode = Mode::new(request.mr_mode);
        let atomics = request.caps & ATOMIC != 0;
        let mut auth_key = KVec::new();
        auth_key.extend_from_slice(request.auth_key, GFP_KERNEL)?;
        Ok(Self {
            home: Arc::new(ExportedDomain::new(auth_key, atomics)?, GFP_KERNEL)?,
            msg_limits: MsgLimits {
                atomics: match atomics {
                    true => ep::LIMITS.atomics,
                    false => Atomics::default(),
                },
                ..ep::LIMITS
            },
            mode,
            limits: mode.limits(),
            extensions,
        })
    }

    pub(crate) fn home(&self) -> &ExportedDomain {
        &self.home
    }
}

impl provider::DomainOps for Domain {
    fn mr_limits(&self) -> &MrLimits {
        &self.limits
    }

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<ProviderMr, Refusal> {
        let mr = Mr::new(self.home.keys().clone(), self.mode, request)?;
        Ok(ProviderMr::boxed(KBox::new(mr, GFP_KERNEL)?))
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(&Direct)
    }

    fn endpoints(&self) -> bool {
        true
    }

    fn msg_limits(&self) -> Option<&MsgLimits> {
        Some(&self.msg_limits)
    }

    fn open_ep(&self, request: MsgEpRequest) -> Result<KBox<dyn MsgEpOps>, Refusal> {
        Ok(KBox::new(Ep::new(self.home.clone(), request)?, GFP_KERNEL)?)
    }

    fn open_srx(&self, size: usize) -> Result<KBox<dyn provider::msg_ep::Srx>, Refusal> {
        Ok(KBox::new(Srx::new(size)?, GFP_KERNEL)?)
    }

    fn extensions(&self) -> &[Extension] {
        self.extensions
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
