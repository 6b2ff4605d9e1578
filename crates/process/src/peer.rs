//! Whose program is at the other end of a TCP connection on this machine.

use std::net::SocketAddr;

/// Whether a program of the same user holds the socket with this address. Where the system does not tell, whether the address
/// is one of this machine's own.
pub fn is_own_socket(peer: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    {
        let own = rustix::process::geteuid().as_raw();
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let mut tables = tables
            .iter()
            .filter_map(|table| std::fs::read_to_string(table).ok());
        tables.find_map(|table| owner_in(&table, peer)) == Some(own)
    }
    #[cfg(not(target_os = "linux"))]
    {
        peer.ip().to_canonical().is_loopback()
    }
}

/// The user whose socket has this local address, by a table of the kernel's.
#[cfg(any(target_os = "linux", test))]
fn owner_in(table: &str, local: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let address = fields.nth(1)?;
        // After it: the other end, the state, the queues, the timer, retransmissions.
        let owner = fields.nth(5)?;
        (parse(address)? == canonical(local)).then(|| owner.parse().ok())?
    })
}

#[cfg(any(target_os = "linux", test))]
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: words of four bytes in the machine's own order, and the port.
#[cfg(any(target_os = "linux", test))]
fn parse(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => four.into(),
        Err(_) => <[u8; 16]>::try_from(bytes.as_slice()).ok()?.into(),
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0\n   \
        1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 100 0 0 10 0\n";

    #[test]
    fn a_socket_belongs_to_the_user_that_the_kernel_says() {
        if cfg!(target_endian = "little") {
            let local = |text: &str| text.parse().unwrap();
            assert_eq!(owner_in(TABLE, local("127.0.0.1:49153")), Some(1001));
            assert_eq!(owner_in(TABLE, local("[::ffff:127.0.0.1]:49153")), Some(1001));
            assert_eq!(owner_in(TABLE, local("127.0.0.2:49153")), None);
        }
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6.
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(is_own_socket(stream.local_addr().unwrap()));
        }
        // Another machine's.
        assert!(!is_own_socket("192.0.2.1:49153".parse().unwrap()));
    }
}
