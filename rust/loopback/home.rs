// SPDX-License-Identifier: GPL-2.0

//! What peers find of a domain.

use crate::keys::Keys;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::Refusal;

/// What peers find of a domain, and what those of it are known by.
pub(crate) struct Home {
    keys: Arc<Keys>,
    auth_key: KVec<u8>,
}

impl Home {
    /// One without regions. May sleep.
    pub(crate) fn new(auth_key: KVec<u8>) -> Result<Self, Refusal> {
        Ok(Self {
            keys: Arc::new(Keys::new()?, GFP_KERNEL)?,
            auth_key,
        })
    }

    /// The keys of its regions.
    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// The authorization key of peers that come from this domain.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }
}
