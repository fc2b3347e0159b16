// SPDX-License-Identifier: GPL-2.0

//! Bringing a controller up: all that the target is asked before the first I/O.

use crate::{
    channel::Channel,
    command::{
        self,
        connect_data,
        property,
        Command, //
    },
    identify::{
        self,
        IdCtrl,
        Namespace,
        IDENTIFY, //
    },
    options::Options,
    queue::{
        QueueGate,
        Reader, //
    },
    transport::{
        Transport,
        Way, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// How many entries an admin queue has, with every target.
const ADMIN_ENTRIES: u16 = 32;
/// The target is to choose a controller.
const ANY_CONTROLLER: u16 = 0xffff;
/// Enabled, with commands of 64 bytes and responses of 16.
const ENABLE: u64 = 0x0046_0001;
/// The same, but to be shut down.
const SHUT_DOWN: u64 = ENABLE | 1 << 14;

/// How many queues there are for I/O, and how many commands each takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) queues: u16,
    pub(crate) depth: u16,
}

/// A controller that is up, with connections for I/O on which nothing was sent yet.
pub(crate) struct Link {
    pub(crate) admin: Admin,
    pub(crate) info: IdCtrl,
    pub(crate) shape: Shape,
    pub(crate) transports: KVec<(Transport, Arc<QueueGate>)>,
    /// How many pieces of memory a region has at most.
    pub(crate) max_pieces: usize,
}

impl Link {
    /// Connects to a target. Sleeps.
    ///
    /// # Errors
    ///
    /// The log says what has failed.
    pub(crate) fn up(options: &Options) -> Result<Self> {
        let way = Way::find(options)
            .inspect_err(|error| pr_err!("no way to {:?}: {error:?}\n", options.address))?;
        let mut admin = Admin::connect(&way, options)?;
        let entries = admin.enable(options.entries)?;
        let info = admin.identify()?;
        let queues = admin.queues(options.queues)?;
        let mut transports = KVec::new();
        for number in 1..=queues {
            let transport = admin.connect_queue(&way, options, number, entries)?;
            transports.push(transport, GFP_KERNEL)?;
        }
        let depth = entries - 1;
        Ok(Self {
            admin,
            info,
            shape: Shape { queues, depth },
            transports,
            max_pieces: way.max_pieces(),
        })
    }
}

/// The admin queue of a controller.
pub(crate) struct Admin {
    channel: Channel,
    controller: u16,
}

impl Admin {
    /// Sleeps.
    fn connect(way: &Way, options: &Options) -> Result<Self> {
        let transport = Transport::connect(way, 0, ADMIN_ENTRIES, 0, None::<KBox<Reader>>)?;
        let mut channel = Channel::new(transport, options.register)?;
        let connect = Command::connect(0, ADMIN_ENTRIES - 1, options.keep_alive);
        let data = connect_data(
            &options.host_id.0,
            ANY_CONTROLLER,
            &options.subsystem,
            &options.host,
        );
        let response = channel.write("connect", connect, &data)?;
        let result = response.result32();
        if result >> 17 & 3 != 0 {
            pr_err!("the target wants authentication, which this host has not\n");
            return Err(EACCES);
        }
        let controller = u16::try_from(result & 0xffff)?;
        Ok(Self {
            channel,
            controller,
        })
    }

    /// Enables the controller, and returns how many entries its queues have, no more than these. Sleeps.
    fn enable(&mut self, entries: u16) -> Result<u16> {
        let cap = Command::property_get(property::CAP);
        let cap = self.channel.execute("reading what it can do", cap)?.result;
        let most = u16::try_from(cap & 0xffff)?.saturating_add(1);
        // Each is half a second.
        let patience = 1 + (cap >> 24 & 0xff);
        self.channel
            .execute("enabling", Command::property_set(property::CC, ENABLE))?;
        for _ in 0..=10 * patience {
            let state = Command::property_get(property::CSTS);
            let state = self.channel.execute("reading its state", state)?.result;
            match (state & 1 != 0, state & 2 != 0) {
                (_, true) => {
                    pr_err!("the controller has failed: state {state:#x}\n");
                    return Err(EIO);
                }
                (true, _) => return Ok(entries.min(most)),
                _ => fsleep(Delta::from_millis(50)),
            }
        }
        pr_err!("the controller doesn't get ready\n");
        Err(ETIMEDOUT)
    }

    /// Asks what the controller can do. Sleeps.
    fn identify(&mut self) -> Result<IdCtrl> {
        let identify = Command::identify_controller();
        let data = self.channel.read("identifying", identify, IDENTIFY)?;
        IdCtrl::parse(&data)
    }

    /// Asks for queues, and returns how many there will be. Sleeps.
    fn queues(&mut self, wanted: u16) -> Result<u16> {
        let response = self
            .channel
            .execute("asking for queues", Command::set_queues(wanted))?;
        // The result has the numbers that the target grants, for both kinds, and less by one.
        let granted = [response.result & 0xffff, response.result >> 16 & 0xffff];
        let granted = granted.into_iter().min().unwrap_or(0) + 1;
        Ok(wanted.min(u16::try_from(granted).unwrap_or(u16::MAX)))
    }

    /// Connects a queue for I/O. Sleeps.
    fn connect_queue(
        &self,
        way: &Way,
        options: &Options,
        number: u16,
        entries: u16,
    ) -> Result<(Transport, Arc<QueueGate>)> {
        let inlet = Arc::pin_init(QueueGate::new(), GFP_KERNEL)?;
        let reader = KBox::new(Reader(inlet.clone()), GFP_KERNEL)?;
        let transport = Transport::connect(way, number, entries, self.controller, Some(reader))?;
        let mut channel = Channel::new(transport, options.register)?;
        let data = connect_data(
            &options.host_id.0,
            self.controller,
            &options.subsystem,
            &options.host,
        );
        channel.write(
            "connecting a queue",
            Command::connect(number, entries - 1, 0),
            &data,
        )?;
        Ok((channel.into_transport(), inlet))
    }

    /// Calls `found` with each namespace that there is. Sleeps.
    ///
    /// # Errors
    ///
    /// - The status of the target, and the errors of `found`.
    pub(crate) fn namespaces(
        &mut self,
        mut found: impl FnMut(u32, Result<Namespace>) -> Result,
    ) -> Result {
        let mut above = 0;
        loop {
            let list = command::Command::identify_namespaces(above);
            let list = self.channel.read("listing namespaces", list, IDENTIFY)?;
            let mut count = 0;
            for number in identify::namespaces(&list) {
                let identify = Command::identify_namespace(number);
                let data = self
                    .channel
                    .read("identifying a namespace", identify, IDENTIFY)?;
                found(number, Namespace::parse(&data))?;
                (above, count) = (number, count + 1);
            }
            if count < IDENTIFY / 4 {
                return Ok(());
            }
        }
    }

    /// Says that the host is still there. Sleeps.
    pub(crate) fn keep_alive(&mut self) -> Result {
        self.channel
            .execute("keep-alive", Command::keep_alive())
            .map(|_| ())
    }

    /// Says goodbye. Sleeps.
    pub(crate) fn shut_down(&mut self) -> Result {
        let command = Command::property_set(property::CC, SHUT_DOWN);
        self.channel.execute("shutting down", command)?;
        self.channel.shut_down();
        Ok(())
    }
}
