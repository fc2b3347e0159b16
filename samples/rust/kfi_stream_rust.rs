// SPDX-License-Identifier: GPL-2.0

//! kfabric in Rust: two machines, and 64 MiB each way between them.
//!
//! With `address` it listens there, and serves the first who comes; with `peer` it connects, and writes to
//! the server's memory and reads from it. `samples/c/kfi_stream_c.c` says how, and is the same in C: either
//! understands the other. Buffers are given away with what is posted, and there is no unsafe code in here.

#![forbid(unsafe_code)]

use core::net::{
    IpAddr,
    Ipv4Addr,
    SocketAddr, //
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use kfabric::consumer::{
    Access,
    CompletionQueueOptions,
    Connected,
    Domain,
    Ended,
    Fabric,
    Hints,
    InfoList,
    Kind,
    Listener,
    ListenerOptions,
    MrMode,
    MsgEndpoint,
    Remote,
    Request,
    RequestQueue, //
};

module! {
    type: Module,
    name: "kfi_stream_rust",
    authors: ["kfabric developers"],
    description: "kfabric in Rust: 64 MiB each way between two machines",
    license: "GPL",
    params: {
        address: u32 {
            default: 0,
            description: "server: IPv4 address of this machine to listen at, as a number",
        },
        peer: u32 {
            default: 0,
            description: "client: IPv4 address of the server, as a number",
        },
    },
}

const PORT: u16 = 18516;
const CHUNK: usize = 256 << 10;
const CHUNKS: u64 = 256;
/// How many chunks there are in 1 MiB, and between two lines of progress.
const MIB: u64 = 4;
const STEP: u64 = 64;
/// Something must be wrong if nothing has happened for so long, in milliseconds.
const PATIENCE: Option<u32> = Some(60_000);

/// What is sent: where the server's memory is; and then, which chunk there is.
#[derive(Clone, Copy)]
struct Message {
    addr: u64,
    key: u64,
    chunk: u64,
}

impl Message {
    const LEN: usize = 24;

    fn to_bytes(self) -> Result<KVec<u8>> {
        let mut bytes = KVec::with_capacity(Self::LEN, GFP_KERNEL)?;
        for word in [self.addr, self.key, self.chunk] {
            bytes.extend_from_slice(&word.to_le_bytes(), GFP_KERNEL)?;
        }
        Ok(bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let word = |i: usize| {
            let word = bytes.get(i * 8..i * 8 + 8).ok_or(EIO)?;
            Ok::<_, Error>(u64::from_le_bytes(word.try_into().map_err(|_| EIO)?))
        };
        Ok(Self {
            addr: word(0)?,
            key: word(1)?,
            chunk: word(2)?,
        })
    }
}

/// The bytes of a chunk, which is no other chunk's: even ones are the client's.
fn fill(bytes: &mut [u8], chunk: u64) {
    let [first, ..] = chunk.wrapping_mul(13).to_le_bytes();
    for (i, byte) in bytes.iter_mut().enumerate() {
        let [low, mid, high, ..] = i.to_le_bytes();
        let sum = low.wrapping_mul(7).wrapping_add(mid.wrapping_mul(5));
        *byte = first.wrapping_add(sum.wrapping_add(high.wrapping_mul(3)));
    }
}

/// A connected endpoint, with a request that waits for a message.
struct Stream {
    endpoint: MsgEndpoint<Connected, KVec<u8>>,
    queue: kernel::sync::Arc<RequestQueue<KVec<u8>>>,
    /// What has ended that nobody has waited for yet.
    ended: KVec<(Kind, Request<KVec<u8>>)>,
}

impl Stream {
    /// Waits for the end of a transfer of this kind.
    fn wait(&mut self, kind: Kind) -> Result<Request<KVec<u8>>> {
        loop {
            if let Some(at) = self.ended.iter().position(|(other, _)| *other == kind) {
                return Ok(self.ended.remove(at).map_err(|_| EINVAL)?.1);
            }
            match self.queue.wait(PATIENCE)? {
                Some(Ended::Done(request, done)) => {
                    self.ended.push((done.kind, request), GFP_KERNEL)?
                }
                Some(
                    Ended::Failed(_, failure) | Ended::Lost(failure) | Ended::InjectFailed(failure),
                ) => return Err(failure.errno.into()),
                None => return Err(ETIMEDOUT),
            }
        }
    }

    /// Sends a message, and waits until that is done.
    fn tell(&mut self, message: Message) -> Result {
        self.say(message)?;
        self.wait(Kind::Send).map(drop)
    }

    /// Sends a message.
    fn say(&mut self, message: Message) -> Result {
        Ok(self.endpoint.send(Request::new(message.to_bytes()?, ())?)?)
    }

    /// Waits for a message, which must be about this chunk, and for the next one from then on.
    fn hear(&mut self, chunk: u64) -> Result<Message> {
        let request = self.wait(Kind::Recv)?;
        let message = Message::from_bytes(request.memory())?;
        self.endpoint.recv(request)?;
        match message.chunk == chunk {
            true => Ok(message),
            false => Err(EIO),
        }
    }
}

fn hints() -> Result<Hints> {
    let mode = MrMode::VIRT_ADDR | MrMode::PROV_KEY;
    Ok(Hints::new()?.prov_name(c"verbs")?.msg().mr_mode(mode))
}

fn waits_for_message() -> Result<Request<KVec<u8>>> {
    Ok(Request::new(
        KVec::from_elem(0, Message::LEN, GFP_KERNEL)?,
        (),
    )?)
}

fn serve(address: SocketAddr) -> Result {
    let offers = hints()?.source(address)?.getinfo()?;
    let fabric = Fabric::open(offers.first())?;
    let domain = Domain::open(&fabric, offers.first())?;
    let queue = RequestQueue::open(&domain, CompletionQueueOptions::default().waits())?;
    let memory = KVec::from_elem(0, CHUNK, GFP_KERNEL)?;
    let mut mr = domain.reg(memory, Access::REMOTE_READ | Access::REMOTE_WRITE)?;
    let listener = Listener::open(&fabric, offers.first(), ListenerOptions::default())?;
    pr_info!("listening at {:?}, port {PORT}\n", address.ip());

    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    let endpoint = request.endpoint(&domain, &queue, &queue)?.enable()?;
    endpoint.recv(waits_for_message()?)?;
    let endpoint = endpoint.accept(b"")?.wait(PATIENCE)?;
    let mut stream = Stream {
        endpoint,
        queue,
        ended: KVec::new(),
    };
    let mut message = Message {
        addr: mr.base(),
        key: mr.key(),
        chunk: 0,
    };
    stream.tell(message)?;
    let mut bytes = KVec::from_elem(0, CHUNK, GFP_KERNEL)?;
    for i in 0..CHUNKS {
        message.chunk = 2 * i;
        stream.hear(message.chunk)?;
        fill(&mut bytes, message.chunk);
        if let Some(at) = mr.compare(0, &bytes)? {
            pr_err!("chunk {}: byte {at} is another\n", message.chunk);
            return Err(EIO);
        }
        message.chunk += 1;
        fill(&mut bytes, message.chunk);
        mr.write(0, &bytes)?;
        match i + 1 {
            CHUNKS => stream.say(message)?,
            _ => stream.tell(message)?,
        }
    }
    // When the client has the last message it reads and goes, which may be before this has ended: then it is
    // cancelled, and so is what waits for a message.
    loop {
        match stream.queue.wait(PATIENCE)? {
            Some(Ended::Failed(..)) => return Ok(()),
            Some(_) => (),
            None => return Err(ETIMEDOUT),
        }
    }
}

/// Connects to the server.
fn connect(offers: &InfoList) -> Result<Stream> {
    let domain = Domain::open(&Fabric::open(offers.first())?, offers.first())?;
    let queue = RequestQueue::open(&domain, CompletionQueueOptions::default().waits())?;
    let endpoint = MsgEndpoint::open(&domain, offers.first(), &queue, &queue)?.enable()?;
    endpoint.recv(waits_for_message()?)?;
    Ok(Stream {
        endpoint: endpoint.connect(b"")?.wait(PATIENCE)?,
        queue,
        ended: KVec::new(),
    })
}

fn stream(server: SocketAddr) -> Result {
    let mut stream = connect(&hints()?.peer(server)?.getinfo()?)?;
    let mut message = stream.hear(0)?;
    let there = Remote {
        addr: message.addr,
        key: message.key,
    };
    let mut data = Request::new(KVec::from_elem(0, CHUNK, GFP_KERNEL)?, ())?;
    let mut bytes = KVec::from_elem(0u8, CHUNK, GFP_KERNEL)?;
    let begin = Instant::<Monotonic>::now();
    for i in 0..CHUNKS {
        message.chunk = 2 * i;
        fill(data.memory_mut(), message.chunk);
        stream.endpoint.write(data, there)?;
        data = stream.wait(Kind::Write)?;
        stream.tell(message)?;
        message = stream.hear(message.chunk + 1)?;
        stream.endpoint.read(data, there)?;
        data = stream.wait(Kind::Read)?;
        fill(&mut bytes, message.chunk);
        if **data.memory() != *bytes {
            pr_err!("chunk {}: other bytes were read\n", message.chunk);
            return Err(EIO);
        }
        if (i + 1) % STEP == 0 {
            pr_info!("{} of {} MiB each way\n", (i + 1) / MIB, CHUNKS / MIB);
        }
    }
    let ms = u64::try_from(begin.elapsed().as_millis())?;
    let rate = (2000 * CHUNKS / MIB).checked_div(ms).unwrap_or(0);
    pr_info!(
        "demo: {} MiB each way, each byte verified, in {ms} ms: {rate} MiB/s\n",
        CHUNKS / MIB
    );
    Ok(())
}

struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        match (address(), peer()) {
            (0, 0) => {
                pr_err!("say address= to serve, or peer= to connect\n");
                return Err(EINVAL);
            }
            (0, peer) => stream(at(peer))?,
            (address, _) => serve(at(address))?,
        }
        Ok(Self)
    }
}

fn at(address: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(address)), PORT)
}

// The kernel's parameters changed with 7.3.
#[cfg(kernel_7_3)]
fn address() -> u32 {
    module_parameters::address.value()
}

#[cfg(kernel_7_3)]
fn peer() -> u32 {
    module_parameters::peer.value()
}

#[cfg(not(kernel_7_3))]
fn address() -> u32 {
    *module_parameters::address.value()
}

#[cfg(not(kernel_7_3))]
fn peer() -> u32 {
    *module_parameters::peer.value()
}
