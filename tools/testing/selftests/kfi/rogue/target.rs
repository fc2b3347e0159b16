// SPDX-License-Identifier: GPL-2.0

//! A connection of a target that answers as one should, mostly.

use crate::dice::Dice;
use kernel::{
    prelude::*,
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
use kfabric::consumer::{
    CompletionQueueOptions,
    Connected,
    Domain,
    Ended,
    Fabric,
    Incoming,
    Kind,
    MsgEndpoint,
    Remote,
    Request,
    RequestQueue, //
};

/// A command with as much data as there may be behind it.
const CAPSULE: usize = 64 + 4096;
const RESPONSE: usize = 16;
/// How many commands there is room for.
const ROOM: usize = 129;
/// How often a connection looks whether the module goes, in milliseconds.
const MOMENT: Option<u32> = Some(200);
/// How long who has connected may say nothing, in moments.
const SILENCE: u32 = 150;

/// The state that all connections share.
pub(crate) struct Rogue {
    pub(crate) stops: Atomic<bool>,
    /// One answer in `one_in` is a wrong one,
    pub(crate) one_in: u64,
    /// or each to a command that reads or writes, in this way, if that way exists.
    pub(crate) way: u64,
    /// The [`Step`] from which on a connection gets no answer, by its number.
    pub(crate) silent: u64,
    /// Bytes of metadata with each block, and the type of protection information in them.
    pub(crate) metadata: u64,
    pub(crate) protection: u64,
    /// Two fields of the controller's identity.
    pub(crate) sgls: u32,
    pub(crate) icdoff: u16,
    pub(crate) seed: u64,
    /// The format of the namespace.
    pub(crate) format: Atomic<i32>,
    /// How many connections there were, answers, and wrong ones.
    pub(crate) connections: Atomic<i32>,
    pub(crate) answers: Atomic<i32>,
    pub(crate) wrong: Atomic<i32>,
    /// The results of accesses that no key allows: how often they were refused, and done.
    pub(crate) refused: Atomic<i32>,
    pub(crate) reached: Atomic<i32>,
}

/// In how many ways an answer can be wrong that is by chance.
const BY_CHANCE: u64 = 11;
/// More ways: by the key of a command that has ended; against its rights; and by what was answered before to
/// another command in that place.
const LATE: u64 = 11;
const AGAINST_RIGHTS: u64 = 12;
const STALE: u64 = 13;
/// Beyond it is none.
const MOST: u64 = 13;

/// A step of a host that connects and does I/O.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    /// A request for the connection of the admin queue.
    Admin = 1,
    /// The command Connect for that queue.
    AdminConnect,
    /// Reading a property.
    GetProperty,
    /// Writing a property.
    SetProperty,
    /// Identify Controller.
    Identify,
    /// Set Features.
    SetFeatures,
    /// A request for the connection of an I/O queue.
    Queue,
    /// The command Connect for that queue.
    QueueConnect,
    /// Reading or writing.
    Data,
    /// Anything else.
    Other,
}

impl Step {
    /// Returns the step of a command.
    fn of(command: &[u8; 64], is_io: bool) -> Self {
        let [opcode, _, _, _, kind] = get(command, 0);
        let [structure] = get(command, 40);
        match (opcode, kind) {
            (0x7f, 1) if is_io => Self::QueueConnect,
            (0x7f, 1) => Self::AdminConnect,
            (0x7f, 4) => Self::GetProperty,
            (0x7f, 0) => Self::SetProperty,
            (1 | 2, _) if is_io => Self::Data,
            (0x06, _) if structure == 1 => Self::Identify,
            (0x09, _) if !is_io => Self::SetFeatures,
            _ => Self::Other,
        }
    }
}

impl Rogue {
    /// Checks whether a connection gets no answer from this step on, and says so.
    fn is_silent_at(&self, step: Step) -> bool {
        // An enum with a representation is cast without loss.
        let silent = self.silent == u64::from(step as u8);
        if silent {
            pr_info!("silent at step {}\n", self.silent);
        }
        silent
    }

    /// Carries out Format NVM, and says so.
    fn set_format(&self, command: &[u8; 64]) {
        let namespace = u32::from_le_bytes(get(command, 4));
        let [dword] = get(command, 40);
        let format = dword & 0x0f;
        self.format.store(i32::from(format), Relaxed);
        pr_info!("namespace {namespace} gets format {format}\n");
    }
}

/// The kind of memory that is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Command,
    Answer,
    /// An access that no key allows.
    Forbidden,
}

type Queue = RequestQueue<KVec<u8>, Tag>;
type Endpoint = MsgEndpoint<Connected, KVec<u8>, Tag>;

/// A connection with a host.
struct Connection<'a> {
    rogue: &'a Rogue,
    endpoint: Endpoint,
    dice: Dice,
    /// Whether this is an I/O queue.
    is_io: bool,
    /// Whether nothing is answered any more.
    is_silent: bool,
    /// The property CC.
    configuration: u32,
    /// The key of the command before, and where data of one before went that has been read.
    old_key: u64,
    old_place: Option<Remote>,
    /// The last answers, by the lower bits of the command's id: the tag of its request.
    old_answers: KVec<[u8; RESPONSE]>,
    /// How much of what no key allows is under way.
    forbidden: u32,
}

/// Serves who has asked for a connection, until it ends. Sleeps.
pub(crate) fn serve(rogue: &Rogue, request: Incoming) -> Result {
    let number = rogue.connections.fetch_add(1, Relaxed);
    let mut dice = Dice::new(rogue.seed ^ u64::from(number.unsigned_abs()) << 32);
    // The private data: a format, the queue's number.
    let is_io = get(request.data(), 2) != [0_u8; 2];
    if rogue.is_silent_at(if is_io { Step::Queue } else { Step::Admin }) {
        while !rogue.stops.load(Relaxed) {
            fsleep(Delta::from_millis(200));
        }
        return Ok(());
    }
    if dice.one_in(4 * rogue.one_in) {
        request.reject(&[0, 0, 6, 0]).map_err(|_| EINVAL)?;
        return Ok(());
    }
    let domain = Domain::open(&Fabric::open(request.info())?, request.info())?;
    let options = CompletionQueueOptions::default().size(8 * ROOM).waits();
    let queue: Arc<Queue> = RequestQueue::open(&domain, options)?;
    let endpoint = request.endpoint(&domain, &queue, &queue)?.enable()?;
    for _ in 0..ROOM {
        let room = KVec::from_elem(0, CAPSULE, GFP_KERNEL)?;
        endpoint.recv(Request::new(room, Tag::Command)?)?;
    }
    let endpoint = endpoint.accept(&[0; 32])?.wait(Some(5000))?;
    let mut connection = Connection {
        rogue,
        endpoint,
        dice,
        is_io,
        is_silent: false,
        configuration: 0,
        old_key: 0,
        old_place: None,
        old_answers: KVec::from_elem([0; RESPONSE], ROOM, GFP_KERNEL)?,
        forbidden: 0,
    };
    let mut silence = 0;
    // How what no key allows has ended is to be known in any case.
    while (!rogue.stops.load(Relaxed) || connection.forbidden > 0) && silence < SILENCE {
        if !connection.is_silent {
            silence += 1;
        }
        match queue.wait(MOMENT)? {
            Some(Ended::Done(request, done)) if done.kind == Kind::Recv => {
                silence = 0;
                connection.answer(request)?;
            }
            Some(Ended::Done(request, _)) => {
                if *request.context() == Tag::Forbidden {
                    connection.forbidden = connection.forbidden.saturating_sub(1);
                    rogue.reached.fetch_add(1, Relaxed);
                }
            }
            None => (),
            Some(Ended::Failed(request, _)) => {
                if *request.context() == Tag::Forbidden {
                    rogue.refused.fetch_add(1, Relaxed);
                }
                break;
            }
            Some(_) => break,
        }
    }
    Ok(())
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    let place = bytes.iter_mut().skip(at);
    place.zip(what).for_each(|(to, from)| *to = *from);
}

impl Connection<'_> {
    /// Answers a command, whose memory goes back to wait for another.
    fn answer(&mut self, request: Request<KVec<u8>, Tag>) -> Result {
        let command: [u8; 64] = get(request.memory(), 0);
        // Or the connection has gone.
        let _ = self.endpoint.recv(request);
        self.is_silent |= self.rogue.is_silent_at(Step::of(&command, self.is_io));
        // There are no events, so nobody waits for an answer to Asynchronous Event Request.
        if self.is_silent || !self.is_io && command.first() == Some(&0x0c) {
            return Ok(());
        }
        let (addr, key) = (
            u64::from_le_bytes(get(&command, 24)),
            u32::from_le_bytes(get(&command, 35)),
        );
        let len = u32::from_le_bytes(get(&command, 32)) & 0xff_ffff;
        let keyed = command.get(39).is_some_and(|kind| kind & 0x0f == 0x0f);
        let (result, mut data) = self.truth(&command, len)?;
        let mut response = KVec::from_elem(0, RESPONSE, GFP_KERNEL)?;
        put(&mut response, 0, &result.to_le_bytes());
        put(&mut response, 12, &get::<2>(&command, 2));

        self.rogue.answers.fetch_add(1, Relaxed);
        let mut invalidates = keyed.then_some(u64::from(key));
        let own = Remote {
            addr,
            key: u64::from(key),
        };
        let (mut again, mut to, mut tag) = (false, own, Tag::Answer);
        if let Some(way) = self.way(&command) {
            self.rogue.wrong.fetch_add(1, Relaxed);
            match way {
                0 => response.truncate(1 + self.dice.index(RESPONSE - 1)),
                // No queue is as long.
                1 => put(
                    &mut response,
                    12,
                    &(self.dice.number() | 0x8000).to_le_bytes()[..2],
                ),
                2 => put(&mut response, 14, &self.dice.number().to_le_bytes()[..2]),
                3 => put(&mut response, 0, &self.dice.number().to_le_bytes()),
                4 => self.dice.fill(&mut response),
                5 => self.dice.fill(&mut data),
                6 => invalidates = Some(self.old_key),
                7 => invalidates = None,
                8 => again = true,
                9 => {
                    // More than asked for, or somewhere else.
                    data.extend_from_slice(&[0xa5; 64], GFP_KERNEL)?;
                    if self.rogue.way > MOST {
                        to.addr = to.addr.wrapping_add(self.dice.below(3) * 4096);
                    }
                    tag = Tag::Forbidden;
                }
                LATE => {
                    // The host has to end its keys itself. A host that reads one after the other
                    // has ended that one.
                    if let Some(old) = self.old_place {
                        (to, tag) = (old, Tag::Forbidden);
                    }
                    invalidates = None;
                }
                STALE => match self.old_answer(&response) {
                    Some(&mut old) if old != [0; RESPONSE] => return self.answer_again(&old),
                    _ => (),
                },
                AGAINST_RIGHTS => return self.against_rights(own, data.is_empty()),
                _ => return self.endpoint.shutdown().map_err(Error::from),
            }
        }
        self.old_key = own.key;
        let answer: [u8; RESPONSE] = get(&response, 0);
        if let Some(old) = self.old_answer(&answer) {
            *old = answer;
        }
        if self.is_io && command.first() == Some(&2) {
            self.old_place = Some(own);
        }
        if keyed && !data.is_empty() {
            let written = self.endpoint.write(Request::new(data, tag)?, to);
            if written.is_ok() && tag == Tag::Forbidden {
                self.forbidden += 1;
            }
        }
        if again {
            self.answer_again(&answer)?;
        }
        let response = Request::new(response, Tag::Answer)?;
        let _ = match invalidates {
            Some(key) => self.endpoint.send_invalidating(response, key),
            None => self.endpoint.send(response),
        };
        Ok(())
    }

    /// Returns the place for answers to commands with the tag of this one.
    fn old_answer(&mut self, response: &[u8]) -> Option<&mut [u8; RESPONSE]> {
        let tag = u16::from_le_bytes(get(response, 12)) & 0x0fff;
        self.old_answers.get_mut(usize::from(tag))
    }

    /// Answers as before, and does nothing for it.
    fn answer_again(&mut self, answer: &[u8; RESPONSE]) -> Result {
        let mut copy = KVec::new();
        copy.extend_from_slice(answer, GFP_KERNEL)?;
        let _ = self.endpoint.send(Request::new(copy, Tag::Answer)?);
        Ok(())
    }

    /// Returns the way in which the answer to a command is wrong, if it is.
    fn way(&mut self, command: &[u8; 64]) -> Option<u64> {
        match self.rogue.way {
            way if way <= MOST => (Step::of(command, self.is_io) == Step::Data).then_some(way),
            _ => {
                let wrong = self.dice.one_in(self.rogue.one_in);
                wrong.then(|| self.dice.below(BY_CHANCE))
            }
        }
    }

    /// Reads what is there to be written, or writes what is there to be read.
    fn against_rights(&mut self, to: Remote, writes: bool) -> Result {
        let request = Request::new(KVec::from_elem(0xa5, 64, GFP_KERNEL)?, Tag::Forbidden)?;
        let begun = if writes {
            self.endpoint.write(request, to)
        } else {
            self.endpoint.read(request, to)
        };
        if begun.is_ok() {
            self.forbidden += 1;
        }
        Ok(())
    }

    /// Returns the correct answer of a target to a command: the result, and data.
    fn truth(&mut self, command: &[u8; 64], len: u32) -> Result<(u64, KVec<u8>)> {
        let len = usize::try_from(len)?.min(1 << 20);
        let [opcode] = get(command, 0);
        let mut data = KVec::new();
        let result = match Step::of(command, self.is_io) {
            // The number of the controller.
            Step::AdminConnect | Step::QueueConnect => 1,
            Step::GetProperty => self.property(command),
            Step::SetProperty => {
                self.configuration = u32::from_le_bytes(get(command, 48));
                0
            }
            Step::Data => {
                if opcode == 2 {
                    data.resize(len, 0x5a, GFP_KERNEL)?;
                }
                0
            }
            _ => {
                match (self.is_io, opcode) {
                    (false, 0x06) => data = identity(self.rogue, command)?,
                    // A log page.
                    (false, 0x02) => data.resize(len, 0, GFP_KERNEL)?,
                    (false, 0x80) => self.rogue.set_format(command),
                    _ => (),
                }
                0
            }
        };
        Ok((result, data))
    }

    /// Returns a property.
    fn property(&self, command: &[u8; 64]) -> u64 {
        // CC: enabled, and a shutdown that was asked for.
        let enabled = self.configuration & 1;
        let shutdown = self.configuration >> 14 & 3;
        match u32::from_le_bytes(get(command, 44)) {
            // CAP: 1024 entries, ten seconds, the NVM command set.
            0 => 1023 | 20 << 24 | 1 << 37,
            // VS: 1.2.1.
            0x08 => 0x0001_0201,
            0x14 => self.configuration.into(),
            // CSTS: ready, shutdown complete.
            0x1c if shutdown != 0 => u64::from(enabled) | 2 << 2,
            0x1c => enabled.into(),
            _ => 0,
        }
    }
}

/// Returns the answer to Identify.
fn identity(rogue: &Rogue, command: &[u8; 64]) -> Result<KVec<u8>> {
    let mut data = KVec::from_elem(0, 4096, GFP_KERNEL)?;
    match get(command, 40) {
        // A namespace of 2048 blocks: its size, capacity and use.
        [0_u8] => {
            for at in [0, 8, 16] {
                put(&mut data, at, &2048_u64.to_le_bytes());
            }
            // The last of two formats, and the present one. Metadata follow the block that they
            // belong to.
            let format = u8::try_from(rogue.format.load(Relaxed))?;
            let metadata = u8::from(rogue.metadata > 0) << 4;
            put(&mut data, 25, &[1, format | metadata]);
            put(&mut data, 29, &rogue.protection.to_le_bytes()[..1]);
            put(&mut data, 128, &rogue.metadata.to_le_bytes()[..2]);
            put(&mut data, 130, &[9]);
            // The other has blocks of 4096 bytes, and no metadata.
            put(&mut data, 134, &[12]);
        }
        // The controller.
        [1] => {
            put(&mut data, 4, &[b' '; 60]);
            // MDTS: 128 KiB. The number, version, kind and keep-alive.
            put(&mut data, 77, &[5, 1, 0]);
            put(&mut data, 80, &0x0001_0201_u32.to_le_bytes());
            put(&mut data, 111, &[1]);
            // It has Format NVM.
            put(&mut data, 256, &[2]);
            put(&mut data, 320, &10_u16.to_le_bytes());
            // Sizes of entries, 1024 commands, one namespace.
            put(&mut data, 512, &[0x66, 0x44, 0, 4, 1]);
            put(&mut data, 536, &rogue.sgls.to_le_bytes());
            put(&mut data, 768, b"rogue");
            put(&mut data, 1792, &260_u32.to_le_bytes());
            put(&mut data, 1796, &1_u32.to_le_bytes());
            put(&mut data, 1800, &rogue.icdoff.to_le_bytes());
        }
        // The active namespaces beyond a number.
        [2] if get(command, 4) == [0_u8; 4] => put(&mut data, 0, &[1]),
        _ => (),
    }
    Ok(data)
}
