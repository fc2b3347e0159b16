// SPDX-License-Identifier: GPL-2.0

//! Domains as the core has them.

use crate::{
    keys::Keys,
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
    keys: Arc<Keys>,
    mode: Mode,
    limits: MrLimits,
    auth_key: KVec<u8>,
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
            keys: Arc::new(Keys::new()?, GFP_KERNEL)?,
            mode,
            limits: mode.limits(),
            auth_key,
            extensions,
        })
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The authorization key of peers that come from this domain.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }
}

impl provider::Domain for Domain {
    fn mr_limits(&self) -> &MrLimits {
        &self.limits
    }

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<PartBox<dyn provider::Mr>, Refusal> {
        let mr = Mr::new(self.keys.clone(), self.mode, request)?;
        Ok(PartBox::new(mr, GFP_KERNEL)?)
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(&Direct)
    }

    fn endpoints(&self) -> bool {
        true
    }

    fn extensions(&self) -> &[Extension] {
        self.extensions
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
