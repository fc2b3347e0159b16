// SPDX-License-Identifier: GPL-2.0

//! What peers find of a domain.

use crate::keys::Keys;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::Refusal;

/// What peers find of a domain, and what those of it are known by.
pub(crate) struct ExportedDomain {
    keys: Arc<Keys>,
    auth_key: KVec<u8>,
    /// Peers that may write to a region may do atomic operations there.
    atomics: bool,
}

impl ExportedDomain {
    /// One without regions. May sleep.
    pub(crate) fn new(auth_key: KVec<u8>, atomics: bool) -> Result<Self, Refusal> {
        Ok(Self {
            keys: Arc::new(Keys::new()?, GFP_KERNEL)?,
            auth_key,
            atomics,
        })
    }

    /// The keys of its regions.
    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Whether peers may do atomic operations where they may write.
    pub(crate) fn atomics(&self) -> bool {
        self.atomics
    }

    /// The authorization key of peers that come from this domain.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }
}
