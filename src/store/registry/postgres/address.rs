//! Reads the URL of a database, finds the password, and decides whether the connection is encrypted.
//!
//! Connections that leave this machine are encrypted, and the server's certificate and host name are checked. To turn
//! this off, a URL must contain both `planwatch_insecure=1` and an `sslmode` such as `disable`. `planwatch.toml` must
//! not contain a password. The password comes from `PLANWATCH_CLAIMS_URL`, from `PGPASSWORD`, or from the password file
//! that PostgreSQL's own programs read.

use std::net::IpAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::api::sync_config::DatabaseLogin;
use crate::disk::{self, Disk};

pub(crate) struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
}

pub(super) enum Tls {
    None,
    Verified(MakeRustlsConnect),
}

/// The parameters of a URL that this module interprets, and the URL without them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters {
    url: String,
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    is_insecure: bool,
}

fn parameters(url: &str) -> Parameters {
    let Some((place, query)) = url.split_once('?') else {
        return Parameters { url: url.to_owned(), ..Parameters::default() };
    };
    let (mut read, mut rest) = (Parameters::default(), Vec::new());
    for part in query.split('&') {
        match part.split_once('=') {
            Some(("sslmode", value)) => read.sslmode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => read.sslrootcert = Some(value.to_owned()),
            Some(("planwatch_insecure", value)) => read.is_insecure = value == "1",
            _ => rest.push(part),
        }
    }
    read.url = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
    read
}

impl Address {
    pub(crate) fn read(url: &str, login: &DatabaseLogin, disk: &dyn Disk) -> Result<Self, String> {
        let read = parameters(url);
        // The error of the library can contain parts of the URL, and therefore of a password.
        let mut config: Config =
            read.url.parse().map_err(|_| "the URL of the database cannot be read".to_owned())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the URL of the database names no host".to_owned());
        }
        let is_encrypted = is_encrypted(&read, is_local(&config))?;
        config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
        let tls = match is_encrypted {
            true => Tls::Verified(MakeRustlsConnect::new(verified(read.sslrootcert.as_deref())?)),
            false => Tls::None,
        };
        if config.get_password().is_none() {
            let password = login.password.clone().or_else(|| from_file(&config, login, disk));
            password.map(|it| config.password(it));
        }
        config
            .application_name("planwatch")
            .connect_timeout(Duration::from_secs(5))
            .tcp_user_timeout(Duration::from_secs(10))
            .keepalives_idle(Duration::from_secs(10));
        Ok(Self { config, tls })
    }
}

/// Whether the connection stays on this machine.
fn is_local(config: &Config) -> bool {
    let is_here = |it: &Host| match it {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback()),
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(is_here) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

fn is_encrypted(read: &Parameters, is_local: bool) -> Result<bool, String> {
    let mode = read.sslmode.as_deref();
    match mode {
        Some("require" | "verify-ca" | "verify-full") => Ok(true),
        None => Ok(!is_local),
        Some("disable" | "allow" | "prefer") if is_local || read.is_insecure => Ok(false),
        Some("disable" | "allow" | "prefer") => {
            Err("the connection would not be encrypted; leave out `sslmode`, or add `planwatch_insecure=1`"
                .to_owned())
        }
        Some(_) => Err("`sslmode` has an unknown value".to_owned()),
    }
}

/// The TLS configuration. Certificates are checked with the root certificates of the system, or of the file `roots`.
fn verified(roots: Option<&str>) -> Result<ClientConfig, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(path) => {
            let wrong = || format!("a certificate in `{path}` is not valid");
            let unread = |_| format!("the certificates in `{path}` cannot be read");
            let found = CertificateDer::pem_file_iter(path).map_err(unread)?;
            for certificate in found {
                store.add(certificate.map_err(|_| wrong())?).map_err(|_| wrong())?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        return Err(match roots {
            Some(path) => format!("`{path}` contains no certificate"),
            None => {
                "this system has no root certificates to verify the server; name a file with `sslrootcert`"
                    .to_owned()
            }
        });
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|it| it.to_string())?;
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

/// Whether a connection failed because the server's certificate is not accepted.
pub(super) fn is_untrusted(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|it| it.downcast_ref::<std::io::Error>());
    let cause = cause.and_then(std::io::Error::get_ref).and_then(|it| it.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

/// The password from the file that PostgreSQL's own programs read. A file that other users can access is ignored, as it
/// is by those programs.
fn from_file(config: &Config, login: &DatabaseLogin, disk: &dyn Disk) -> Option<String> {
    let path = login.password_file.as_ref()?;
    if disk.lstat(path).ok()?.mode & 0o077 != 0 {
        return None;
    }
    let text = String::from_utf8(disk::read_file(disk, path).ok()?).ok()?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    password(&text, [&host, &port, config.get_dbname().unwrap_or(user), user])
}

/// The password of the first line that matches `wanted`: host, port, database and user.
fn password(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|it| !it.starts_with('#'));
    lines.map(fields).find_map(|mut fields| {
        let password = fields.get(4)?.clone();
        fields.truncate(4);
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    })
}

/// The fields of a line, at most five, separated by `:`. A fifth field is the rest of the line. `\` escapes the next
/// character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let is_end = c == ':' && fields.len() < 5;
        match (c, fields.last_mut()) {
            _ if is_end => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(chars.next()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_other_machines_are_encrypted_and_checked() {
        let refused = Err(());
        let cases = [
            ("postgres://localhost/p", Ok(false)),
            ("postgres://127.0.0.1/p?sslmode=prefer", Ok(false)),
            ("postgres://[::1]/p", Ok(false)),
            ("postgres://%2Frun%2Fpostgresql/p", Ok(false)),
            ("postgres://localhost/p?sslmode=require", Ok(true)),
            ("postgres://db.example.org/p", Ok(true)),
            ("postgres://db.example.org/p?sslmode=verify-full", Ok(true)),
            ("postgres://10.0.0.1/p?sslmode=require", Ok(true)),
            ("postgres://localhost,db.example.org/p", Ok(true)),
            ("postgres://localhost/p?hostaddr=10.0.0.1", Ok(true)),
            ("postgres://db.example.org/p?sslmode=prefer", refused),
            ("postgres://db.example.org/p?sslmode=disable", refused),
            ("postgres://db.example.org/p?sslmode=disable&planwatch_insecure=1", Ok(false)),
            ("postgres://db.example.org/p?sslmode=no", refused),
        ];
        for (url, expected) in cases {
            let read = parameters(url);
            let config: Config = read.url.parse().unwrap();
            assert_eq!(is_encrypted(&read, is_local(&config)).map_err(drop), expected, "{url}");
        }
    }

    #[test]
    fn parameters_of_our_own_are_taken_out() {
        let read = parameters("postgres://h/d?sslmode=require&connect_timeout=3&sslrootcert=/etc/ca.pem");
        assert_eq!(read.url, "postgres://h/d?connect_timeout=3");
        assert_eq!(
            (read.sslmode.as_deref(), read.sslrootcert.as_deref()),
            (Some("require"), Some("/etc/ca.pem"))
        );
    }

    #[test]
    fn the_password_file_is_read_as_by_postgresql() {
        let text =
            "# a comment\nother:5432:*:*:no\nhost:5432:d:ann:a\\:b\\\\c\nhost:*:*:*:any:thing\n*:*:*:*:last";
        let cases = [
            (["host", "5432", "d", "ann"], Some("a:b\\c")),
            (["host", "5433", "d", "bob"], Some("any:thing")),
            (["third", "1", "x", "y"], Some("last")),
        ];
        for (wanted, expected) in cases {
            assert_eq!(password(text, wanted).as_deref(), expected, "{wanted:?}");
        }
        assert_eq!(password("a:b:c", ["a", "b", "c", "d"]), None);
    }
}
