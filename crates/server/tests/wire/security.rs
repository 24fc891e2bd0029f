//! Who is let in.

use std::net::{Ipv4Addr, SocketAddr};

use crate::client::{Client, Served};

#[test]
fn addresses_that_others_reach_need_users() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.atoll");
    let database = atoll::Database::create(path, &atoll::Options::default()).unwrap();
    let mut options = server::Options::default();
    options.listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let refused = server::Server::start(database.clone(), options.clone());
    assert!(refused.unwrap_err().to_string().contains("--users"));
    options.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    options.metrics = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    assert!(server::Server::start(database, options).is_err());
}

#[test]
fn who_knows_no_password_learns_nothing() {
    let served = Served::with(|options, folder| {
        let users = folder.join("users");
        server::add_user(&users, "ann", "reef").unwrap();
        options.users = Some(users);
    });
    let mut answers = Vec::new();
    for user in ["ann", "nobody"] {
        let mut socket = std::net::TcpStream::connect(served.address).unwrap();
        answers.push(crate::security::wrong_password(&mut socket, user));
    }
    // Both get as far, and are told the same.
    for (user, (first, code)) in ["ann", "nobody"].iter().zip(&answers) {
        assert!(first.contains("i=4096"), "{user}: {first}");
        assert_eq!(code, "28P01", "{user}");
    }
    let refused = Client::try_connect(served.address, &[("database", "atoll")]);
    assert_eq!(refused.err().unwrap().part(b'C'), "28000");
}

/// Tries to log in with a proof that proves nothing: the server's first message, and the code of its error.
fn wrong_password(socket: &mut std::net::TcpStream, user: &str) -> (String, String) {
    use std::io::Write;

    use crate::client::{framed, startup};
    let mut client = Client {
        socket: socket.try_clone().unwrap(),
        process: 0,
        secret: Vec::new(),
        parameters: Default::default(),
    };
    socket.write_all(&startup(&[("user", user)])).unwrap();
    let asked = client.receive().unwrap();
    assert_eq!(asked.body, b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let first = b"n,,n=,r=abcdef";
    let mut body = b"SCRAM-SHA-256\0".to_vec();
    body.extend((first.len() as u32).to_be_bytes());
    body.extend(first);
    client.send(&framed(Some(b'p'), &body));
    let answer = client.receive().unwrap();
    let answer = String::from_utf8(answer.body[4..].to_vec()).unwrap();
    let nonce = answer.split(',').next().unwrap().to_string();
    let proof = "A".repeat(43) + "=";
    client.send(&framed(
        Some(b'p'),
        format!("c=biws,{nonce},p={proof}").as_bytes(),
    ));
    let error = client.receive().unwrap();
    assert_eq!(error.kind, 'E');
    (answer, error.part(b'C'))
}

/// The salt of an unknown user is the same after a restart, as that of a known one is: otherwise a restart would tell them
/// apart.
#[test]
fn salts_stay_as_they_are() {
    let mut users = std::path::PathBuf::new();
    let served = Served::with(|options, folder| {
        users = folder.join("users");
        server::add_user(&users, "ann", "reef").unwrap();
        options.users = Some(users.clone());
    });
    let salts = |address| {
        ["ann", "nobody", "nobody else"].map(|user| {
            let mut socket = std::net::TcpStream::connect(address).unwrap();
            let (first, _) = wrong_password(&mut socket, user);
            let salt = first.split(',').find(|part| part.starts_with("s="));
            salt.unwrap_or_else(|| panic!("{first}")).to_owned()
        })
    };
    let before = salts(served.address);
    assert_ne!(before[1], before[2]);
    let mut options = server::Options::default();
    options.listen.set_port(0);
    options.users = Some(users.clone());
    let again = server::Server::start(served.database.clone(), options).unwrap();
    assert_eq!(salts(again.address()), before);
    again.stop();
}
