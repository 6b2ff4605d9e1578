//! The way out of a sandbox without a network: an HTTP proxy that leads to listed hosts only.
//!
//! The inner process opens the listeners, in the agent's own network namespace, and hands them to a process outside of it, which
//! accepts there and connects here. The agent has no other way out: no address, no route, no name
//! server. Ports of this machine that are listed are reached under the same number, without the proxy.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::hosts::{HostPattern, covered, may_lead_to};

/// Where programs inside find the proxy, unless a listed port of this machine has that number.
const PORT: u16 = 3128;

/// The head of a request is no longer than this.
const MAX_HEAD: usize = 64 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(30);
const CONNECT_TIME: Duration = Duration::from_secs(15);

/// How many connections an agent may have through the proxy at once.
const MAX_CONNECTIONS: usize = 512;

/// More than enough: what is copied is on the heap.
const STACK: usize = 128 * 1024;

/// How many ports of this machine a sandbox can lead to: the descriptors go over in one message.
pub(super) const MAX_LOCAL: usize = 30;

/// The ports at which something listens inside, and what each leads to. Both processes work it out from the same plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Proxy,
    /// The same port of this machine.
    Local,
}

fn ways(hosts: &[HostPattern]) -> Vec<(u16, Way)> {
    let mut local: Vec<u16> = hosts.iter().filter_map(HostPattern::local_port).collect();
    local.sort_unstable();
    local.dedup();
    local.truncate(MAX_LOCAL);
    let mut ways = vec![(port(hosts), Way::Proxy)];
    ways.extend(local.into_iter().map(|port| (port, Way::Local)));
    ways
}

fn port(hosts: &[HostPattern]) -> u16 {
    let taken = |port: u16| hosts.iter().any(|host| host.local_port() == Some(port));
    (PORT..u16::MAX).find(|port| !taken(*port)).unwrap_or(PORT)
}

/// What tells programs about the proxy.
pub(super) fn environment(hosts: &[HostPattern]) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{}", port(hosts));
    let here = "localhost,127.0.0.1,::1".to_owned();
    let mut variables: Vec<_> = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ]
    .map(|name| (name, proxy.clone()))
    .into();
    variables.push(("NO_PROXY", here.clone()));
    variables.push(("no_proxy", here));
    // Node.js heeds the others only with this one.
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}

/// Listens, in the network namespace of this process.
pub(super) fn listen(hosts: &[HostPattern]) -> io::Result<Vec<TcpListener>> {
    let ways = ways(hosts).into_iter();
    ways.map(|(port, _)| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
        .collect()
}

/// Switches on the loopback interface of a new network namespace.
pub(super) fn switch_on_loopback() -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: a structure of numbers, of which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(1);
    // SAFETY: the request lives until the call returns, and is what this call takes.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Serves on the listeners that [`listen`] made for the same hosts, for as long as this process lives.
pub(super) fn serve(listeners: Vec<OwnedFd>, hosts: &[HostPattern]) -> io::Result<()> {
    let hosts: Arc<[HostPattern]> = hosts.into();
    let underway = Arc::new(AtomicUsize::new(0));
    for (listener, (port, way)) in listeners.into_iter().zip(ways(&hosts)) {
        let listener = TcpListener::from(listener);
        let (hosts, underway) = (Arc::clone(&hosts), Arc::clone(&underway));
        thread(move || {
            loop {
                let Ok((client, _)) = listener.accept() else {
                    // Out of descriptors, for example. Whoever waits is served when there are some again.
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                };
                let seat = Seat::take(&underway);
                let hosts = Arc::clone(&hosts);
                let served = thread(move || {
                    if seat.number > MAX_CONNECTIONS {
                        return;
                    }
                    // Whatever went wrong, the client sees its connection end.
                    match way {
                        Way::Proxy => lead(client, &hosts).ok(),
                        Way::Local => connect_here(port).and_then(|server| join(client, server)).ok(),
                    };
                });
                // Without a thread the connection ends.
                served.ok();
            }
        })?;
    }
    Ok(())
}

fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .map(drop)
}

/// One of the connections that are underway.
struct Seat {
    all: Arc<AtomicUsize>,
    number: usize,
}

impl Seat {
    fn take(all: &Arc<AtomicUsize>) -> Self {
        let number = all.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            all: Arc::clone(all),
            number,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

fn connect_here(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect(("localhost", port))
}

/// Reads one request and leads it to its host, if that is listed.
fn lead(mut client: TcpStream, hosts: &[HostPattern]) -> io::Result<()> {
    client.set_read_timeout(Some(HEAD_TIME))?;
    let (head, rest) = read_head(&mut client)?;
    client.set_read_timeout(None)?;
    let request = match Request::read(&head) {
        Ok(request) => request,
        Err(reason) => return refuse(&mut client, "400 Bad Request", reason),
    };
    let Request { host, port, .. } = &request;
    let Some(cover) = covered(hosts, host, *port) else {
        let listed: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let words = format!(
            "The sandbox does not lead to {host}:{port}. Listed: {}. Add hosts to the session's sandboxHosts, or to \
             sandbox_hosts in Tiller's config.toml.",
            listed.join(", ")
        );
        return refuse(&mut client, "403 Forbidden", &words);
    };
    let addresses = match (host.as_str(), *port).to_socket_addrs() {
        Ok(addresses) => addresses.filter(|address| may_lead_to(host, cover, address.ip())),
        Err(error) => {
            return refuse(
                &mut client,
                "502 Bad Gateway",
                &format!("{host} was not found: {error}"),
            );
        }
    };
    let mut why = format!("{host} leads to an address of a local network only");
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(mut server) => {
                match request.forwarded {
                    Some(head) => server.write_all(&head)?,
                    None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
                }
                server.write_all(&rest)?;
                return join(client, server);
            }
            Err(error) => why = format!("{host}:{port} can't be reached: {error}"),
        }
    }
    refuse(&mut client, "502 Bad Gateway", &why)
}

/// The head of a request with the empty line at its end, and what has come after it.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = client.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let looked_at = head.len().saturating_sub(3);
        head.extend_from_slice(&piece[..count]);
        if let Some(at) = memchr::memmem::find(&head[looked_at..], b"\r\n\r\n") {
            let rest = head.split_off(looked_at + at + 4);
            return Ok((head, rest));
        }
        if head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn refuse(client: &mut TcpStream, status: &str, words: &str) -> io::Result<()> {
    let length = words.len() + 1;
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         X-Tiller-Sandbox: refused\r\nConnection: close\r\n\r\n{words}\n"
    )
}

/// What a client asks the proxy for.
#[derive(Debug, PartialEq)]
struct Request {
    host: String,
    port: u16,
    /// The head as the host gets it. `None`: the client wants a tunnel.
    forwarded: Option<Vec<u8>>,
}

impl Request {
    fn read(head: &[u8]) -> Result<Self, &'static str> {
        let head = std::str::from_utf8(head).map_err(|_| "The head of the request is no text.")?;
        // A host that takes other endings of lines for one would read another request than this.
        let is_control = |character: char| character.is_control() && character != '\t';
        if head.split("\r\n").any(|line| line.contains(is_control)) {
            return Err("The head of the request has a control character.");
        }
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("The request has no first line.");
        };
        if !version.starts_with("HTTP/1.") || method.is_empty() {
            return Err("The proxy speaks HTTP/1.1.");
        }
        if method == "CONNECT" {
            let (host, port) = split_authority(target, None)?;
            return Ok(Self {
                host,
                port,
                forwarded: None,
            });
        }
        let scheme = target
            .get(..7)
            .filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        if scheme.is_none() {
            return Err("This is a proxy: name a host with http://, or use CONNECT.");
        }
        let rest = &target[7..];
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = split_authority(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = path.split('#').next().unwrap_or_default();
        // The host that is asked for is the host that was checked, and the next request is checked anew.
        let mut forwarded =
            format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, _) = line.split_once(':').ok_or("A header has a name and a value.")?;
            let left_out = [
                "host",
                "connection",
                "keep-alive",
                "proxy-connection",
                "proxy-authorization",
            ];
            // A line that begins with a space belongs to the one before; nobody sends those any more.
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err("A header is one line, and its name has no spaces.");
            }
            if !left_out.iter().any(|other| name.eq_ignore_ascii_case(other)) {
                forwarded.push_str(line);
                forwarded.push_str("\r\n");
            }
        }
        forwarded.push_str("\r\n");
        Ok(Self {
            host,
            port,
            forwarded: Some(forwarded.into_bytes()),
        })
    }
}

fn split_authority(authority: &str, usual: Option<u16>) -> Result<(String, u16), &'static str> {
    const WRONG: &str = "The request does not name a host and a port.";
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| WRONG)?,
        None => usual.ok_or(WRONG)?,
    };
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let fits = |character: char| character.is_ascii_alphanumeric() || ".-_:".contains(character);
    if host.is_empty() || !host.chars().all(fits) {
        return Err(WRONG);
    }
    Ok((host.to_owned(), port))
}

/// Copies both ways until both sides have ended.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    // What is small waits for nothing.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    thread(move || {
        // An error is an end, too.
        io::copy(&mut from_server, &mut to_client).ok();
        to_client.shutdown(Shutdown::Write).ok();
        // The server has ended: what the client has still to say interests nobody.
        from_server.shutdown(Shutdown::Both).ok();
        to_client.shutdown(Shutdown::Read).ok();
    })?;
    let (mut from_client, mut to_server) = (client, server);
    io::copy(&mut from_client, &mut to_server).ok();
    to_server.shutdown(Shutdown::Write).ok();
    Ok(())
}

/// Whatever a client sends: the host that is asked for is the host that was checked.
#[cfg(fuzzing)]
pub fn fuzz_request(head: &[u8]) {
    let Ok(request) = Request::read(head) else { return };
    assert!(!request.host.contains(['/', '@', ' ', '\r', '\n']));
    if let Some(forwarded) = request.forwarded {
        let text = String::from_utf8(forwarded).expect("text").to_lowercase();
        let (first, rest) = text.split_once("\r\n").expect("a line");
        assert!(first.split(' ').nth(1).is_some_and(|path| path.starts_with('/')));
        assert_eq!(
            rest.split("\r\n")
                .filter(|line| line.split(':').next().is_some_and(|name| name.trim() == "host"))
                .count(),
            1
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(list: &[&str]) -> Vec<HostPattern> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_request_is_led_to_the_host_that_was_checked() {
        let head = b"GET http://Example.com:8080/a?b#c HTTP/1.1\r\nHost: other.test\r\nProxy-Authorization: Basic x\r\n\
            Accept: */*\r\nConnection: keep-alive\r\n\r\n";
        let request = Request::read(head).unwrap();
        assert_eq!((request.host.as_str(), request.port), ("Example.com", 8080));
        let forwarded = String::from_utf8(request.forwarded.unwrap()).unwrap();
        assert_eq!(
            forwarded,
            "GET /a?b HTTP/1.1\r\nHost: Example.com:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        let request = Request::read(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((request.host.as_str(), request.port), ("2001:db8::1", 443));
        assert_eq!(request.forwarded, None);
        for wrong in [
            "",
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "CONNECT user@example.com:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1 x\r\n\r\n",
            "GET http://a@b/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nHost : c\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nHost\r\n\r\n",
        ] {
            assert!(Request::read(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_listed_port_of_this_machine_keeps_its_number_and_the_proxy_gives_way() {
        let list = hosts(&["localhost:3128", "127.0.0.1:9000", "example.com", "[::1]:9000"]);
        assert_eq!(
            ways(&list),
            [(3129, Way::Proxy), (3128, Way::Local), (9000, Way::Local)]
        );
        assert_eq!(port(&hosts(&["example.com"])), PORT);
        assert!(environment(&list).contains(&("HTTPS_PROXY", "http://127.0.0.1:3129".to_owned())));
    }

    /// What comes back for one request to a proxy with this list.
    fn asked(list: &[&str], request: &str) -> String {
        let list = hosts(list);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let proxy = std::thread::spawn(move || lead(server, &list));
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        proxy.join().unwrap().unwrap();
        answer
    }

    /// Answers one connection with what it was sent.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let (head, _) = read_head(&mut client).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            client.write_all(&head).unwrap();
        });
        port
    }

    #[test]
    fn only_listed_hosts_are_reached() {
        let answer = asked(&["example.com"], "CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(
            answer.contains("evil.test:443") && answer.contains("example.com"),
            "{answer}"
        );
        let answer = asked(&["*"], "CONNECT localhost:80 HTTP/1.1\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 502"),
            "a pattern never leads here: {answer}"
        );

        let port = echo();
        let listed = format!("127.0.0.2:{port}");
        let answer = asked(&[&listed], &format!("GET http://{listed}/x HTTP/1.1\r\n\r\n"));
        assert!(answer.contains("GET /x HTTP/1.1"), "{answer}");
        let listed = format!("127.0.0.2:{}", echo());
        let request = format!("CONNECT {listed} HTTP/1.1\r\n\r\nraw bytes\r\n\r\n");
        let answer = asked(&[&listed], &request);
        assert!(
            answer.starts_with("HTTP/1.1 200 Connection established")
                && answer.ends_with("raw bytes\r\n\r\n")
        );
    }

    proptest! {
        #[test]
        fn no_head_makes_a_request_for_another_host(head in "(CONNECT|GET) (http://)?[a-z.:@/\\[\\]0-9 ?#%]{0,40} HTTP/1.1\r\n(H(ost)?: [a-z]{1,4}\r\n){0,2}\r\n") {
            if let Ok(request) = Request::read(head.as_bytes()) {
                prop_assert!(!request.host.contains(['/', '@', ' ']));
                if let Some(forwarded) = request.forwarded {
                    let text = String::from_utf8(forwarded).unwrap();
                    prop_assert_eq!(text.to_lowercase().matches("\r\nhost:").count(), 1);
                    prop_assert!(text.ends_with("\r\n\r\n"));
                }
            }
        }
    }
}
