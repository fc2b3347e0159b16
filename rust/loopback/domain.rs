// SPDX-License-Identifier: GPL-2.0

//! Domains as the core has them.

use crate::{
    ep::{
        self,
        Ep, //
    },
    home::Home,
    mode::Mode,
    mr::Mr, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    provider::{
        self,
        msg_ep::{
            MsgEp,
            MsgEpRequest,
            MsgLimits, //
        },
        Direct,
        Dma, //
    },
    DomainRequest,
    Extension,
    MrLimits,
    MrRequest,
    PartBox,
    Refusal, //
};

/// An open domain: its keys, and how its regions are.
pub(crate) struct Domain {
    home: Arc<Home>,
    mode: Mode,
    limits: MrLimits,
    extensions: &'static [Extension],
}

impl Domain {
    /// Opens a domain with nothing in it. May sleep.
    pub(crate) fn open(
        request: &DomainRequest<'_>,
        extensions: &'static [Extension],
    ) -> Result<Self, Refusal> {
        let mode = Mode::new(request.mr_mode);
        let mut auth_key = KVec::new();
        auth_key.extend_from_slice(request.auth_key, GFP_KERNEL)?;
        Ok(Self {
            home: Arc::new(Home::new(auth_key)?, GFP_KERNEL)?,
            mode,
            limits: mode.limits(),
            extensions,
        })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }
}

impl provider::Domain for Domain {
    fn mr_limits(&self) -> &MrLimits {
        &self.limits
    }

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<PartBox<dyn provider::Mr>, Refusal> {
        let mr = Mr::new(self.home.keys().clone(), self.mode, request)?;
        Ok(PartBox::new(mr, GFP_KERNEL)?)
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(&Direct)
    }

    fn endpoints(&self) -> bool {
        true
    }

    fn msg_limits(&self) -> Option<&MsgLimits> {
        Some(&ep::LIMITS)
    }

    fn open_ep(&self, request: MsgEpRequest) -> Result<KBox<dyn MsgEp>, Refusal> {
        Ok(KBox::new(Ep::new(self.home.clone(), request)?, GFP_KERNEL)?)
    }

    fn extensions(&self) -> &[Extension] {
        self.extensions
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
