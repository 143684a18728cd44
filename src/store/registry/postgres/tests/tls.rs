//! Encrypted connections to a real server, with certificates that are made here.

use super::*;

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

fn openssl(place: &Path, words: &[&str]) {
    run(Command::new("openssl").current_dir(place).args(words));
}

/// Makes a certificate authority, with its certificate in `NAME.pem`.
fn authority(place: &Path, name: &str) {
    let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let own = ["-keyout", &key, "-out", &pem, "-subj", &subject, "-days", "2"];
    openssl(place, &[&["req", "-x509"], &KEY[..], &own].concat());
}

/// Returns the settings for a server, and makes the files that they name. The server's certificate is for `localhost`.
/// The server refuses unencrypted connections.
fn settings(place: &Path) -> Vec<String> {
    authority(place, "ca");
    authority(place, "other");
    let request = ["-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"];
    openssl(place, &[&["req"], &KEY[..], &request].concat());
    std::fs::write(place.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
    openssl(place, &[&sign[..], &["-extfile", "names", "-out", "server.pem", "-days", "2"]].concat());
    std::fs::write(place.join("hba"), "hostssl all all 127.0.0.1/32 trust\n").unwrap();
    std::fs::write(place.join("empty.pem"), "").unwrap();
    run(Command::new("chmod").arg("600").arg(place.join("server.key")));
    if rustix::process::getuid().is_root() {
        run(Command::new("chown")
            .arg("postgres")
            .args(["server.key", "server.pem", "hba"])
            .current_dir(place));
    }
    let file = |key: &str, name: &str| format!("{key}={}", place.join(name).display());
    vec![
        "ssl=on".to_owned(),
        file("ssl_cert_file", "server.pem"),
        file("ssl_key_file", "server.key"),
        file("hba_file", "hba"),
    ]
}

#[test]
fn the_certificate_and_the_name_of_the_server_are_checked() {
    let server = Server::start_with(settings);
    let file = |name: &str| format!("sslrootcert={}", server.place.path().join(name).display());
    let client = |host: &str, query: &str| {
        client_of(&format!("postgres://planwatch@{host}:{}/postgres?{query}", server.port))
    };
    for mode in ["require", "verify-ca", "verify-full"] {
        let client = client("localhost", &format!("sslmode={mode}&{}", file("ca.pem"))).unwrap();
        client.prepare().unwrap();
        assert_eq!(client.list().unwrap(), [], "{mode}");
    }
    let refused = [
        ("localhost", format!("sslmode=require&{}", file("other.pem")), "certificate"),
        ("127.0.0.1", format!("sslmode=require&{}", file("ca.pem")), "certificate"),
        // The server itself refuses unencrypted connections.
        ("localhost", "sslmode=disable".to_owned(), "encryption"),
        ("127.0.0.1", String::new(), "encryption"),
    ];
    for (host, query, word) in refused {
        let error = client(host, &query).unwrap().list().unwrap_err();
        assert!(
            matches!(&error, RegistryError::Refused(why) if why.contains(word)),
            "{host} {query}: {error:?}"
        );
    }
    for name in ["empty.pem", "missing.pem"] {
        assert!(client("localhost", &format!("sslmode=require&{}", file(name))).is_err(), "{name}");
    }
}
