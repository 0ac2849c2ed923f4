//! A proxy for HTTP and SOCKS5 that wants a login, and keeps what it was asked for.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::resilience::http2_provider::acceptor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Http,
    Https,
    Socks,
}

pub struct MockProxy {
    pub port: u16,
    /// User and password; `None` = anyone.
    login: Arc<Mutex<Option<(String, String)>>>,
    targets: Arc<Mutex<Vec<String>>>,
}

impl MockProxy {
    /// `provider.invalid` is this upstream; other targets are as named.
    pub async fn start(kind: Kind, login: Option<(&str, &str)>, upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        let proxy = Self { port, login: Arc::new(Mutex::new(login)), targets: Arc::default() };
        let (login, targets) = (Arc::clone(&proxy.login), Arc::clone(&proxy.targets));
        let upstream = upstream.trim_start_matches("http://").to_owned();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let wanted = login.lock().unwrap().clone();
                let (targets, upstream) = (Arc::clone(&targets), upstream.clone());
                tokio::spawn(async move {
                    let serve = async |target: String| {
                        targets.lock().unwrap().push(target.clone());
                        let is_it = target.starts_with("provider.invalid:");
                        TcpStream::connect(if is_it { upstream } else { target }).await.ok()
                    };
                    match kind {
                        Kind::Http => http(tcp, wanted, serve).await,
                        Kind::Https => {
                            let tls = acceptor(&["http/1.1"]).accept(tcp).await.unwrap();
                            http(tls, wanted, serve).await
                        }
                        Kind::Socks => socks(tcp, wanted, serve).await,
                    }
                });
            }
        });
        proxy
    }

    /// Another password from now on.
    pub fn change(&self, password: &str) {
        *self.login.lock().unwrap() = Some(("user".to_owned(), password.to_owned()));
    }

    /// What was asked for, `host:port`.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }
}

async fn http(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    login: Option<(String, String)>,
    connect: impl AsyncFnOnce(String) -> Option<TcpStream>,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let sent = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: Basic "));
    let wanted = login.map(|(user, password)| STANDARD.encode(format!("{user}:{password}")));
    if sent != wanted.as_deref() {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        client.write_all(refusal.as_bytes()).await.ok()?;
        return None;
    }
    let target = head.split(' ').nth(1).unwrap().to_owned();
    assert!(
        head.starts_with("CONNECT ") && head.contains(&format!("Host: {target}\r\n")),
        "{head}"
    );
    let Some(mut provider) = connect(target).await else {
        client.write_all(b"HTTP/1.1 503 p@ss:of/the proxy%\r\n\r\n").await.ok()?;
        return None;
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    copy_bidirectional(&mut client, &mut provider).await.ok().map(|_| ())
}

async fn socks(
    mut client: TcpStream,
    login: Option<(String, String)>,
    connect: impl AsyncFnOnce(String) -> Option<TcpStream>,
) -> Option<()> {
    assert_eq!(client.read_u8().await.ok()?, 5);
    let methods = sized(&mut client).await?;
    let method = if login.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        client.write_all(&[5, 0xff]).await.ok()?;
        return None;
    }
    client.write_all(&[5, method]).await.ok()?;
    if let Some((user, password)) = login {
        assert_eq!(client.read_u8().await.ok()?, 1);
        let sent = [sized(&mut client).await?, sized(&mut client).await?];
        let is_it = sent == [user.into_bytes(), password.into_bytes()];
        client.write_all(&[1, u8::from(!is_it)]).await.ok()?;
        is_it.then_some(())?;
    }
    let mut head = [0; 4];
    client.read_exact(&mut head).await.ok()?;
    assert_eq!(head[..3], [5, 1, 0]);
    let host = match head[3] {
        1 => std::net::Ipv4Addr::from(client.read_u32().await.ok()?).to_string(),
        3 => String::from_utf8(sized(&mut client).await?).unwrap(),
        other => panic!("an address of type {other}"),
    };
    let target = format!("{host}:{}", client.read_u16().await.ok()?);
    let Some(mut provider) = connect(target).await else {
        client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await.ok()?;
        return None;
    };
    // A name as the address of the proxy: its length varies.
    client.write_all(&[5, 0, 0, 3, 3, b'a', b'.', b'b', 0, 9]).await.ok()?;
    copy_bidirectional(&mut client, &mut provider).await.ok().map(|_| ())
}

async fn sized(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::from(client.read_u8().await.ok()?)];
    client.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}

/// Ends TLS before an upstream. Returns its port.
pub async fn with_tls(upstream: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (acceptor, upstream) =
        (acceptor(&["http/1.1"]), upstream.trim_start_matches("http://").to_owned());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await.ok()?;
                let mut upstream = TcpStream::connect(upstream).await.ok()?;
                copy_bidirectional(&mut tls, &mut upstream).await.ok()
            });
        }
    });
    port
}
